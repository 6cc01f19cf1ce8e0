"""The shapes of a run that are judged."""

import dataclasses

from tests import settings
from vaswani_jax.data import batching
from vaswani_jax.hardware.workload import Shape, Workload


def test_the_commonest_shape_is_judged_or_all() -> None:
    short, long = batching.Bucket(64, 8, 8), batching.Bucket(32, 16, 16)
    work = Workload(
        settings=settings.small_settings(),
        vocab_size=40,
        shapes=[Shape(bucket=short, batches=2), Shape(bucket=long, batches=3)],
        num_shapes=2,
        target_tokens=None,
        all_shapes=False,
        dollars_per_hour=None,
    )
    assert work.commonest == long
    assert work.judged == [long]
    assert dataclasses.replace(work, all_shapes=True).judged == [short, long]
