"""Compile programs one after the other, log how far it is, and keep what was found."""

import logging
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

from vaswani_jax.core import compilation_cache, memory, plurals
from vaswani_jax.data import batching
from vaswani_jax.hardware import programs, topology, workload

logger = logging.getLogger(__name__)
# What a compiled step has of config.training; the rest is the loop's.
STEP_SETTINGS = (
    "ema_decay",
    "label_smoothing",
    "label_smoothing_form",
    "r_drop",
    "shard_optimizer",
)


class RefusedError(Exception):
    """The compiler refuses a program that no device of the kind could hold.

    Attributes:
        num_bytes: What it needs, as far as the compiler says.
    """

    def __init__(self, reason: str, num_bytes: int) -> None:
        super().__init__(reason)
        self.num_bytes = num_bytes


def version(device: Any) -> str:
    """Return the version of JAX and of a device's compiler, with its flags."""
    platform_version = " ".join(str(device.client.platform_version).split())
    flags = [os.environ.get(name, "") for name in compilation_cache.FLAGS]
    return " ".join([f"jax {jax.__version__},", platform_version, *filter(None, flags)])


class Compiler:
    """Compiles programs, logs how far it is, and keeps what it has found.

    Attributes:
        version: Of the compiler.
    """

    def __init__(
        self, work: workload.Workload, hardware: topology.Hardware, version: str
    ) -> None:
        """Compile nothing yet.

        Args:
            work: The run whose programs are compiled.
            hardware: What for.
            version: Of the compiler, as `version` tells it.
        """
        self.version = version
        self._work = work
        self._hardware = hardware
        self._num_left = 0
        self._seconds: list[float] = []

    def expect(self, num_programs: int) -> None:
        """Say how many programs are still to be compiled."""
        self._num_left = num_programs

    def train_step(self, bucket: batching.Bucket, number: int) -> programs.Program:
        """Return the step of a shape, in a number of parts."""
        settings, vocab_size = self._work.settings, self._work.vocab_size
        parts = f" in {number} parts" if number > 1 else ""
        return self._find(
            f"the step of {bucket.rows:,} x {bucket.describe_tokens()}{parts}",
            (
                settings.optimizer,
                *(getattr(settings.training, name) for name in STEP_SETTINGS),
                settings.data.batching,
                number,
            ),
            lambda: programs.train_step(
                settings,
                bucket=bucket,
                num_microbatches=number,
                vocab_size=vocab_size,
            ),
        )

    def search(self, *, rows: int, length: int) -> programs.Program:
        """Return the search of a shape."""
        settings, vocab_size = self._work.settings, self._work.vocab_size
        return self._find(
            f"the search of {rows:,} x {length} tokens",
            (settings.search,),
            lambda: programs.search(
                settings, rows=rows, length=length, vocab_size=vocab_size
            ),
        )

    def _find(
        self, name: str, settings: Any, compile_it: Callable[[], programs.Program]
    ) -> programs.Program:
        """Return a program that was compiled before, or compile it.

        Raises:
            RefusedError: It needs more memory than any such device has.
        """
        work, hardware = self._work, self._hardware
        self._log(name)
        start = time.monotonic()

        def measure() -> dict[str, Any]:
            try:
                return compile_it().as_dict()
            except RuntimeError as error:
                num_bytes = memory.refused_bytes(error)
                if num_bytes is None:
                    raise
                return {"refused": " ".join(str(error).split()), "bytes": num_bytes}

        key = (self.version, hardware.name, name, settings)
        entry = compilation_cache.remember(
            "check",
            repr((*key, work.settings.model, work.settings.seed, work.vocab_size)),
            measure,
            keep=True,
        )
        self._num_left = max(0, self._num_left - 1)
        self._seconds.append(time.monotonic() - start)
        if "refused" in entry:
            raise RefusedError(entry["refused"], entry["bytes"])
        return programs.Program.from_dict(entry)

    def _log(self, name: str) -> None:
        slow = [seconds for seconds in self._seconds if seconds > 1]
        left = ""
        if slow and self._num_left:
            minutes = statistics.mean(slow) * self._num_left / 60
            left = f"; about {max(1, round(minutes))} min left"
        logger.info(
            f"{self._hardware.name}: compiling {name} "
            f"({plurals.format_count(self._num_left, 'program')} to go{left})"
        )
