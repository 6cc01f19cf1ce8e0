"""Write a page to a file: HTML that a browser opens, or the same as JSON."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence

from vaswani_jax.core import files
from vaswani_jax.pages import contents, html

ENDINGS = (".html", ".json")


@dataclasses.dataclass(frozen=True)
class PageFile:
    """A page that was written.

    Attributes:
        path: Its file.
        num_bytes: The size of the file.
        num_weight_bytes: How many of these bytes are attention weights.
    """

    path: pathlib.Path
    num_bytes: int
    num_weight_bytes: int

    def __str__(self) -> str:
        """Return the path and the sizes."""
        return (
            f"{self.path}, {_megabytes(self.num_bytes)}, of which "
            f"{_megabytes(self.num_weight_bytes)} are attention weights"
        )


def check_ending(
    path: pathlib.Path, *, name: str, endings: Sequence[str] = ENDINGS
) -> None:
    """Refuse a file whose name has another ending.

    Args:
        path: The file.
        name: What the user calls it, for the message.
        endings: Those that it may have.

    Raises:
        ValueError: Has the rule.
    """
    if path.suffix.lower() not in endings:
        raise ValueError(f"{name}={path} must end in {' or '.join(endings)}")


def write_page(page: contents.Page, path: str | os.PathLike[str]) -> PageFile:
    """Write a page as .html, or the same contents as .json, whichever the path ends in.

    A file that is there is replaced once the page is complete.

    >>> write_page(page, "page.html")  # doctest: +SKIP

    Args:
        page: Of `make_page`.
        path: The file.

    Returns:
        The file and its size.

    Raises:
        ValueError: The page is larger than 20 MB, the path has another ending, or a
            weight is no number from 0 to 1.
        OSError: The file cannot be written.
    """
    path = pathlib.Path(path)
    text = render(page, path)
    files.write_atomically(path, text)
    return PageFile(path, len(text.encode()), _num_weight_bytes(page))


def render(page: contents.Page, path: pathlib.Path) -> str:
    """Return the text of a page's file.

    Raises:
        ValueError: As `write_page`.
    """
    check_ending(path, name="path")
    if path.suffix.lower() == ".json":
        values = contents.to_json(page)
        text = json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        text = html.render(page)
    try:
        html.check_size(text)
    except ValueError as error:
        num_views = sum(len(sentence.views) for sentence in page.sentences)
        raise ValueError(
            f"{error}; the attention weights of {num_views} translations have "
            f"{_num_weight_bytes(page):,}"
        ) from None
    return text


def _num_weight_bytes(page: contents.Page) -> int:
    """Return the length of all weights in base64: four characters for three bytes."""
    sizes = [
        getattr(view.attention, kind).size
        for sentence in page.sentences
        for view in sentence.views
        for kind in contents.KINDS
    ]
    return sum(4 * -(-size // 3) for size in sizes)


def _megabytes(num_bytes: int) -> str:
    """Return a size in decimal units.

    >>> _megabytes(20_000_000), _megabytes(123_456), _megabytes(999)
    ('20.0 MB', '123 kB', '1 kB')
    """
    if num_bytes >= 1_000_000:
        return f"{num_bytes / 1_000_000:.1f} MB"
    return f"{num_bytes / 1000:.0f} kB"


def without_folders(path: str) -> str:
    """Return the last part of an absolute path; any other text as it is.

    >>> without_folders("/home/ann/runs/six"), without_folders("runs/six")
    ('six', 'runs/six')
    """
    return last_part(path) if path.startswith(("/", "file:")) else path


def last_part(path: str) -> str:
    """Return the name of a file or a directory, on this machine or a URL's.

    >>> last_part("runs/six/"), last_part("gs://bucket/six"), last_part("runs/six/..")
    ('six', 'six', 'runs')
    """
    return pathlib.Path(os.path.abspath(path)).name
