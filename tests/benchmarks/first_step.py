"""Time a training until its first update, without and with compiled programs.

    python -m tests.benchmarks.first_step --starts=5 -- \\
        --config=configs/own_text.py --workdir=DIR ...

What follows -- are flags of `vaswani_jax.main`. A start that is not counted prepares
the data. The next one has no compiled programs, those after it have what it left. Every
start is a program that is killed when its log has the first update, so DIR must have no
checkpoints, and gets none. Of every start also the core's seconds outside and in the
kernel: there a virtual machine's memory comes, which its host may take back some
seconds after a program has ended (`--rest` waits for that). At last, what 4 GiB of
it cost.
"""

import argparse
import contextlib
import mmap
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

FIRST = "step 1 of "


class Start(NamedTuple):
    """Seconds of a program that is killed after its first update."""

    passed: float  # from its start to the line of that update
    outside: float  # of a core, outside the kernel, until it is gone
    kernel: float  # of a core, in it

    def __str__(self) -> str:
        return f"{self.passed:.1f} s ({self.outside:.1f} + {self.kernel:.1f} of a core)"


def first_update(flags: list[str], *, cache: pathlib.Path) -> Start:
    """Start the program, and kill it when it has made one.

    Raises:
        RuntimeError: It ended without one; its last lines say why.
    """
    command = [sys.executable, "-m", "vaswani_jax.main", *flags]
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start_time = time.perf_counter()
    program = subprocess.Popen(
        [*command, "--config.training.log_every_steps=1"],
        env={
            **{k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"},
            "VASWANI_JAX_CACHE": str(cache),
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    lines = []
    passed = 0.0
    try:
        for line in program.stderr:
            lines.append(line)
            if line.startswith(FIRST):
                passed = time.perf_counter() - start_time
                break
    finally:
        program.kill()
        program.wait()
    if not passed:
        raise RuntimeError("no update was made:\n" + "".join(lines[-5:]))
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(
        passed,
        usage_after.ru_utime - usage_before.ru_utime,
        usage_after.ru_stime - usage_before.ru_stime,
    )


def seconds_to_touch(size: int) -> float:
    """Return the seconds to touch so many bytes, in huge pages where possible."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, size, flags=flags) as memory:
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
        start_time = time.perf_counter()
        for offset in range(0, size, mmap.PAGESIZE):
            memory[offset] = 1
        return time.perf_counter() - start_time


def main() -> None:
    """Time the starts and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5, help="with compiled programs")
    parser.add_argument("--rest", type=float, default=0, help="seconds before a start")
    parser.add_argument("flags", nargs="+", help="of vaswani_jax.main")
    arguments = parser.parse_args()
    workdirs = [flag for flag in arguments.flags if flag.startswith("--workdir=")]
    if len(workdirs) != 1:
        parser.error("among the flags, --workdir=DIR must be given once")
    workdir = pathlib.Path(workdirs[0].removeprefix("--workdir="))
    if any((workdir / "checkpoints").glob("*")):
        parser.error(f"{workdir} has checkpoints; take another --workdir")
    cache = pathlib.Path(tempfile.mkdtemp())
    try:
        first_update(arguments.flags, cache=cache)
    except RuntimeError as error:
        parser.exit(1, f"{error}")
    finally:
        shutil.rmtree(cache)

    def rested() -> Start:
        time.sleep(arguments.rest)
        return first_update(arguments.flags, cache=cache)

    print(f"no compiled programs: {rested()}", flush=True)
    warm = []
    for _ in range(arguments.starts):
        warm.append(rested())
        print(f"compiled before: {warm[-1]}", flush=True)
    if warm:
        median = statistics.median(start.passed for start in warm)
        print(f"median {median:.1f} s, {len(warm)} starts")
    shutil.rmtree(cache)
    time.sleep(arguments.rest)
    first, second = seconds_to_touch(4 << 30), seconds_to_touch(4 << 30)
    print(f"to touch 4 GiB: {first:.1f} s, again at once {second:.1f} s")


if __name__ == "__main__":
    main()
