"""Tables 2 and 3 as the report prints them: the paper's figures beside ours."""

import os

import pytest

from configs import base_ende, big_ende, table3
from tests.paper.workdirs import ROWS, cells, leave, read
from vaswani_jax.core import parsing
from vaswani_jax.model import cost
from vaswani_jax.paper import tables


def test_a_row_that_was_run_is_found_and_judged(tmp_path):
    leave(tmp_path / "a", ROWS["A2"], perplexity=5.09, bleu=25.3)
    leave(tmp_path / "b", ROWS["C1"], perplexity=9.9, bleu=20.0)
    table = tables.table3(ROWS, read(tmp_path))
    assert cells(table, "A2")[5:] == [
        *("5.09", "5.00", "reproduced"),
        *("25.30", "25.5", "reproduced"),
        f"{tmp_path / 'a'}: paper_bleu_split_ascii",
    ]
    assert cells(table, "C1")[7] == cells(table, "C1")[10] == "differs"
    assert cells(table, "base")[7] == "not run"
    assert cells(table, "base")[1:4] == ["63.0 M", "65 M", "differs"]
    assert cells(table, "A1")[2:4] == ["", "not printed"]


def test_table_2_has_the_printed_and_the_found_scores(tmp_path):
    presets = {
        (size, language): ROWS["big" if size == "big" else "base"]
        for size in ("base", "big")
        for language in ("de", "fr")
    }
    leave(tmp_path / "big", ROWS["big"], split="test", bleu=28.3)
    table = tables.table2(presets, read(tmp_path))
    row = cells(table, "**big, this code**")
    source = f"{tmp_path / 'big'}: paper_bleu_split_ascii"
    assert row[1] == f"28.30, reproduced ({source})"
    assert row[3].endswith(", differs")
    assert cells(table, "**base, this code**")[1] == "not run"
    costs = cells(table, "**big, hours x GPUs x FLOP/s**")[3:]
    assert costs == ["2.3e+19, reproduced"] * 2
    assert cells(table, "Transformer (big)")[1:] == [
        "28.4",
        "41.8",
        "2.3e+19",
        "2.3e+19",
    ]


def test_every_evaluation_is_listed_whatever_it_is_of(tmp_path):
    leave(tmp_path / "row", ROWS["A2"], bleu=25.5)
    values = table3.get_config("base")
    values.update_from_flattened_dict({"data.vocab_size": 90, "search.beam_size": 2})
    changes = {"checkpoint": "best", "step": 70, "bleu": 3.25}
    leave(tmp_path / "own", parsing.parse(values), split="test", **changes)
    listed = tables.evaluations(read(tmp_path))
    kind = "paper_bleu_split_ascii"
    assert cells(listed, tmp_path / "row")[1:] == [
        *("valid", "averaged at 100,000", "4, 0.6", "5.00", "25.50", kind)
    ]
    assert cells(listed, tmp_path / "own")[1:] == [
        *("test", "best at 70", "2, 0.6", "5.00", "3.25", kind)
    ]


@pytest.mark.parametrize(
    ("preset", "operations"), [(base_ende, 9.5e17), (big_ende, 9.7e18)]
)
def test_the_models_operations_are_fewer_than_the_printed_cost(preset, operations):
    """Check what docs/paper/results.md says."""
    settings = parsing.parse(preset.get_config())
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


def test_parameters_are_counted_by_matrix():
    """Table 3's sizes multiplied out: 18 attentions, 12 feed-forward networks."""
    table = tables.matrices(ROWS)

    def millions(*counts):
        return [f"{count / 1e6:.3f}" for count in counts]

    embedding, projection, inner = 37_000 * 512, 18 * 512 * 8 * 64, 12 * 2048 * 512
    attention = [projection] * 4
    feed_forward = [inner + 12 * 2048, inner + 12 * 512]
    norms = 30 * 2 * 512
    base = millions(embedding, *attention, *feed_forward, norms, 0)
    assert cells(table, "base")[1:] == base
    attention[:2] = [18 * 512 * 8 * 16] * 2
    expected = millions(embedding, *attention, *feed_forward, norms, 0)
    assert cells(table, "B1")[1:] == expected
    # 1,024 learned positions on either side.
    assert cells(table, "E")[1:] == [*base[:-1], *millions(2 * 1024 * 512)]


def test_the_report_says_on_what_it_was_made():
    text = tables.provenance(tables.origin())
    assert "8 cpu devices" in text and f"{os.cpu_count()} cores" in text
