"""The model's parameters: how many, and which."""

import math
from typing import Any

import jax
import pytest

from tests.model import small
from vaswani_jax.core import config


def initial_shapes(model: config.ModelConfig, *, vocab_size: int) -> Any:
    return jax.eval_shape(lambda: small.initial_params(model, vocab_size=vocab_size))


def count(tree: Any) -> int:
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


# Embedding V d_model; attention 4 d_model^2; feed-forward 2 d_model d_ff and its
# biases; 2 d_model for each of 2 + 3 normalisations.
@pytest.mark.parametrize(
    ("d_model", "d_ff", "num_heads", "stacks", "total"),
    [
        (512, 2048, 8, 44_101_632, 63_045_632),
        (1024, 4096, 16, 176_283_648, 214_171_648),
    ],
    ids=["base", "big"],
)
def test_parameter_count_is_the_closed_form(
    d_model: int, d_ff: int, num_heads: int, stacks: int, total: int
) -> None:
    sizes = {"num_layers": 6, "d_model": d_model, "d_ff": d_ff}
    sizes |= {"num_heads": num_heads, "d_k": 64, "d_v": 64}
    model = small.small_model(**{f"model.{key}": size for key, size in sizes.items()})
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    layers = 3 * attention + 2 * feed_forward + 5 * 2 * d_model
    assert 6 * layers == stacks
    assert stacks + 37_000 * d_model == total
    params = initial_shapes(model, vocab_size=37_000)
    assert count(params) == total
    assert count({"encoder": params["encoder"], "decoder": params["decoder"]}) == stacks


@pytest.mark.parametrize("variant", [small.VARIANTS[0], small.PRE_LEARNED])
def test_parameters_are_those_of_the_paper_and_no_other(
    variant: dict[str, str],
) -> None:
    model = small.small_model(**variant)
    D, F, H = model.d_model, model.d_ff, model.num_heads
    looking = {name: {"kernel": (D, H, model.d_k)} for name in ("query", "key")}
    looking |= {"value": {"kernel": (D, H, model.d_v)}}
    looking |= {"output": {"kernel": (H, model.d_v, D)}}
    feeding = {
        "inner": {"kernel": (D, F), "bias": (F,)},
        "outer": {"kernel": (F, D), "bias": (D,)},
    }
    norm = {"scale": (D,), "bias": (D,)}
    encoder_layer = {"self_attention": looking, "feed_forward": feeding}
    decoder_layer = encoder_layer | {"memory_attention": looking}
    expected: dict[str, Any] = {"embedding": {"embedding": (small.V, D)}}
    for stack, layer in (("encoder", encoder_layer), ("decoder", decoder_layer)):
        residuals = {f"{name}_residual": {"norm": norm} for name in layer}
        names = [f"layers_{n}" for n in range(model.num_layers)]
        expected[stack] = dict.fromkeys(names, layer | residuals)
        if variant == small.PRE_LEARNED:
            expected[stack] |= {"final_norm": norm}
    if variant == small.PRE_LEARNED:
        for side in ("source", "target"):
            table = (model.max_positions, D)
            expected[f"{side}_positions"] = {"embedding": table}
    shapes = jax.tree.map(lambda x: x.shape, initial_shapes(model, vocab_size=small.V))
    assert shapes == expected
