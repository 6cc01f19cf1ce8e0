"""Two ways to train, timed in turn: what an option costs or gains.

    python -m tests.benchmarks.compare --rounds=5 \\
        --both="--config=configs/multi30k_ende.py --workdir=runs/multi30k" \\
        --one="" --other="--config.data.batching=packed"

Each round runs `vaswani_jax.benchmark train` once with either flags, in a process of
its own; NAME=VALUE before the flags sets a variable of its environment. Prints the
median over rounds of one's figure by the other's.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

FIGURES = (
    "step_seconds",
    "target_tokens_per_second",
    "step_memory_bytes",
    "peak_memory_bytes",
)


def measure(flags: str) -> dict[str, float]:
    """Return what the benchmark measures; its errors pass through."""
    command = [sys.executable, "-m", "vaswani_jax.benchmark", "train", "--json"]
    words = shlex.split(flags)
    variables = dict(w.split("=", 1) for w in words if not w.startswith("-"))
    completed = subprocess.run(
        command + [word for word in words if word.startswith("-")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    return dict(json.loads(completed.stdout))


def main() -> None:
    """Time, and print both and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--both", default="", help="flags of both")
    parser.add_argument("--one", required=True)
    parser.add_argument("--other", required=True)
    arguments = parser.parse_args()
    pairs = []
    for number in range(arguments.rounds):
        order = [arguments.one, arguments.other]
        if number % 2:
            order.reverse()
        figures = [measure(f"{arguments.both} {flags}") for flags in order]
        pairs.append(figures[::-1] if number % 2 else figures)
        print(*(f"{each['step_seconds']:.4f} s" for each in pairs[-1]), flush=True)
    for figure in FIGURES:
        first, second = (statistics.median(p[i][figure] for p in pairs) for i in (0, 1))
        ratio = statistics.median(p[1][figure] / p[0][figure] for p in pairs)
        print(f"{figure}: {first:,.4f} and {second:,.4f}; other / one {ratio:.3f}")


if __name__ == "__main__":
    main()
