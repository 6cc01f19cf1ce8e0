"""Our search on the fixed work of the peers' benchmark, timed on request.

Started by `against_peers.py --decode=N`; the protocol is `train_worker.py`'s.
"""

import argparse
import json
import sys

from configs import own_text
from vaswani_jax.benchmarks import decoding_speed
from vaswani_jax.core import cpu_allocator, parallel, parsing

VOCAB_SIZE, SOURCE, OUTPUT = 32_000, 25, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--worker", action="store_true")
    arguments = parser.parse_args()
    values = own_text.get_config("base")
    values.update_from_flattened_dict(
        {
            "data.source_locale": "en",
            "data.target_locale": "de",
            "search.beam_size": 4,
            "search.length_penalty": 0.6,
        }
    )
    # As every program does.
    cpu_allocator.keep_memory()
    parallel.disable_async_dispatch()
    timer = decoding_speed.make_timer(
        parsing.parse(values),
        vocab_size=VOCAB_SIZE,
        batch=arguments.batch,
        source_tokens=SOURCE,
        output_tokens=OUTPUT,
    )
    first = timer()
    for _ in range(arguments.warmup):
        timer()
    print("READY " + json.dumps({"first_step_s": first}), flush=True)
    for line in sys.stdin:
        if line.strip() != "GO":
            break
        print("T " + json.dumps({"s": timer()}), flush=True)


if __name__ == "__main__":
    main()
