"""The numbers of tables 2 and 3 against the models that configs/table3.py builds."""

import jax
import pytest

from configs import base_ende, base_enfr, big_ende, big_enfr, table3
from tests import settings
from vaswani_jax.analysis import flops, paper, parameters
from vaswani_jax.core import parsing
from vaswani_jax.training import step

V = 37_000


def model_of(row):
    return parsing.parse(table3.get_config(row)).model


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_count_of_every_row_is_that_of_the_model_it_builds(row):
    config = parsing.parse(table3.get_config(row))
    state = jax.eval_shape(lambda: step.create_state(config, vocab_size=V))
    built = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    assert parameters.total(config.model, vocab_size=V) == built


def test_a_pre_norm_model_is_counted_too():
    small = settings.small_settings(**{"model.layer_norm_position": "pre"})
    state = jax.eval_shape(lambda: step.create_state(small, vocab_size=30))
    built = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    assert parameters.total(small.model, vocab_size=30) == built


def test_no_vocabulary_explains_every_printed_count():
    ranges = {
        row: parameters.implied_vocabulary(model_of(row), printed.parameters)
        for row, printed in paper.TABLE3.items()
        if printed.parameters
    }
    small = [bounds for row, bounds in ranges.items() if row != "big"]
    least, largest = max(low for low, _ in small), min(high for _, high in small)
    # All rows that vary the base model agree on a vocabulary of about 41,100 ...
    assert 41_000 < least <= largest < 41_250
    # ... which is not the 37,000 of section 5.1, nor the one of the big model.
    assert ranges["big"][1] < 37_000 < least
    assert parameters.total(model_of("base"), vocab_size=V) == 63_045_632


def test_the_bounds_of_the_vocabulary_round_to_the_printed_count():
    least, largest = parameters.implied_vocabulary(model_of("base"), 65.0)
    counts = [
        parameters.total(model_of("base"), vocab_size=size) / 1e6
        for size in (least - 1, least, largest, largest + 1)
    ]
    assert [round(count) for count in counts] == [64, 65, 65, 66]


def test_table_3_says_what_differs_from_base():
    base = parsing.parse(table3.get_config("base"))
    assert base.model.num_heads * base.model.d_k == base.model.d_model
    for row in ("A1", "A2", "A3", "A4"):  # "keeping the computation constant"
        model = model_of(row)
        assert model.num_heads * model.d_k == model.num_heads * model.d_v == 512
    for row in ("B1", "B2"):
        assert model_of(row).d_v == 64
    assert base.training.average_checkpoints == 1  # "no checkpoint averaging"
    assert set(table3.ROWS) == set(paper.TABLE3)


@pytest.mark.parametrize(
    ("module", "dropout", "steps", "average", "vocabulary", "target"),
    [
        (base_ende, 0.1, 100_000, 5, 37_000, "de"),
        (big_ende, 0.3, 300_000, 20, 37_000, "de"),
        (base_enfr, 0.1, 100_000, 5, 32_000, "fr"),
        (big_enfr, 0.1, 300_000, 20, 32_000, "fr"),
    ],
    ids=["base_ende", "big_ende", "base_enfr", "big_enfr"],
)
def test_the_presets_are_sections_5_and_6(
    module, dropout, steps, average, vocabulary, target
):
    config = parsing.parse(module.get_config())
    assert config.model.dropout_rate == dropout
    assert config.training.num_steps == steps
    assert config.training.average_checkpoints == average
    assert config.training.label_smoothing == 0.1
    assert config.data.vocab_size == vocabulary
    assert config.data.source_tokens_per_batch == 25_000
    assert config.data.target_tokens_per_batch == 25_000
    assert (config.data.source_locale, config.data.target_locale) == ("en", target)
    optimizer = config.optimizer
    assert (optimizer.beta1, optimizer.beta2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert (optimizer.warmup_steps, optimizer.learning_rate_scale) == (4000, 1)
    search = config.search
    assert (search.beam_size, search.length_penalty) == (4, 0.6)
    assert search.max_extra_tokens == 50
    big = "big" in module.__name__
    model = config.model
    sizes = (model.num_layers, model.d_model, model.d_ff, model.num_heads, model.d_k)
    assert sizes == ((6, 1024, 4096, 16, 64) if big else (6, 512, 2048, 8, 64))
    assert model.layer_norm_position == "post"
    assert model.attention_dropout_rate == model.relu_dropout_rate == 0


def test_the_papers_cost_is_time_and_the_models_is_a_third_of_it():
    """Section 5.3 of the paper's table 2: hardware time, not the model's operations."""
    model = model_of("base")
    tokens = 25_000
    update = flops.update_flops(
        model, vocab_size=V, rows=tokens // 25, source=25, target=25
    )
    share = 100_000 * update / paper.training_cost("base")
    assert 0.2 < share < 0.4
