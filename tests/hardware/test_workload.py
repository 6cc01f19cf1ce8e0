"""The shapes of a run that are judged."""

import dataclasses

from tests import settings
from vaswani_jax.data import batching
from vaswani_jax.hardware import workload
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


def test_batches_of_usual_sentences_stand_for_unknown_ones() -> None:
    short = settings.small_settings(**{"data.max_length": 16}).data
    assert workload.usual_bucket(short) == batching.Bucket(8, 16, 16)
    long = dataclasses.replace(short, max_length=64)
    assert workload.usual_bucket(long) == batching.Bucket(4, 32, 32)
    packed = dataclasses.replace(long, batching="packed", packed_length=128)
    assert workload.usual_bucket(packed) == batching.Bucket(1, 128, 128)
