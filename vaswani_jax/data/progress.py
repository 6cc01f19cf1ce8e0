"""Show how far the work on a text is, as a bar on standard error."""

import logging
from collections.abc import Iterator

import tqdm

logger = logging.getLogger(__name__)


def show_progress(
    pairs: Iterator[tuple[str, str]], description: str, *, total: int
) -> Iterator[tuple[str, str]]:
    """Yield the pairs, with a bar on standard error if that is a terminal."""
    # None disables the bar where there is no terminal.
    disable = None if logger.isEnabledFor(logging.INFO) else True
    return iter(
        tqdm.tqdm(pairs, description, total=total, unit=" pairs", disable=disable)
    )
