"""The demo with one layer, small enough to be compiled for TPUs in seconds."""

from typing import Any

from configs import demo
from vaswani_jax.core import parsing
from vaswani_jax.data import batching
from vaswani_jax.hardware.workload import Shape, Workload

# On 8 chips, 13 rows each: no other axis has so many.
BUCKET = batching.Bucket(length=32, rows=8 * 13)


def run(**overrides: Any) -> Workload:
    """Return the demo with one layer a side, and one shape of batches."""
    values = demo.get_config()
    values.update_from_flattened_dict({"model.num_layers": 1, **overrides})
    settings = parsing.parse(values)
    return Workload(
        settings=settings,
        vocab_size=settings.data.vocab_size,
        shapes=[Shape(bucket=BUCKET, batches=0)],
        num_shapes=4,
        target_tokens=None,
        all_shapes=False,
        dollars_per_hour=2.0,
    )
