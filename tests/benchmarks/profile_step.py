"""Measure the time of a training step: jax.profiler's events, added up by kind.

    python -m tests.benchmarks.profile_step --shape=128x32x32 -- \
        --config=configs/own_text.py:small --config.data.source_locale=en \
        --config.data.target_locale=de

The flags after -- are a configuration's. Prints each kind of operation of the compiled
step (its name there, without the number), the largest first, with its share of all
operations' time on all threads. `--trace=DIR` keeps the trace for a viewer.
"""

import argparse
import collections
import contextlib
import pathlib
import re
import tempfile

import jax
from absl import flags
from ml_collections import config_flags

from vaswani_jax.benchmarks import training_speed
from vaswani_jax.core import cpu_allocator, parallel, parsing

CONFIG = config_flags.DEFINE_config_file("config", None, "What to train.")


def kind(name: str) -> str:
    """An operation's kind: `loop_add_fusion.12.clone` is a `loop_add_fusion`."""
    return re.sub(r"(\.(\d+|clone|remat\d*))+$", "", name)


def by_kind(path: pathlib.Path) -> collections.Counter[str]:
    """Nanoseconds of each kind of operation in a trace, over all threads."""
    spent: collections.Counter[str] = collections.Counter()
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    spent[kind(str(stats["hlo_op"]))] += int(event.duration_ns)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", required=True, help="ROWSxSOURCExTARGET")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--kinds", type=int, default=12, help="how many to print")
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("flags", nargs="+")
    arguments = parser.parse_args()
    flags.FLAGS(["profile_step", *arguments.flags])
    settings = parsing.parse(CONFIG.value)
    # As every program does.
    cpu_allocator.keep_memory()
    parallel.disable_async_dispatch()
    vocab_size = settings.data.vocab_size
    batch = training_speed.same_batch(
        arguments.shape, settings.model, vocab_size=vocab_size
    )(0)
    timer = training_speed.make_timer(
        settings, vocab_size=vocab_size, num_microbatches=1
    )
    for _ in range(2):  # the first one compiles, the second one warms caches
        timer.seconds(batch)
    with contextlib.ExitStack() as stack:
        directory = arguments.trace or stack.enter_context(
            tempfile.TemporaryDirectory()
        )
        with jax.profiler.trace(str(directory)):
            seconds = [timer.seconds(batch)[0] for _ in range(arguments.steps)]
        newest = max(pathlib.Path(directory).rglob("*.xplane.pb"))
        spent = by_kind(newest)
    total = sum(spent.values())
    print(f"{arguments.steps} steps, {min(seconds):.3f} to {max(seconds):.3f} s")
    for name, time in spent.most_common(arguments.kinds):
        print(f"{time / total:6.1%}  {name}")


if __name__ == "__main__":
    main()
