"""The ids are SentencePiece's, batches pass through jax, and NEVER is harmless."""

import jax
import jax.numpy as jnp
import numpy as np
import sentencepiece

from tests import settings
from vaswani_jax.core import types

B, S, T = 2, 3, 5


def batch(*, is_packed: bool) -> types.Batch:
    """Return a batch whose token ids are all different."""
    source, target_in, target_out = (
        np.arange(B * length, dtype=np.int32).reshape(B, length) + start
        for length, start in ((S, 0), (T, 100), (T, 200))
    )
    segments = types.Segments(source + 300, target_in + 300) if is_packed else None
    return types.Batch(source, target_in, target_out, segments)


def test_special_ids_are_those_of_the_subword_model() -> None:
    model = settings.letters_vocabulary().source.model
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert processor.pad_id() == types.PAD_ID
    assert processor.bos_id() == types.BOS_ID
    assert processor.eos_id() == types.EOS_ID
    assert processor.unk_id() == types.UNK_ID


def test_a_token_that_never_comes_has_no_probability_and_gives_no_nan() -> None:
    probabilities = jax.nn.softmax(jnp.array([0.5, types.NEVER, -0.5]))
    assert probabilities[1] == 0
    sigmoid = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(probabilities[::2], [sigmoid, 1 - sigmoid], rtol=1e-6)
    for dtype in ("float32", "bfloat16"):
        # A row of them has a softmax; one of -inf has none.
        row = jnp.full(4, types.NEVER, dtype)
        np.testing.assert_allclose(np.float32(jax.nn.softmax(row)), 0.25)
        assert jnp.isnan(jax.nn.softmax(jnp.full(4, -jnp.inf, dtype))).all()


def test_a_batch_passes_through_compiled_functions_packed_or_not() -> None:
    for is_packed, leaves in ((False, 3), (True, 5)):
        original = batch(is_packed=is_packed)
        assert len(jax.tree.leaves(original)) == leaves
        result = jax.jit(lambda rows: jax.tree.map(lambda ids: ids + 1, rows))(original)
        assert isinstance(result, types.Batch)
        assert (result.segments is not None) == is_packed
        jax.tree.map(
            lambda after, before: np.testing.assert_array_equal(after, before + 1),
            result,
            original,
        )
