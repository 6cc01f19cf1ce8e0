"""Our training step on the fixed work of the peers' benchmark, timed on request.

Started by `against_peers.py`: warms up, prints `READY {...}`, then times one step for
every line `GO` on standard input and answers `T {...}`.
"""

import argparse
import json
import sys
import time

from configs import own_text
from vaswani_jax.benchmarks import training_speed
from vaswani_jax.core import cpu_allocator, parallel, parsing
from vaswani_jax.model import cost

# name: layers, d_model, d_ff, heads, vocabulary, rows, tokens of a row and side.
SIZES = {
    "tiny": (4, 128, 256, 4, 10_000, 128, 32),
    "base": (6, 512, 2048, 8, 32_000, 32, 32),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--task", choices=["train"], default="train")
    parser.add_argument("--dropout", choices=["paper", "everywhere"], default="paper")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()

    layers, d_model, d_ff, heads, vocab_size, rows, length = SIZES[arguments.size]
    rate = 0.1 if arguments.dropout == "everywhere" else 0.0
    values = own_text.get_config("base")
    values.update_from_flattened_dict(
        {
            "data.source_locale": "en",
            "data.target_locale": "de",
            "model.num_layers": layers,
            "model.d_model": d_model,
            "model.d_ff": d_ff,
            "model.num_heads": heads,
            "model.d_k": d_model // heads,
            "model.d_v": d_model // heads,
            "model.attention_dropout_rate": rate,
            "model.relu_dropout_rate": rate,
        }
    )
    settings = parsing.parse(values)
    # As every program does.
    cpu_allocator.keep_memory()
    parallel.disable_async_dispatch()
    batch = training_speed.random_batch(
        rows=rows, source=length, target=length, vocab_size=vocab_size, seed=0
    )
    timer = training_speed.make_timer(
        settings, vocab_size=vocab_size, num_microbatches=1
    )
    start_time = time.perf_counter()
    timer.seconds(batch)
    first = time.perf_counter() - start_time
    for _ in range(arguments.warmup):
        timer.seconds(batch)
    work = cost.update_flops(
        settings.model, vocab_size=vocab_size, rows=rows, source=length, target=length
    )
    record = {
        "peer": "vaswani_jax",
        "info": {
            "dropout": arguments.dropout,
            "params": cost.count_parameters(settings.model, vocab_size=vocab_size),
        },
        "first_step_s": first,
        "work": {"target_tokens": rows * length, "flops": work},
    }
    if not arguments.worker:
        seconds = sorted(timer.seconds(batch)[0] for _ in range(arguments.repeats))
        print(*(f"{value:.4f}" for value in seconds))
        return
    print("READY " + json.dumps(record), flush=True)
    for line in sys.stdin:
        if not line.startswith("GO"):
            break
        print("T " + json.dumps({"s": timer.seconds(batch)[0]}), flush=True)


if __name__ == "__main__":
    main()
