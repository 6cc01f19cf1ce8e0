"""Section 5.1's corpora have millions of pairs: how far one is read, and how long."""

import datetime
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
SECONDS_BETWEEN = 15.0


class Meter:
    """Says now and then how much is done and the time left.

    Attributes:
        what: The work, for the person who waits.
        total: Of how much.
        unit: What it is counted in.
    """

    def __init__(
        self, what: str, *, total: int, unit: str, log: Callable[[str], None]
    ) -> None:
        self.what, self.total, self.unit = what, total, unit
        self._log = log
        self._begun = self._last = time.monotonic()

    def done(self, amount: int) -> None:
        """So much is done; says so if the last time was a while ago."""
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN:
            return
        self._last = now
        told = f"{self.what}: {amount:,} of {self.total:,} {self.unit}"
        if amount:  # Before the first there is nothing to reckon with.
            seconds = (now - self._begun) * (self.total / amount - 1)
            told += f", {datetime.timedelta(seconds=round(seconds))} left"
        self._log(told)


def told(
    items: Iterable[Item], *, what: str, total: int, log: Callable[[str], None]
) -> Iterator[Item]:
    """The same items; says now and then how many of `total` pairs came."""
    meter = Meter(what, total=total, unit="pairs", log=log)
    for index, item in enumerate(items):
        meter.done(index)
        yield item
