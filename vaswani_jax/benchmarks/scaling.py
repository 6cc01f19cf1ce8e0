"""Section 5.2 beyond one machine: a model of a step's time, from what was measured.

No measurement: it takes the seconds that one device needs for a number of tokens, the
bytes of the gradients and the speed of the links, and assumes that computing is divided
evenly, that devices wait for one ring all-reduce, and nothing else.
"""

import dataclasses

from vaswani_jax.core import config
from vaswani_jax.model import cost

BYTES_OF_A_GRADIENT = 4  # float32


@dataclasses.dataclass(frozen=True)
class Link:
    """What connects the devices, its slowest part."""

    bytes_per_second: float
    latency_seconds: float


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step of so many devices would take, in seconds."""

    devices: int
    tokens: int  # of the global batch, a side
    computing: float
    reducing: float

    @property
    def total(self) -> float:
        """Computing, then reducing."""
        return self.computing + self.reducing

    @property
    def efficiency(self) -> float:
        """Share of the time in which devices compute."""
        return self.computing / self.total


def all_reduce_seconds(count: int, *, size: float, link: Link) -> float:
    """A ring's: each device sends 2 (n - 1) pieces of 1/n of the bytes.

    >>> all_reduce_seconds(4, size=8e9, link=Link(1e9, 0.5))
    15.0
    """
    rounds = 2 * (count - 1)
    return rounds * (size / count / link.bytes_per_second + link.latency_seconds)


def gradient_bytes(model: config.ModelConfig, *, vocab_size: int) -> int:
    """Of one update."""
    return BYTES_OF_A_GRADIENT * cost.total(model, vocab_size=vocab_size)


def steps(
    settings: config.Config,
    *,
    counts: list[int],
    seconds_per_token: float,
    link: Link,
    tokens_per_device: int | None,
) -> list[Step]:
    """The model for several numbers of devices.

    Args:
        settings: Model, vocabulary and batch.
        counts: Numbers of devices.
        seconds_per_token: Of one device, a target token of a batch, as measured.
        link: Between the devices.
        tokens_per_device: Of a batch that grows with the devices; None for the
            configured one, whatever their number.
    """
    size = gradient_bytes(settings.model, vocab_size=settings.data.vocab_size)
    found = []
    for count in counts:
        tokens = settings.data.target_tokens_per_batch
        if tokens_per_device is not None:
            tokens = count * tokens_per_device
        found.append(
            Step(
                devices=count,
                tokens=tokens,
                computing=tokens / count * seconds_per_token,
                reducing=all_reduce_seconds(count, size=float(size), link=link),
            )
        )
    return found


def table(several: list[Step]) -> str:
    """A line for each number of devices."""
    lines = ["devices  tokens a batch  computing, s  all-reduce, s  step, s  computing"]
    lines += [
        f"{one.devices:7,}  {one.tokens:14,}  {one.computing:12.4f}  "
        f"{one.reducing:13.4f}  {one.total:7.4f}  {one.efficiency:9.1%}"
        for one in several
    ]
    return "\n".join(lines)
