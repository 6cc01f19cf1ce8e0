"""One update's randomness: what drops what, and R-Drop's two draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.training import updates
from vaswani_jax.core import config, types
from vaswani_jax.model import transformer
from vaswani_jax.training import optimizer


def test_the_same_seed_and_step_drop_the_same() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    state = updates.random_state(settings_, seed=17)
    rows = updates.shared_among(updates.random_batch(18), 8)
    first, again = (updates.on_eight(settings_)(state, rows) for _ in range(2))
    updates.assert_equal(again, first)


def test_another_step_or_seed_drops_differently() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    rows = updates.shared_among(updates.random_batch(19), 8)

    def loss_of(settings_: config.Config, made: int) -> float:
        state = updates.random_state(settings_, seed=20, made=made)
        _, metrics = updates.on_eight(settings_)(state, rows)
        return float(metrics.sums.loss)

    other_seed = settings.small_settings(**updates.DROPPING, seed=2)
    found = [loss_of(settings_, 0), loss_of(settings_, 1), loss_of(other_seed, 0)]
    assert len(set(found)) == 3


# Which rows of the six on each of eight devices hold the one sentence.
@pytest.mark.parametrize(
    ("few", "many"),
    [
        (np.s_[:1, 0], np.s_[:, 0]),  # the first device, all devices
        (np.s_[:, 0], np.s_[:, ::2]),  # the first of three parts, all of them
        (np.s_[:, 0], np.s_[:, :2]),  # one row of a part, both of them
    ],
    ids=["devices", "parts", "rows"],
)
def test_copies_of_a_sentence_drop_differently(few: Any, many: Any) -> None:
    """If all dropped the same, losses would be as many times larger as the tokens."""
    sentence = updates.random_batch(21, rows=1)

    def copied(where: Any) -> types.Batch:
        def copy(side: np.ndarray) -> np.ndarray:
            rows = np.zeros((8, updates.ROWS // 8, side.shape[1]), np.int32)
            rows[where] = side[0]
            return rows

        return jax.tree.map(copy, sentence)

    def per_token(overrides: dict[str, Any], where: Any) -> float:
        settings_ = settings.small_settings(**overrides)
        state = updates.random_state(settings_, seed=22)
        sums = updates.on_eight(settings_)(state, copied(where))[1].sums
        return float(sums.loss) / float(sums.tokens)

    smooth = {**updates.SMOOTH, **updates.PARTS}
    np.testing.assert_allclose(
        per_token(smooth, many), per_token(smooth, few), rtol=1e-5
    )
    assert (
        abs(per_token(updates.DROPPING, many) / per_token(updates.DROPPING, few) - 1)
        > 1e-3
    )


def test_r_drop_is_the_loss_of_its_paper_on_two_draws() -> None:
    """-log P1(y) - log P2(y) + alpha (KL(P1||P2) + KL(P2||P1)) / 2, halved."""
    alpha = 5.0
    settings_ = settings.small_settings(
        **{"model.dropout_rate": 0.3, "training.label_smoothing": 0.0},
        **{"training.r_drop": alpha, "optimizer.learning_rate_scale": 10.0},
        **{"optimizer.epsilon": 1.0},
    )
    state = updates.random_state(settings_, seed=24)
    batch = updates.random_batch(23, rows=4)
    model = transformer.Transformer(settings_.model, updates.V)
    # The keys of device 0 at step 0: stream 1 of the seed, the step, the device.
    key = jax.random.key(settings_.seed)
    for part in (1, 0, 0):
        key = jax.random.fold_in(key, part)
    source, target_in = jnp.asarray(batch.source), jnp.asarray(batch.target_in)
    real = batch.target_out != 0

    def objective(params: Any) -> Any:
        p, q = (
            jax.nn.softmax(
                model.apply(
                    {"params": params},
                    source,
                    target_in,
                    deterministic=False,
                    rngs={"dropout": one},
                )
            )
            for one in (key, jax.random.fold_in(key, 1))
        )
        likelihood = jnp.sum(
            jax.nn.one_hot(batch.target_out, updates.V) * jnp.log(p * q), -1
        )
        apart = jnp.sum(p * jnp.log(p / q) + q * jnp.log(q / p), -1)
        each = (-likelihood + alpha / 2 * apart) / 2
        return jnp.sum(jnp.where(real, each, 0)) / jnp.sum(real)

    gradients = jax.grad(objective)(state.params)
    found, metrics = updates.on_one(settings_)(state, updates.shared_among(batch, 1))
    adam = optimizer.adam(settings_)
    expected, _ = adam.update(gradients, state.opt_state, state.params)
    changes = jax.tree.map(lambda new, old: new - old, found.params, state.params)
    updates.assert_close(changes, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        metrics.gradient_norm,
        np.sqrt(sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(gradients))),
        rtol=1e-4,
    )
