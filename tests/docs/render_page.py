"""Render the page of a run that the site shows from its JSON.

python -m tests.docs.render_page
"""

import json
import pathlib

from vaswani_jax.pages import html

DOCS = pathlib.Path(__file__).parents[2] / "docs"
VALUES = DOCS / "results" / "page.json"
PAGE = DOCS / "_static" / "page.html"


def render() -> str:
    """Return the HTML of the recorded page."""
    return html.render_values(json.loads(VALUES.read_text(encoding="utf-8")))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
