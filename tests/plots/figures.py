"""Check what a reader of a figure sees."""

import io
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n"


def check_nothing_is_clipped(figure: Any) -> None:
    """Draw a figure, and find everything that it shows inside its borders."""
    figure.savefig(io.BytesIO(), format="png")
    shown = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert shown.x0 >= 0 and shown.x1 <= width, (shown, width)
    assert shown.y0 >= 0 and shown.y1 <= height, (shown, height)
