"""Write the page of a run that the site links to, from docs/results/page.json."""

import json
import pathlib

from sphinx.application import Sphinx

from vaswani_jax.pages import html

VALUES = pathlib.Path(__file__).parents[1] / "results" / "page.json"
# Below the directory of the built site, where pages link to it.
PAGE = pathlib.PurePath("_static", "page.html")


def render() -> str:
    """Return the HTML of the recorded page."""
    return html.render_values(json.loads(VALUES.read_text(encoding="utf-8")))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the page beside the site's pictures, if the site was built."""
    if exception is None:
        (pathlib.Path(app.outdir) / PAGE).write_text(render(), encoding="utf-8")
