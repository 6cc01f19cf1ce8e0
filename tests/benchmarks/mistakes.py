"""What `tests.benchmarks.planted_mistakes` plants."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mistake:
    """Text of a file, what to write instead, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    proof: str
