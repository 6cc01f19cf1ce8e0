"""Section 5.1's corpora have millions of pairs: how far one is read, and how long."""

import datetime
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
SECONDS_BETWEEN = 15.0


def told(
    items: Iterable[Item], *, what: str, total: int, log: Callable[[str], None]
) -> Iterator[Item]:
    """The same items; says now and then how many of `total` came and the time left."""
    begun = last = time.monotonic()
    for index, item in enumerate(items):
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN:
            last = now
            seconds = (now - begun) * (total / index - 1)
            left = datetime.timedelta(seconds=round(seconds))
            log(f"{what}: {index:,} of {total:,} pairs, {left} left")
        yield item
