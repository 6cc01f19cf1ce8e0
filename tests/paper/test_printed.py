"""The numbers of tables 2 and 3 against a second copy, and the presets against them."""

import dataclasses
import pathlib

import pytest

from configs import base_ende, base_enfr, big_ende, big_enfr, table3
from vaswani_jax.core import config as config_lib
from vaswani_jax.core import parsing
from vaswani_jax.model import cost
from vaswani_jax.paper import printed as printed_
from vaswani_jax.paper import tables

PAPER = pathlib.Path(__file__).parents[3] / "shared" / "PAPER.md"


# Table 2 once more: BLEU En-De, En-Fr, cost En-De, En-Fr; 0 where nothing is printed.
TABLE2 = """
23.75  0      0       0
0      39.2   0       1.0e20
24.6   39.92  2.3e19  1.4e20
25.16  40.46  9.6e18  1.5e20
26.03  40.56  2.0e19  1.2e20
0      40.4   0       8.0e20
26.30  41.16  1.8e20  1.1e21
26.36  41.29  7.7e19  1.2e21
27.3   38.1   3.3e18  3.3e18
28.4   41.8   2.3e19  2.3e19
"""


def test_table_2_is_the_printed_one():
    for line, system in zip(TABLE2.split("\n")[1:-1], printed_.TABLE2, strict=True):
        _, *figures = dataclasses.astuple(system)
        assert [figure or 0 for figure in figures] == [float(x) for x in line.split()]


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


# Its right half: perplexity, BLEU, parameters in millions (0 where none is printed).
SCORES = """
base 4.92 25.8 65
A1   5.29 24.9 0
A2   5.00 25.5 0
A3   4.91 25.8 0
A4   5.01 25.4 0
B1   5.16 25.1 58
B2   5.01 25.4 60
C1   6.11 23.7 36
C2   5.19 25.3 50
C3   4.88 25.5 80
C4   5.75 24.5 28
C5   4.66 26.0 168
C6   5.12 25.4 53
C7   4.75 26.2 90
D1   5.77 24.6 0
D2   4.95 25.5 0
D3   4.67 25.3 0
D4   5.47 25.7 0
E    4.92 25.7 0
big  4.33 26.4 213
"""


def test_table_3_has_the_printed_scores():
    lines = [line.split() for line in SCORES.split("\n")[1:-1]]
    written = {row: tuple(map(float, figures)) for row, *figures in lines}
    assert written == {
        row: (one.perplexity, one.bleu, one.parameters or 0)
        for row, one in printed_.TABLE3.items()
    }


@pytest.mark.shared
@pytest.mark.skipif(not PAPER.exists(), reason=f"{PAPER} is not here")
def test_tables_are_those_of_the_notes_on_the_paper():
    """Read from PAPER.md, which others wrote."""
    found = {}
    for line in PAPER.read_text().splitlines():
        row, *cells = (cell.strip() for cell in line.removeprefix("|").split("|"))
        if row in printed_.TABLE3 and len(cells) > 10:
            found[row] = tuple(float(cell or 0) for cell in cells[-4:-1])
    assert found == {
        row: (one.perplexity, one.bleu, one.parameters or 0)
        for row, one in printed_.TABLE3.items()
    }
    costs = "K80 2.8, K40 3.7, M40 6.0, P100 9.5"
    assert costs in PAPER.read_text()
    assert costs == ", ".join(
        f"{name} {operations / 1e12:.1f}"
        for name, operations in printed_.SUSTAINED_FLOPS.items()
    )


def test_table_3_has_the_printed_rows():
    assert set(table3.ROWS) == set(printed_.TABLE3) == set(PRINTED)


@pytest.mark.parametrize("row", PRINTED)
def test_a_row_of_table_3_is_the_printed_one(row):
    config = parsing.parse(table3.get_config(row))
    model, training = config.model, config.training
    found = (
        *(model.num_layers, model.d_model, model.d_ff, model.num_heads),
        *(model.d_k, model.d_v, model.dropout_rate, training.label_smoothing),
        training.num_steps // 1000,
    )
    assert found == PRINTED[row]
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
def test_a_row_of_table_3_has_all_else_of_the_base_model(row):
    found, base = (
        config_lib.flatten(config_lib.to_dict(parsing.parse(values)))
        for values in (table3.get_config(row), base_ende.get_config())
    )
    assert {key for key in base if found[key] != base[key]} <= COLUMNS


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
    assert model.d_v == 64
    assert model.layer_norm_position == "post"
    assert model.positional_encoding == "sinusoidal"
    assert model.activation == "relu"
    assert not (model.attention_bias or model.logits_bias)
    assert model.attention_dropout_rate == model.relu_dropout_rate == 0
    assert config.data.source == f"tfds:wmt14_translate/{target}-en"
    assert config.data.subword_model == "bpe"
    assert (config.data.subword_dropout, config.training.r_drop) == (0, 0)
    assert config.data.batching == "buckets"
    assert config.training.label_smoothing_form == "uniform"
    assert (search.length_penalty_form, search.sampling) == ("paper", False)
    # Section 6.1: the averaged checkpoints were written at 10-minute intervals; a step
    # takes 0.4 seconds, or 1.0 of the big model (section 5.2).
    assert config.training.checkpoint_every_steps == 600 / (1.0 if big else 0.4)
    assert config.training.keep_checkpoints >= average


def test_the_papers_cost_is_time_and_the_models_is_a_third_of_it():
    """Table 2: hardware time, not the model's operations."""
    presets = {"base": base_ende, "big": big_ende}
    for system, (name, printed, own) in zip(
        printed_.TABLE2[-2:],
        (("base", 3.3e18, 9.5e17), ("big", 2.3e19, 9.7e18)),
        strict=True,
    ):
        assert system.cost_ende == system.cost_enfr == printed
        assert printed_.training_cost(name) == pytest.approx(printed, rel=0.01)
        # What the README says.
        settings = parsing.parse(presets[name].get_config())
        assert tables.model_cost(settings) == pytest.approx(own, rel=0.01)


def test_the_report_says_where_the_rate_is_greatest_and_how_near_positions_are():
    told = tables.learning_rate(parsing.parse(base_ende.get_config()))
    assert "6.988e-04, in update 4,000;" in told and told.endswith(": reproduced.")
    other = base_ende.get_config()
    other.optimizer.warmup_steps = 8000
    assert tables.learning_rate(parsing.parse(other)).endswith(": differs.")
    assert tables.positions(parsing.parse(base_ende.get_config())).endswith(
        ": reproduced."
    )


def test_the_models_cost_is_about_six_operations_a_parameter_and_token():
    """Kaplan et al. (2020), section 2.1: 2 N forward, 4 N backward."""
    config = parsing.parse(base_ende.get_config())
    parameter_count = cost.total(config.model, vocab_size=37_000)
    # Encoder and decoder weights each see one side's tokens, the softmax the target's.
    estimate = 6 * parameter_count * 25_000 * 100_000
    assert tables.model_cost(config) == pytest.approx(estimate, rel=0.05)
