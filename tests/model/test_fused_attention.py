"""cuDNN's attention kernel, on a GPU: the loss and the gradients of XLA's."""

import jax
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import parallel, types
from vaswani_jax.training import step

V = 50
SIZES = {
    "model.d_model": 64,
    "model.d_ff": 96,
    "model.num_heads": 2,
    "model.d_k": 32,
    "model.d_v": 32,
}


def ragged_batch(seed: int) -> types.Batch:
    """Sentences of all lengths, and at the end rows of padding alone."""
    batch = settings.random_batch(
        rows=6, source_length=24, target_length=32, vocab_size=V, seed=seed
    )
    return jax.tree.map(lambda leaf: np.pad(leaf, [(0, 2), (0, 0)]), batch)


def packed_batch() -> types.Batch:
    """Two sentences in each row, with padding after either."""
    parts = [ragged_batch(seed) for seed in (1, 2)]

    def joined(side: str) -> np.ndarray:
        return np.concatenate([getattr(part, side) for part in parts], axis=1)

    def segments(side: str) -> np.ndarray:
        tokens = [getattr(part, side) for part in parts]
        numbers = [(ids != 0) * number for number, ids in enumerate(tokens, start=1)]
        return np.concatenate(numbers, axis=1).astype(np.int32)

    sides = map(joined, ("source", "target_in", "target_out"))
    both = types.Segments(segments("source"), segments("target_in"))
    return types.Batch(*sides, both)


CASES = {
    "ragged": (ragged_batch(1), {}),
    "packed": (packed_batch(), {}),
    "rematerialised": (ragged_batch(3), {"model.rematerialize": True}),
}


def check_agreement(case: str, *, attention: str, dtypes: tuple[str, str]) -> None:
    """An update by `attention` is one by XLA's, as far as bfloat16 can tell."""
    batch, changes = CASES[case]
    found = []
    for implementation, dtype in zip(("xla", attention), dtypes, strict=True):
        choice = {"model.attention": implementation, "model.dtype": dtype}
        small = settings.small_settings(**SIZES, **changes, **choice)
        run = parallel.over_devices(
            step.train_step(small, vocab_size=V, parts=1), donate_state=False
        )
        state = parallel.replicate(step.create_state(small, vocab_size=V))
        found.append(run(state, parallel.split_rows(batch, multiple=1)))
    (by_xla, metrics), (by_other, others) = found
    assert float(metrics.sums.tokens) == float(others.sums.tokens) > 0
    np.testing.assert_allclose(others.sums.loss, metrics.sums.loss, rtol=0.02)
    gradients = (jax.tree.leaves(state.opt_state[0].mu) for state in (by_xla, by_other))
    for one, other in zip(*gradients, strict=True):
        # The direction and the size agree; a NaN would not.
        one, other = np.ravel(one), np.ravel(other)
        assert np.linalg.norm(one) > 0
        assert np.linalg.norm(one - other) <= 0.1 * np.linalg.norm(one)


@pytest.mark.parametrize("case", CASES)
def test_bfloat16_gives_the_loss_and_the_gradients_of_float32(case):
    check_agreement(case, attention="xla", dtypes=("float32", "bfloat16"))


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_cudnn_gives_the_loss_and_the_gradients_of_xla(case):
    check_agreement(case, attention="cudnn", dtypes=("bfloat16", "bfloat16"))
