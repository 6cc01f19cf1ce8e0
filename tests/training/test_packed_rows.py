"""Packed rows train as their pairs do in rows of their own."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.training import short_pairs
from vaswani_jax.core import parallel
from vaswani_jax.model import transformer
from vaswani_jax.training import loss, optimizer
from vaswani_jax.training import step as training_step


@pytest.fixture(params=["sinusoidal", "learned"])
def model(request):
    changes = {"model.num_layers": 2, "model.positional_encoding": request.param}
    small = settings.small_settings(**changes)
    # As many positions as the separate rows need; a packed row is longer.
    return dataclasses.replace(small.model, max_positions=7)


def logits_of(model, params, batch):
    batch = jax.tree.map(jax.numpy.asarray, batch)
    network = transformer.Transformer(model, short_pairs.V)
    return jax.jit(functools.partial(network.apply, deterministic=True))(
        {"params": params}, batch.source, batch.target_in, segments=batch.segments
    )


def test_each_pair_of_a_packed_row_has_the_logits_and_the_loss_it_has_alone(model):
    params = settings.random_params(model, vocab_size=short_pairs.V, seed=1)
    separate, packed = short_pairs.separate_batch(), short_pairs.packed_batch()
    alone, together = (logits_of(model, params, b) for b in (separate, packed))
    for row, pairs in enumerate(short_pairs.PACKED_ROWS):
        for number, pair in enumerate(pairs, start=1):
            mask = packed.segments.target[row] == number
            length = len(short_pairs.PAIRS[pair][1])
            np.testing.assert_allclose(
                together[row][mask], alone[pair, :length], rtol=1e-4, atol=1e-5
            )
            sums = [
                loss.smoothed_cross_entropy(
                    logits, jax.numpy.asarray(ids), label_smoothing=0.1
                )
                for logits, ids in (
                    (together[row][mask], packed.target_out[row][mask]),
                    (alone[pair], separate.target_out[pair]),
                )
            ]
            np.testing.assert_allclose(sums[0].loss, sums[1].loss, rtol=1e-5)


@pytest.mark.parametrize(
    "model",
    ["sinusoidal", pytest.param("learned", marks=pytest.mark.slow)],
    indirect=True,
)
def test_an_update_from_packed_rows_is_that_from_separate_rows(model):
    small = dataclasses.replace(settings.small_settings(), model=model)
    run = parallel.over_devices(
        training_step.train_step(small, vocab_size=short_pairs.V, num_microbatches=1),
        donate_state=False,
    )
    params = settings.random_params(model, vocab_size=short_pairs.V, seed=1)
    opt_state = optimizer.make_optimizer(small).init(params)
    state = parallel.replicate(
        training_step.TrainState(jnp.int32(0), params, opt_state, None)
    )
    results = [
        run(state, parallel.split_rows(batch, num_microbatches=1))
        for batch in (short_pairs.separate_batch(), short_pairs.packed_batch())
    ]
    (separate, separate_metrics), (packed, packed_metrics) = results
    np.testing.assert_allclose(
        separate_metrics.sums.loss, packed_metrics.sums.loss, rtol=1e-5
    )
    assert (
        float(separate_metrics.sums.tokens) == float(packed_metrics.sums.tokens) == 10
    )
    # The gradients, before Adam's division makes noise of what is nearly zero.
    for moment, same in zip(
        jax.tree.leaves(separate.opt_state[0].mu),
        jax.tree.leaves(packed.opt_state[0].mu),
        strict=True,
    ):
        np.testing.assert_allclose(moment, same, rtol=1e-3, atol=1e-7)
