"""Operations against XLA's count, parameters against the models of table 3."""

import math

import jax
import jax.numpy as jnp
import pytest

from configs import table3
from tests import settings
from vaswani_jax.core import parsing
from vaswani_jax.model import cost, transformer
from vaswani_jax.paper import printed
from vaswani_jax.training import step

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
@pytest.mark.parametrize(
    "changes",
    [{}, {"model.num_encoder_layers": 3}, {"model.d_ff": 500}],
)
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
    flops = cost.forward_flops(model, vocab_size=37_000, rows=1, source=1, target=1)
    assert flops == pytest.approx(2 * weights, rel=1e-3)


TABLE3_V = 37_000


def model_of(row):
    return parsing.parse(table3.get_config(row)).model


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_count_of_every_row_is_that_of_the_model_it_builds(row):
    config = parsing.parse(table3.get_config(row))
    shapes = transformer.param_shapes(config.model, TABLE3_V)
    built = sum(map(math.prod, shapes.values()))
    assert cost.count_parameters(config.model, vocab_size=TABLE3_V) == built


@pytest.mark.parametrize(
    "changes",
    [
        {"model.layer_norm_position": "pre"},
        {"model.num_encoder_layers": 3, "model.attention_bias": True},
        {"model.num_decoder_layers": 3},
    ],
)
def test_models_of_other_kinds_are_counted_too(changes):
    small = settings.small_settings(**changes)
    state = jax.eval_shape(lambda: step.create_state(small, vocab_size=30))
    built = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    assert cost.count_parameters(small.model, vocab_size=30) == built


def test_no_vocabulary_explains_every_printed_count():
    ranges = {
        row: cost.implied_vocabulary(model_of(row), variation.parameters)
        for row, variation in printed.TABLE3.items()
        if variation.parameters
    }
    small = [bounds for row, bounds in ranges.items() if row != "big"]
    least, largest = max(low for low, _ in small), min(high for _, high in small)
    # All rows that vary the base model agree on a vocabulary of about 41,100 ...
    assert 41_000 < least <= largest < 41_250
    # ... which is not the 37,000 of section 5.1, nor the one of the big model.
    assert ranges["big"][1] < 37_000 < least
    assert cost.count_parameters(model_of("base"), vocab_size=TABLE3_V) == 63_045_632


def test_the_bounds_of_the_vocabulary_round_to_the_printed_count():
    least, largest = cost.implied_vocabulary(model_of("base"), 65.0)
    counts = [
        cost.count_parameters(model_of("base"), vocab_size=size) / 1e6
        for size in (least - 1, least, largest, largest + 1)
    ]
    assert [round(count) for count in counts] == [64, 65, 65, 66]


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_matrices_are_those_of_the_model(row):
    """Each by the names of its leaves."""
    config = parsing.parse(table3.get_config(row))
    built = dict.fromkeys(cost.count_by_matrix(config.model, vocab_size=TABLE3_V), 0)
    names = {
        "query": "W^Q",
        "key": "W^K",
        "value": "W^V",
        "output": "W^O",
        "inner": "W_1 and b_1",
        "outer": "W_2 and b_2",
        "norm": "layer normalisation",
        "embedding": "shared embedding",
    }
    for path, shape in transformer.param_shapes(config.model, TABLE3_V).items():
        keys = path.split("/")
        name = next(names[key] for key in keys[::-1] if key in names)
        if any("position" in key for key in keys):
            name = "learned positions"
        built[name] += math.prod(shape)
    assert built == cost.count_by_matrix(config.model, vocab_size=TABLE3_V)
