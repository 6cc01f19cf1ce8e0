"""A log of metrics, and a clock that a test moves."""

import pathlib
from collections.abc import Sequence

from vaswani_jax.core.types import MetricsLogger
from vaswani_jax.training import metrics_log


class Clock:
    """Stands in for the module `time`; a test changes `seconds`."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


def opened(
    workdir: pathlib.Path,
    *,
    first_step: int = 0,
    num_steps: int = 9,
    is_active: bool = True,
    loggers: Sequence[MetricsLogger] = (),
) -> metrics_log.MetricsLog:
    log = metrics_log.MetricsLog(
        workdir,
        first_step=first_step,
        num_steps=num_steps,
        is_active=is_active,
        loggers=loggers,
    )
    log.open(first_step)
    return log
