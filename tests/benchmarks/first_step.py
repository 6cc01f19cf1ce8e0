"""How long a training takes to its first update, without and with compiled programs.

    python -m tests.benchmarks.first_step --starts=5 -- \\
        --config=configs/own_text.py --workdir=DIR ...

What follows -- are flags of `vaswani_jax.main`. A start that is not counted prepares
the data. The next one has no compiled programs, those after it have what it left. Every
start is a program that is killed when its log has the first update, so DIR must have no
checkpoints, and gets none.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

FIRST = "step 1 of "


def seconds_to_first_update(flags: list[str]) -> float:
    """From the start of the program to the line of its first update.

    Raises:
        RuntimeError: It ended without one; its last lines say why.
    """
    command = [sys.executable, "-m", "vaswani_jax.main", *flags]
    begun = time.perf_counter()
    program = subprocess.Popen(
        [*command, "--config.training.log_every_steps=1"],
        # Compiled programs lie in the workdir.
        env={k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    told = []
    try:
        for line in program.stderr:
            told.append(line)
            if line.startswith(FIRST):
                return time.perf_counter() - begun
    finally:
        program.kill()
        program.wait()
    raise RuntimeError("no update was made:\n" + "".join(told[-5:]))


def main() -> None:
    """Time the starts and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5, help="with compiled programs")
    parser.add_argument("flags", nargs="+", help="of vaswani_jax.main")
    arguments = parser.parse_args()
    given = [flag for flag in arguments.flags if flag.startswith("--workdir=")]
    if len(given) != 1:
        parser.error("among the flags, --workdir=DIR must be given once")
    workdir = pathlib.Path(given[0].removeprefix("--workdir="))
    if any((workdir / "checkpoints").glob("*")):
        parser.error(f"{workdir} has checkpoints; take another --workdir")
    try:
        seconds_to_first_update(arguments.flags)
    except RuntimeError as error:
        parser.exit(1, f"{error}")
    shutil.rmtree(workdir / "compiled")
    cold = seconds_to_first_update(arguments.flags)
    print(f"no compiled programs: {cold:.1f} s", flush=True)
    warm = []
    for _ in range(arguments.starts):
        warm.append(seconds_to_first_update(arguments.flags))
        print(f"compiled before: {warm[-1]:.1f} s", flush=True)
    if warm:
        print(f"median {statistics.median(warm):.1f} s, {len(warm)} starts")


if __name__ == "__main__":
    main()
