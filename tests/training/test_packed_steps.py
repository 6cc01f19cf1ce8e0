"""A packed row computes what its pairs compute alone."""

import dataclasses

import jax
import numpy as np
import pytest

from tests import settings
from tests.training.short_pairs import PAIRS, separate_batch
from vaswani_jax.core import parallel, types
from vaswani_jax.model import transformer
from vaswani_jax.training import loss, step

V = 23
# Rows of the packed batch, by pair; the last is padding.
ROWS = [[0, 1], [2], []]


def packed_batch():
    arrays = [np.zeros((4, 9), np.int32) for _ in range(5)]
    source, target_in, target_out, of_source, of_target = arrays
    for row, pairs in enumerate(ROWS):
        s = t = 0
        for number, pair in enumerate(pairs, start=1):
            words, translation = PAIRS[pair]
            source[row, s : s + len(words)] = words
            of_source[row, s : s + len(words)] = number
            end = t + len(translation)
            target_in[row, t:end] = [types.BOS_ID, *translation[:-1]]
            target_out[row, t:end] = translation
            of_target[row, t:end] = number
            s, t = s + len(words), end
    segments = types.Segments(of_source, of_target)
    return types.Batch(source, target_in, target_out, segments)


@pytest.fixture(params=["sinusoidal", "learned"])
def model(request):
    changes = {"model.num_layers": 2, "model.positional_encoding": request.param}
    found = settings.small_settings(**changes).model
    # As many as the separate rows need; a packed row is longer.
    return dataclasses.replace(found, max_positions=7)


def logits_of(model, params, batch):
    batch = jax.tree.map(jax.numpy.asarray, batch)
    return transformer.Transformer(model, V).apply(
        {"params": params},
        batch.source,
        batch.target_in,
        segments=batch.segments,
        deterministic=True,
    )


def test_each_pair_of_a_packed_row_has_the_logits_and_the_loss_it_has_alone(model):
    params = settings.random_params(model, vocab_size=V, seed=1)
    separate, packed = separate_batch(), packed_batch()
    alone, together = (logits_of(model, params, b) for b in (separate, packed))
    for row, pairs in enumerate(ROWS):
        for number, pair in enumerate(pairs, start=1):
            own = packed.segments.target[row] == number
            length = len(PAIRS[pair][1])
            np.testing.assert_allclose(
                together[row][own], alone[pair, :length], rtol=1e-4, atol=1e-5
            )
            sums = [
                loss.smoothed_cross_entropy(
                    logits, jax.numpy.asarray(ids), label_smoothing=0.1
                )
                for logits, ids in (
                    (together[row][own], packed.target_out[row][own]),
                    (alone[pair], separate.target_out[pair]),
                )
            ]
            np.testing.assert_allclose(sums[0].loss, sums[1].loss, rtol=1e-5)


def test_an_update_from_packed_rows_is_that_from_separate_rows(model):
    settings_ = dataclasses.replace(settings.small_settings(), model=model)
    run = parallel.over_devices(
        step.train_step(settings_, vocab_size=V, num_microbatches=1), donate_state=False
    )
    state = parallel.replicate(step.create_state(settings_, vocab_size=V))
    results = [
        run(state, parallel.split_rows(batch, num_microbatches=1))
        for batch in (separate_batch(), packed_batch())
    ]
    (one, of_one), (other, of_other) = results
    np.testing.assert_allclose(of_one.sums.loss, of_other.sums.loss, rtol=1e-5)
    assert float(of_one.sums.tokens) == float(of_other.sums.tokens) == 10
    # The gradients, before Adam's division makes noise of what is nearly zero.
    for moment, same in zip(
        jax.tree.leaves(one.opt_state[0].mu),
        jax.tree.leaves(other.opt_state[0].mu),
        strict=True,
    ):
        np.testing.assert_allclose(moment, same, rtol=1e-3, atol=1e-7)
