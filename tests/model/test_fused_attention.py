"""cuDNN's attention kernel, on a GPU: the result and the gradients of XLA's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.model import transformer

V = 50
SIZES = {
    "model.num_layers": 2,
    "model.d_model": 64,
    "model.d_ff": 96,
    "model.num_heads": 2,
    "model.d_k": 32,
    "model.d_v": 32,
    "model.dtype": "bfloat16",
}


@pytest.mark.gpu
def test_cudnn_gives_the_loss_and_the_gradients_of_xla():
    batch = settings.random_batch(
        rows=8, source_length=24, target_length=32, vocab_size=V, seed=1
    )
    found = []
    for attention in ("xla", "cudnn"):
        model = settings.small_settings(**SIZES, **{"model.attention": attention}).model
        network = transformer.Transformer(model, V)
        params = settings.random_params(model, vocab_size=V, seed=2)

        def loss(params, network=network):
            # Fused only in training, which has no dropout here.
            logits = network.apply(
                {"params": params}, batch.source, batch.target_in, deterministic=False
            )
            real = (batch.target_out != 0)[..., None]
            return jnp.mean(jnp.where(real, logits, 0.0) ** 2)

        found.append(jax.jit(jax.value_and_grad(loss))(params))
    (loss_xla, by_xla), (loss_cudnn, by_cudnn) = found
    np.testing.assert_allclose(loss_cudnn, loss_xla, rtol=0.02)
    for one, other in zip(
        jax.tree.leaves(by_xla), jax.tree.leaves(by_cudnn), strict=True
    ):
        # Two bfloat16 computations: the direction and the size agree.
        one, other = np.ravel(one), np.ravel(other)
        scale = np.linalg.norm(one)
        assert np.linalg.norm(one - other) <= 0.05 * scale + 1e-6
