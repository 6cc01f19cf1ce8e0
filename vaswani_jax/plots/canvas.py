"""Make and save figures with matplotlib, which a base installation does not have."""

import contextlib
import importlib.util
import io
import logging
import pathlib
import textwrap
from collections.abc import Mapping
from typing import Any

from vaswani_jax.core import extras

logger = logging.getLogger(__name__)
FORMATS = (".png", ".svg", ".pdf")
# The metadata with the time, which would make equal figures differ.
DATES = {"svg": "Date", "pdf": "CreationDate"}
DEFAULT_FONT = "DejaVu Sans"
# Comes with matplotlib, and has a box for every character.
FONT_OF_BOXES = "Last Resort High-Efficiency"


def is_available() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require() -> None:
    """Refuse to draw without matplotlib, before any work.

    Raises:
        ImportError: Says how to install it.
    """
    extras.require(["matplotlib"], extra="plot", purpose="pictures need")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that belongs to no window.

    Args:
        width: In inches.
        height: In inches.
    """
    require()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=120, layout="constrained")


def new_axes(xlim: tuple[float, float], ylim: tuple[float, float]) -> Any:
    """Return axes that fill a new figure, without ticks, whose data are inches.

    Args:
        xlim: The left and the right end.
        ylim: The lower and the upper end.
    """
    figure = new_figure(xlim[1] - xlim[0], ylim[1] - ylim[0])
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=xlim, ylim=ylim)
    axes.set_axis_off()
    return axes


def save(figure: Any, path: pathlib.Path) -> None:
    """Write a figure in the format of the path's suffix; equal figures, equal bytes.

    Raises:
        OSError: The file cannot be written.
    """
    import matplotlib

    form = path.suffix[1:].lower()
    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "vaswani_jax"}):
        metadata = {DATES[form]: None} if form in DATES else {}
        figure.savefig(picture, format=form, metadata=metadata)
    path.write_bytes(picture.getvalue())


def wrap(name: str, width: int) -> str:
    """Break a name into lines of at most `width` characters, within words if needed.

    >>> wrap("s3://bucket/runs/a", 10)
    's3://bucke\\nt/runs/a'
    """
    return "\n".join(textwrap.wrap(name, width, break_on_hyphens=False))


def font_families(text: str) -> list[str]:
    """Return installed fonts that together have the characters of a text.

    Logs the characters that no font has.

    >>> font_families("▁Stunden")
    ['DejaVu Sans']
    """
    from matplotlib import font_manager

    missing = {ord(character) for character in text if character.isprintable()}
    fonts: dict[str, Any] = {DEFAULT_FONT: font_manager.findfont(DEFAULT_FONT)}
    for font in font_manager.fontManager.ttflist:
        if font.name != FONT_OF_BOXES:
            fonts.setdefault(font.name, font.fname)
    families = []
    for name, file in fonts.items():
        with contextlib.suppress(OSError, RuntimeError):  # A damaged font.
            covered = missing & font_manager.get_font(file).get_charmap().keys()
            if covered or name == DEFAULT_FONT:
                families.append(name)
                missing -= covered
        if not missing:
            break
    if missing:
        characters = "".join(map(chr, sorted(missing)))
        logger.warning(
            f"no installed font has {characters}: a box stands for each; "
            "the Noto fonts have most characters"
        )
        families.append(FONT_OF_BOXES)
    return families


def text_inches(text: str, font: Mapping[str, Any]) -> float:
    """Return the width of a text in inches.

    Args:
        text: One line.
        font: Its family and size, as matplotlib's `Text` takes them.
    """
    figure = new_figure(1.0, 1.0)
    return float(figure.text(0, 0, text, **font).get_window_extent().width / figure.dpi)
