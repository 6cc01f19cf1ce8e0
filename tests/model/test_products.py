"""Products in float32 of arrays of any dtype, and their derivatives."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.training import updates
from vaswani_jax.core import parallel
from vaswani_jax.inference import generate
from vaswani_jax.model import products
from vaswani_jax.training import step as training_step

SCORES, LOGITS = "bqhd,bkhd->bhqk", "...m,vm->...v"
SHAPES = {SCORES: ((2, 3, 4, 5), (2, 6, 4, 5)), LOGITS: ((2, 3, 5), (7, 5))}


def arrays(subscripts: str, dtype: str) -> list[jax.Array]:
    """Two arrays and the gradient of their product."""
    generator = np.random.default_rng(1)
    left, right = (generator.normal(size=shape) for shape in SHAPES[subscripts])
    gradient = generator.normal(size=np.einsum(subscripts, left, right).shape)
    return [jnp.asarray(left, dtype), jnp.asarray(right, dtype), jnp.float32(gradient)]


@pytest.mark.parametrize("subscripts", SHAPES)
def test_in_float32_all_bits_are_those_of_jax(subscripts: str) -> None:
    left, right, gradient = arrays(subscripts, "float32")

    def derived(product):  # type: ignore[no-untyped-def]
        value, derivative = jax.vjp(product, left, right)
        return value, derivative(gradient)

    result = derived(lambda a, b: products.einsum(subscripts, a, b))
    expected = derived(lambda a, b: jnp.einsum(subscripts, a, b))
    jax.tree.map(np.testing.assert_array_equal, result, expected)


@pytest.mark.parametrize("subscripts", SHAPES)
def test_in_bfloat16_result_and_derivative_are_those_of_the_rounded_numbers(
    subscripts: str,
) -> None:
    left, right, gradient = arrays(subscripts, "bfloat16")
    value, derivative = jax.vjp(
        lambda a, b: products.einsum(subscripts, a, b), left, right
    )
    exact_left, exact_right = (np.asarray(a, np.float64) for a in (left, right))
    assert value.dtype == jnp.float32
    # Rounded to 24 bits, where bfloat16 has 8.
    expected = np.einsum(subscripts, exact_left, exact_right)
    np.testing.assert_allclose(value, expected, atol=1e-5)
    rounded = np.asarray(gradient.astype(jnp.bfloat16), np.float64)
    if subscripts == LOGITS:
        first = np.einsum("abv,vm->abm", rounded, exact_right)
        second = np.einsum("abv,abm->vm", rounded, exact_left)
    else:
        first = np.einsum("bhqk,bkhd->bqhd", rounded, exact_right)
        second = np.einsum("bhqk,bqhd->bkhd", rounded, exact_left)
    for operand_gradient, exact in zip(
        derivative(gradient), (first, second), strict=True
    ):
        assert operand_gradient.dtype == jnp.bfloat16
        np.testing.assert_allclose(
            np.asarray(operand_gradient, np.float64), exact, rtol=2**-8, atol=1e-6
        )


def lowered_programs(dtype: str) -> str:
    """Return the text of an update, an evaluation and a search, as they are lowered."""
    settings_ = settings.small_settings(**{"model.dtype": dtype})
    state = updates.random_state(settings_, seed=1)
    batch = updates.shared_among(updates.random_batch(2), 8)
    options = {"vocab_size": updates.V}
    update = training_step.train_step(settings_, num_microbatches=1, **options)
    loss_step = training_step.loss_step(settings_, **options)
    search = generate.make_generator(settings_, (settings_.model,), n_best=1, **options)
    rows = generate.Rows(
        batch.source, np.zeros((8, 6, 0), np.int32), np.ones((8, 6, 2), np.int32)
    )
    compiled: list[tuple[Any, Any, Any]] = [
        (parallel.over_devices(update, donate_state=False), state, batch),
        (parallel.over_devices(loss_step, donate_state=False), state.params, batch),
        (parallel.over_rows(search), (state.params,), rows),
    ]
    return "\n".join(
        program.lower(*arguments).as_text() for program, *arguments in compiled
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_accelerators_multiply_float32_as_float32(platform: str, dtype: str) -> None:
    """Their default is fewer bits; a CPU's is not."""
    with parallel.targeting(platform):
        text = lowered_programs(dtype)
    dots = re.findall(r"stablehlo\.dot_general .*", text)
    assert len(dots) > 60
    exact = [each for each in dots if "precision = [HIGHEST, HIGHEST]" in each]
    is_exact = dtype == "float32" and platform != "cpu"
    assert len(exact) == (len(dots) if is_exact else 0)
