"""Measure how much a score differs between seeds."""

import dataclasses
import math
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Spread:
    """The scores of the runs of several seeds.

    Attributes:
        values: The score of each run, in the order of the seeds.
    """

    values: Sequence[float]

    @property
    def mean(self) -> float:
        """The mean of the runs' scores."""
        return math.fsum(self.values) / len(self.values)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation of the scores; None for one seed.

        >>> Spread([1.0, 2.0, 4.5]).mean, round(Spread([1.0, 2.0, 4.5]).deviation, 4)
        (2.5, 1.8028)
        """
        if len(self.values) < 2:
            return None
        squares = math.fsum((value - self.mean) ** 2 for value in self.values)
        return math.sqrt(squares / (len(self.values) - 1))

    def format_range(self) -> str:
        """Return deviation, smallest and largest value in words.

        >>> Spread([39.88, 41.07, 39.8]).format_range(), Spread([40.0]).format_range()
        ('sd 0.71, 39.80 to 41.07', 'one seed')
        """
        if self.deviation is None:
            return "one seed"
        low, high = min(self.values), max(self.values)
        return f"sd {self.deviation:.2f}, {low:.2f} to {high:.2f}"
