"""Put a page together as one HTML file, which opens without a network."""

import base64
import hashlib
import html
import importlib.resources
import json
import string
from collections.abc import Mapping
from typing import Any

from vaswani_jax.pages import contents

# In the order in which the browser reads them: a file uses those above it.
SCRIPTS = (
    "elements.js",
    "weights.js",
    "state.js",
    "lines.js",
    "matrix.js",
    "largest.js",
    "overview.js",
    "beam.js",
    "training.js",
    "roles.js",
    "export.js",
    "page.js",
)
MAX_BYTES = 20_000_000


def render(page: contents.Page) -> str:
    """Return the HTML of a page: its data, its style and its script in one file.

    The text of a page is user's text. It stands in the file as JSON in which no `<` is
    left, and the script shows it as text, never as HTML.

    Raises:
        ValueError: A number of the page is not finite, or a weight is not from 0 to 1.
    """
    return render_values(contents.to_json(page))


def render_values(values: Mapping[str, Any]) -> str:
    """Return the HTML of what `contents.to_json` returns; otherwise as `render`."""
    style = read_style("page.css")
    script = "\n".join(read(name) for name in SCRIPTS)
    return string.Template(read("page.html")).substitute(
        policy=html.escape(content_policy(style=style, script=script), quote=False),
        title=html.escape(f"{values['title']}: attention"),
        style=style,
        data=escaped_json(values),
        script=script,
    )


def content_policy(*, style: str, script: str = "") -> str:
    """Return what a browser may load: this style, this script, and nothing else.

    Pictures may come from the page itself: PNG is made of the SVG that it shows.
    """
    return "; ".join(
        [
            "default-src 'none'",
            *([f"script-src {_hash(script)}"] if script else []),
            f"style-src {_hash(style)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def escaped_json(values: Mapping[str, Any]) -> str:
    """Return the JSON of a page in which no text can end the script around it."""
    text = json.dumps(
        values,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )
    return text.replace("<", "\\u003c")


def check_size(
    text: str, *, advice: str = "give fewer or shorter sentences, or fewer checkpoints"
) -> None:
    """Refuse a rendered page that is too large.

    Args:
        text: The page.
        advice: What makes a page smaller, for the message.

    Raises:
        ValueError: It has more than `MAX_BYTES` bytes.
    """
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ValueError(
            f"the page has {size:,} bytes; a page has at most {MAX_BYTES:,}: {advice}"
        )


def read(name: str) -> str:
    """Return the text of a file that the page is put together from."""
    path = importlib.resources.files("vaswani_jax.pages") / name
    return path.read_text(encoding="utf-8")


def read_style(name: str) -> str:
    """Return the style of a page: what all share, then its own file."""
    return read("base.css") + read(name)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
