"""The demo in bfloat16 with one layer: compiled for TPUs in seconds."""

from typing import Any

from configs import demo
from vaswani_jax.core import parsing
from vaswani_jax.data import batching
from vaswani_jax.hardware.workload import Shape, Workload

# No other axis has so many.
ROWS_OF_A_CHIP = 13


def run(*, num_chips: int = 8, **overrides: Any) -> Workload:
    """Return that demo, with one layer a side and one shape of batches."""
    bucket = batching.Bucket(num_chips * ROWS_OF_A_CHIP, 32, 32)
    values = demo.get_config()
    changes = {"model.num_layers": 1, "model.dtype": "bfloat16", **overrides}
    values.update_from_flattened_dict(changes)
    settings = parsing.parse(values)
    return Workload(
        settings=settings,
        vocab_size=settings.data.vocab_size,
        shapes=[Shape(bucket=bucket, batches=0)],
        num_shapes=4,
        target_tokens=None,
        all_shapes=False,
        dollars_per_hour=2.0,
    )
