"""Judge hardware of one platform in a process of its own: JSON in, JSON out.

A process has one compiler for devices that are not here, and one set of variables.
"""

import dataclasses
import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import jax
import ml_collections

from vaswani_jax.core import compilation_cache, config, parsing, types
from vaswani_jax.data import batching
from vaswani_jax.hardware import topology, verdict
from vaswani_jax.hardware.workload import Shape, Workload


class WorkerError(Exception):
    """A process has ended without a verdict."""


def run(
    work: Workload, all_hardware: Sequence[topology.Hardware]
) -> list[dict[str, Any]]:
    """Judge some hardware in a process of its own, which logs to standard error.

    Args:
        work: The run.
        all_hardware: Hardware of one platform.

    Raises:
        ValueError: The settings cannot run there.
        WorkerError: The process has ended; its last lines say more.
    """
    request = {
        **vars(work),
        "settings": config.to_dict(work.settings),
        "vocab_size": _encode(work.vocab_size),
        "shapes": [
            (*dataclasses.astuple(shape.bucket), shape.batches) for shape in work.shapes
        ],
        "hardware": [hardware.name for hardware in all_hardware],
        "level": logging.getLogger("vaswani_jax").getEffectiveLevel(),
    }
    process = subprocess.run(
        [sys.executable, "-m", "vaswani_jax.hardware.worker"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=topology.environment(dict(os.environ)),
        check=False,
    )
    lines = process.stdout.splitlines()
    if process.returncode or not lines:
        names = ", ".join(request["hardware"])
        raise WorkerError(
            f"{names}: the compiler has ended with status {process.returncode}; its "
            "last lines are above"
        )
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise ValueError(answer["error"])
    return list(answer["verdicts"])


def _encode(vocab_size: types.VocabSize) -> Any:
    """Return V as JSON can hold it."""
    if isinstance(vocab_size, int):
        return vocab_size
    source, target, trees = vocab_size
    return source, target, trees and (trees.num_labels, trees.word_starts.hex())


def _decode(value: Any) -> types.VocabSize:
    """Return V as `_encode` wrote it."""
    if isinstance(value, int):
        return value
    source, target, trees = value
    if trees is None:
        return types.VocabSizes(source, target)
    num_labels, word_starts = trees
    word_starts = bytes.fromhex(word_starts)
    return types.VocabSizes(source, target, types.TreeIds(num_labels, word_starts))


def main() -> None:
    """Read a request from standard input, and print the answer as the last line."""
    request = json.load(sys.stdin.buffer)
    logging.basicConfig(format="%(message)s", level=logging.ERROR)
    logging.getLogger("vaswani_jax").setLevel(request["level"])
    compilation_cache.enable()
    # JAX cannot read programs for absent devices again: only our findings are kept.
    jax.config.update("jax_enable_compilation_cache", False)
    work = Workload(
        settings=parsing.parse(ml_collections.ConfigDict(request["settings"])),
        vocab_size=_decode(request["vocab_size"]),
        shapes=[
            Shape(bucket=batching.Bucket(*bucket), batches=batches)
            for *bucket, batches in request["shapes"]
        ],
        num_shapes=request["num_shapes"],
        target_tokens=request["target_tokens"],
        all_shapes=request["all_shapes"],
        dollars_per_hour=request["dollars_per_hour"],
    )
    try:
        verdicts = [
            verdict.judge(work, topology.parse(name)) for name in request["hardware"]
        ]
    except (ValueError, ImportError) as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"verdicts": verdicts}))


if __name__ == "__main__":
    main()
