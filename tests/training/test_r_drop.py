"""R-Drop adds the divergence between two draws of dropout to the loss."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests import settings
from tests.training import updates
from vaswani_jax.model import transformer
from vaswani_jax.training import optimizer


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
                    rngs={"dropout": dropout_key},
                )
            )
            for dropout_key in (key, jax.random.fold_in(key, 1))
        )
        likelihood = jnp.sum(
            jax.nn.one_hot(batch.target_out, updates.V) * jnp.log(p * q), -1
        )
        divergence = jnp.sum(p * jnp.log(p / q) + q * jnp.log(q / p), -1)
        each = (-likelihood + alpha / 2 * divergence) / 2
        return jnp.sum(jnp.where(real, each, 0)) / jnp.sum(real)

    gradients = jax.jit(jax.grad(objective))(state.params)
    new_state, metrics = updates.on_one(settings_)(
        state, updates.shared_among(batch, 1)
    )
    adam = optimizer.adam(settings_)
    expected, _ = adam.update(gradients, state.opt_state, state.params)
    changes = jax.tree.map(lambda new, old: new - old, new_state.params, state.params)
    updates.assert_close(changes, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        metrics.gradient_norm,
        np.sqrt(sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(gradients))),
        rtol=1e-4,
    )
