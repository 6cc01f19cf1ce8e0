"""The presets of tables 2 and 3 against a second copy, typed from the paper."""

import pytest

from configs import parsing_wsj
from tests.paper import notes
from vaswani_jax.core import config as config_lib
from vaswani_jax.core import parsing
from vaswani_jax.paper import presets, printed

# Table 3 written out: N, d_model, d_ff, h, d_k, d_v, P_drop, eps_ls, thousand steps.
PRINTED = {
    "base": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100),
    "A1": (6, 512, 2048, 1, 512, 512, 0.1, 0.1, 100),
    "A2": (6, 512, 2048, 4, 128, 128, 0.1, 0.1, 100),
    "A3": (6, 512, 2048, 16, 32, 32, 0.1, 0.1, 100),
    "A4": (6, 512, 2048, 32, 16, 16, 0.1, 0.1, 100),
    "B1": (6, 512, 2048, 8, 16, 64, 0.1, 0.1, 100),
    "B2": (6, 512, 2048, 8, 32, 64, 0.1, 0.1, 100),
    "C1": (2, 512, 2048, 8, 64, 64, 0.1, 0.1, 100),
    "C2": (4, 512, 2048, 8, 64, 64, 0.1, 0.1, 100),
    "C3": (8, 512, 2048, 8, 64, 64, 0.1, 0.1, 100),
    "C4": (6, 256, 2048, 8, 32, 32, 0.1, 0.1, 100),
    "C5": (6, 1024, 2048, 8, 128, 128, 0.1, 0.1, 100),
    "C6": (6, 512, 1024, 8, 64, 64, 0.1, 0.1, 100),
    "C7": (6, 512, 4096, 8, 64, 64, 0.1, 0.1, 100),
    "D1": (6, 512, 2048, 8, 64, 64, 0.0, 0.1, 100),
    "D2": (6, 512, 2048, 8, 64, 64, 0.2, 0.1, 100),
    "D3": (6, 512, 2048, 8, 64, 64, 0.1, 0.0, 100),
    "D4": (6, 512, 2048, 8, 64, 64, 0.1, 0.2, 100),
    "E": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100),
    "big": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1, 300),
}


@pytest.fixture(scope="module")
def rows():
    return presets.rows("table3")


@pytest.fixture(scope="module")
def systems():
    return presets.systems()


def test_table_3_has_the_printed_rows(rows):
    assert list(rows) == list(printed.TABLE3) == list(PRINTED)


@notes.needed
def test_the_rows_sizes_are_those_of_the_notes_on_the_paper():
    for row, cells in notes.table3_cells().items():
        for cell, size in zip(cells[:9], PRINTED[row], strict=True):
            if cell and row != "E":  # what a row leaves empty is the base model's
                assert float(cell.removesuffix("K")) == size, row


@pytest.mark.parametrize("row", PRINTED)
def test_a_row_of_table_3_is_the_printed_one(rows, row):
    config = rows[row]
    model, training = config.model, config.training
    settings = (
        *(model.num_layers, model.d_model, model.d_ff, model.num_heads),
        *(model.d_k, model.d_v, model.dropout_rate, training.label_smoothing),
        training.num_steps // 1000,
    )
    assert settings == PRINTED[row]
    assert model.positional_encoding == ("learned" if row == "E" else "sinusoidal")
    assert training.average_checkpoints == 1  # "no checkpoint averaging"


# What a row may change: the columns of the table, and the average that it leaves out.
COLUMNS = {
    *("model.num_layers", "model.d_model", "model.d_ff", "model.num_heads"),
    *("model.d_k", "model.d_v", "model.dropout_rate", "model.positional_encoding"),
    *("training.label_smoothing", "training.num_steps"),
    *("training.keep_checkpoints", "training.average_checkpoints"),
    "training.checkpoint_every_steps",  # ten minutes, of big other steps
}


@pytest.mark.parametrize("row", PRINTED)
def test_a_row_of_table_3_has_all_else_of_the_base_model(rows, systems, row):
    settings, base = (
        config_lib.flatten(config_lib.to_dict(config))
        for config in (rows[row], systems["base", "de"])
    )
    assert {key for key in base if settings[key] != base[key]} <= COLUMNS


@pytest.mark.parametrize(
    ("size", "language", "dropout", "steps", "average", "vocabulary"),
    [
        ("base", "de", 0.1, 100_000, 5, 37_000),
        ("big", "de", 0.3, 300_000, 20, 37_000),
        ("base", "fr", 0.1, 100_000, 5, 32_000),
        ("big", "fr", 0.1, 300_000, 20, 32_000),
    ],
)
def test_the_presets_are_sections_5_and_6(
    systems, size, language, dropout, steps, average, vocabulary
):
    config = systems[size, language]
    assert config.model.dropout_rate == dropout
    assert config.training.num_steps == steps
    assert config.training.average_checkpoints == average
    assert config.training.label_smoothing == 0.1
    assert config.data.vocab_size == vocabulary
    assert config.data.source_tokens_per_batch == 25_000
    assert config.data.target_tokens_per_batch == 25_000
    assert (config.data.source_locale, config.data.target_locale) == ("en", language)
    optimizer = config.optimizer
    assert (optimizer.beta1, optimizer.beta2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert (optimizer.warmup_steps, optimizer.learning_rate_scale) == (4000, 1)
    search = config.search
    assert (search.beam_size, search.length_penalty) == (4, 0.6)
    assert search.max_extra_tokens == 50
    is_big = size == "big"
    model = config.model
    sizes = (model.num_layers, model.d_model, model.d_ff, model.num_heads, model.d_k)
    assert sizes == ((6, 1024, 4096, 16, 64) if is_big else (6, 512, 2048, 8, 64))
    assert model.d_v == 64
    assert model.layer_norm_position == "post"
    assert model.positional_encoding == "sinusoidal"
    assert model.activation == "relu"
    assert not (model.attention_bias or model.logits_bias)
    assert model.attention_dropout_rate == model.relu_dropout_rate == 0
    assert config.data.source == f"tfds:wmt14_translate/{language}-en"
    assert config.data.subword_model == "bpe"
    assert (config.data.subword_dropout, config.training.r_drop) == (0, 0)
    assert config.data.batching == "buckets"
    assert config.training.label_smoothing_form == "uniform"
    assert (search.length_penalty_form, search.sampling) == ("paper", False)
    # Section 6.1: the averaged checkpoints were written at 10-minute intervals; a step
    # takes 0.4 seconds, or 1.0 of the big model (section 5.2).
    assert config.training.checkpoint_every_steps == 600 / (1.0 if is_big else 0.4)
    assert config.training.keep_checkpoints >= average


@pytest.mark.parametrize(("variant", "words"), [("wsj", 16_000), ("semi", 32_000)])
def test_the_parser_s_presets_are_section_6_3(systems, variant, words):
    config = parsing.parse(parsing_wsj.get_config(variant))
    assert (config.model.num_layers, config.model.d_model) == (4, 1024)
    assert config.data.vocab_size == words
    search = config.search
    assert (search.beam_size, search.length_penalty) == (21, 0.3)
    assert search.max_extra_tokens == 300
    assert not search.legal_trees
    # "All other parameters remained unchanged" from the base model.
    base = systems["base", "de"]
    assert (config.model.d_ff, config.model.num_heads) == (2048, 8)
    for section, keys in (
        ("training", "num_steps label_smoothing average_checkpoints"),
        ("optimizer", "beta1 beta2 epsilon schedule"),
        ("data", "source_tokens_per_batch target_tokens_per_batch"),
    ):
        for key in keys.split():
            values = (getattr(getattr(c, section), key) for c in (config, base))
            assert len(set(values)) == 1, key


def test_the_small_rows_vary_what_the_papers_rows_vary():
    """Each moves the sizes of its row in the direction of the paper's."""
    small, paper = presets.rows("table3_small"), presets.rows("table3")
    assert list(small) == list(paper)
    assert small["base"].model.d_model < paper["base"].model.d_model

    def direction(rows, row):
        base, model = rows["base"].model, rows[row].model
        return [
            (size > base_size) - (size < base_size)
            for size, base_size in (
                (getattr(model, name), getattr(base, name))
                for name in ("num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v")
            )
        ]

    for row in small:
        assert direction(small, row) == direction(paper, row), row
