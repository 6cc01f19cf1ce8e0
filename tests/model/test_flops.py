"""The formula of the operations, against XLA's own count."""

import jax
import jax.numpy as jnp
import pytest

from tests import settings
from vaswani_jax.model import cost, transformer

B, S, T, V = 3, 20, 28, 700
WIDE = {
    "model.num_layers": 2,
    "model.d_model": 96,
    "model.d_ff": 320,
    "model.num_heads": 2,
    "model.d_k": 40,
    "model.d_v": 56,
}


def xla_count(model, changes, *, gradient):
    """Operations in XLA's cost analysis of the program before optimisation."""
    network = transformer.Transformer(model, V)
    source, target = jnp.ones((B, S), jnp.int32), jnp.ones((B, T), jnp.int32)
    params = jax.eval_shape(
        lambda: network.init(jax.random.key(0), source, target, deterministic=True)
    )

    def forward(params):
        logits = network.apply(params, source, target, deterministic=True)
        return (logits**2).sum()  # whose gradient is no constant

    program = jax.grad(forward) if gradient else forward
    return jax.jit(program).lower(params).cost_analysis()["flops"]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("changes", [{}, {"model.num_layers": 3}, {"model.d_ff": 500}])
def test_the_formula_counts_what_xla_counts(changes, gradient):
    model = settings.small_settings(**(WIDE | changes)).model
    size = {"vocab_size": V, "rows": B, "source": S, "target": T}
    count = cost.update_flops if gradient else cost.forward_flops
    # XLA counts the element-wise operations, too: 1 per cent at these widths.
    ratio = xla_count(model, changes, gradient=gradient) / count(model, **size)
    assert 1 < ratio < 1.03


def test_the_base_model_has_the_operations_that_its_parameters_say():
    """Two for each weight and token forward; the lookups are none."""
    base = {
        "model.num_layers": 6,
        "model.d_model": 512,
        "model.d_ff": 2048,
        "model.num_heads": 8,
        "model.d_k": 64,
        "model.d_v": 64,
    }
    model = settings.small_settings(**base).model
    encoder = 6 * (4 * 512**2 + 2 * 512 * 2048)
    decoder = 6 * (8 * 512**2 + 2 * 512 * 2048)
    weights = encoder + decoder + 37_000 * 512
    # One token a side: attention between tokens is next to nothing.
    found = cost.forward_flops(model, vocab_size=37_000, rows=1, source=1, target=1)
    assert found == pytest.approx(2 * weights, rel=1e-3)
