"""The numbers of table 3's parameters against the models that its rows build."""

import jax
import pytest

from configs import table3
from tests import settings
from vaswani_jax.core import parsing
from vaswani_jax.model import cost
from vaswani_jax.paper import printed as printed_
from vaswani_jax.training import step

V = 37_000


def model_of(row):
    return parsing.parse(table3.get_config(row)).model


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_count_of_every_row_is_that_of_the_model_it_builds(row):
    config = parsing.parse(table3.get_config(row))
    state = jax.eval_shape(lambda: step.create_state(config, vocab_size=V))
    built = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    assert cost.count_parameters(config.model, vocab_size=V) == built


def test_a_pre_norm_model_is_counted_too():
    small = settings.small_settings(**{"model.layer_norm_position": "pre"})
    state = jax.eval_shape(lambda: step.create_state(small, vocab_size=30))
    built = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    assert cost.count_parameters(small.model, vocab_size=30) == built


def test_no_vocabulary_explains_every_printed_count():
    ranges = {
        row: cost.implied_vocabulary(model_of(row), printed.parameters)
        for row, printed in printed_.TABLE3.items()
        if printed.parameters
    }
    small = [bounds for row, bounds in ranges.items() if row != "big"]
    least, largest = max(low for low, _ in small), min(high for _, high in small)
    # All rows that vary the base model agree on a vocabulary of about 41,100 ...
    assert 41_000 < least <= largest < 41_250
    # ... which is not the 37,000 of section 5.1, nor the one of the big model.
    assert ranges["big"][1] < 37_000 < least
    assert cost.count_parameters(model_of("base"), vocab_size=V) == 63_045_632


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
    state = jax.eval_shape(lambda: step.create_state(config, vocab_size=V))
    built = dict.fromkeys(cost.count_by_matrix(config.model, vocab_size=V), 0)
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
    for path, leaf in jax.tree_util.tree_leaves_with_path(state.params):
        keys = [part.key for part in path]
        name = next(names[key] for key in keys[::-1] if key in names)
        if any("position" in key for key in keys):
            name = "learned positions"
        built[name] += leaf.size
    assert built == cost.count_by_matrix(config.model, vocab_size=V)
