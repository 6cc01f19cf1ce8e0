"""A tiny run with two shapes of batches, to be judged."""

from typing import Any

from tests import settings
from vaswani_jax.data import batching
from vaswani_jax.hardware.workload import Shape, Workload

V = 40
SHORT, LONG = batching.Bucket(64, 8, 8), batching.Bucket(64, 16, 16)


def run_of(**overrides: Any) -> Workload:
    return Workload(
        settings=settings.small_settings(**overrides),
        vocab_size=V,
        shapes=[Shape(bucket=SHORT, batches=5), Shape(bucket=LONG, batches=2)],
        num_shapes=3,
        target_tokens=100.0,
        all_shapes=False,
        dollars_per_hour=None,
    )
