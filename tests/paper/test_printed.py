"""Tables 2 and 3 against what else the paper says, and the presets against both."""

import pathlib

import pytest

from configs import base_ende, base_enfr, big_ende, big_enfr, table3
from vaswani_jax.core import config as config_lib
from vaswani_jax.core import parsing
from vaswani_jax.model import cost
from vaswani_jax.paper import printed, tables

PAPER = pathlib.Path(__file__).parents[3] / "shared" / "PAPER.md"


# A second copy of table 2: BLEU and cost of En-De and En-Fr; 0 where none is printed.
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


def test_table_2_has_the_printed_figures():
    for line, system in zip(TABLE2.split("\n")[1:-1], printed.TABLE2, strict=True):
        figures = [figure or 0 for figure in (*system.bleu, *system.cost)]
        assert figures == [float(figure) for figure in line.split()]


def test_table_2_is_what_the_text_says_of_it():
    """The abstract and section 6.1 repeat the table's last row and compare it."""
    *models, base, big = printed.TABLE2
    assert big.bleu == (28.4, 41.8)
    best_ende, best_enfr = (
        max(bleu for bleu in column if bleu)
        for column in zip(*(model.bleu for model in models), strict=True)
    )
    # "More than 2.0 BLEU" above all, ensembles included; the base model, too.
    assert big.bleu[0] - best_ende > 2.0
    assert base.bleu[0] > best_ende
    single = [model for model in models if "Ensemble" not in model.name]
    assert big.bleu[1] > max(model.bleu[1] for model in single if model.bleu[1])
    assert [model.name for model in models if "Ensemble" in model.name] == [
        f"{name} Ensemble" for name in ("Deep-Att + PosUnk", "GNMT + RL", "ConvS2S")
    ]
    assert best_enfr == 41.29
    # "At a fraction of the training cost of any of the competitive models."
    assert base.cost[0] < min(cost for model in models for cost in model.cost if cost)
    # En-Fr: "less than 1/4 the training cost of the previous state-of-the-art model".
    state_of_the_art = max(single, key=lambda model: model.bleu[1] or 0)
    assert base.cost[1] < state_of_the_art.cost[1] / 4


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


# A second copy of its right half: perplexity, BLEU, millions of parameters (0: none).
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
    scores = {row: tuple(map(float, figures)) for row, *figures in lines}
    assert scores == {
        row: (variation.perplexity, variation.bleu, variation.parameters or 0)
        for row, variation in printed.TABLE3.items()
    }


def test_one_vocabulary_explains_the_printed_parameters_of_the_base_models_rows():
    ranges = [
        cost.implied_vocabulary(
            parsing.parse(table3.get_config(row)).model, variation.parameters
        )
        for row, variation in printed.TABLE3.items()
        if variation.parameters and row != "big"
    ]
    assert len(ranges) == 10
    smallest, largest = max(r[0] for r in ranges), min(r[1] for r in ranges)
    assert smallest <= 41_100 <= largest


@pytest.mark.shared
@pytest.mark.skipif(not PAPER.exists(), reason=f"{PAPER} is not here")
def test_table_3_is_that_of_the_notes_on_the_paper():
    """Both halves, read from PAPER.md, which others wrote."""
    text = PAPER.read_text()
    rows = {}
    for line in text.splitlines():
        row, *cells = (cell.strip() for cell in line.removeprefix("|").split("|"))
        if row in printed.TABLE3 and len(cells) > 10:
            rows[row] = cells[:-1]
    assert {
        row: tuple(float(c or 0) for c in cells[-3:]) for row, cells in rows.items()
    } == {
        row: (variation.perplexity, variation.bleu, variation.parameters or 0)
        for row, variation in printed.TABLE3.items()
    }
    for row, cells in rows.items():
        for cell, size in zip(cells[:9], PRINTED[row], strict=True):
            if cell and row != "E":  # what a row leaves empty is the base model's
                assert float(cell.removesuffix("K")) == size, row
    costs = "K80 2.8, K40 3.7, M40 6.0, P100 9.5"
    assert costs in text
    assert costs == ", ".join(
        f"{name} {operations / 1e12:.1f}"
        for name, operations in printed.SUSTAINED_FLOPS.items()
    )


def test_table_3_has_the_printed_rows():
    assert set(table3.ROWS) == set(printed.TABLE3) == set(PRINTED)


@pytest.mark.parametrize("row", PRINTED)
def test_a_row_of_table_3_is_the_printed_one(row):
    config = parsing.parse(table3.get_config(row))
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
def test_a_row_of_table_3_has_all_else_of_the_base_model(row):
    settings, base = (
        config_lib.flatten(config_lib.to_dict(parsing.parse(values)))
        for values in (table3.get_config(row), base_ende.get_config())
    )
    assert {key for key in base if settings[key] != base[key]} <= COLUMNS


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


@pytest.mark.parametrize(
    ("row", "size", "preset", "operations"),
    [(-2, "base", base_ende, 9.5e17), (-1, "big", big_ende, 9.7e18)],
    ids=["base", "big"],
)
def test_the_printed_cost_is_hours_of_hardware(row, size, preset, operations):
    """Table 2's cost is not the model's operations, which are fewer."""
    system = printed.TABLE2[row]
    assert system.cost[0] == system.cost[1]
    assert printed.training_cost(size) == pytest.approx(system.cost[0], rel=0.01)
    settings = parsing.parse(preset.get_config())
    # What the README says.
    assert tables.training_operations(settings) == pytest.approx(operations, rel=0.01)


def test_the_report_says_where_the_rate_is_greatest_and_how_near_positions_are():
    text = tables.learning_rate(parsing.parse(base_ende.get_config()))
    assert "6.988e-04, in update 4,000;" in text and text.endswith(": reproduced.")
    longer = base_ende.get_config()
    longer.optimizer.warmup_steps = 8000
    assert tables.learning_rate(parsing.parse(longer)).endswith(": differs.")
    assert tables.positions(parsing.parse(base_ende.get_config())).endswith(
        ": reproduced."
    )


def test_the_models_cost_is_about_six_operations_a_parameter_and_token():
    """Kaplan et al. (2020), section 2.1: 2 N forward, 4 N backward."""
    config = parsing.parse(base_ende.get_config())
    parameter_count = cost.count_parameters(config.model, vocab_size=37_000)
    # Encoder and decoder weights each see one side's tokens, the softmax the target's.
    estimate = 6 * parameter_count * 25_000 * 100_000
    assert tables.training_operations(config) == pytest.approx(estimate, rel=0.05)
