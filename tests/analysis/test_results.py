"""What a report finds in workdirs, and what it calls it."""

import json

import pytest

from configs import table3, table3_small
from vaswani_jax.analysis import paper, report, results
from vaswani_jax.core import config, parsing

ROWS = {row: parsing.parse(table3.get_config(row)) for row in table3.ROWS}
SMALL = {row: parsing.parse(table3_small.get_config(row)) for row in table3.ROWS}


def leave(workdir, settings, *, split, perplexity, bleu):
    """What main leaves when it has trained and scored."""
    (workdir / "evaluations").mkdir(parents=True)
    (workdir / "config.json").write_text(json.dumps(config.to_dict(settings)))
    scores = [
        {"name": "sacrebleu", "value": 1.0},
        {"name": "paper_bleu", "value": bleu},
    ]
    record = {f"{split}/perplexity": perplexity, "scores": scores}
    path = workdir / "evaluations" / f"{split}-averaged-beam4-alpha0.6.json"
    path.write_text(json.dumps(record))


def cells(table, row):
    [line] = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_that_was_run_is_found_and_judged(tmp_path):
    leave(tmp_path / "a", ROWS["A2"], split="valid", perplexity=5.1, bleu=25.3)
    leave(tmp_path / "b", ROWS["C1"], split="valid", perplexity=9.9, bleu=20.0)
    table = report.table3(ROWS, results.workdirs(tmp_path))
    assert cells(table, "A2")[4:] == [
        *("5.10", "5.0", "reproduced"),
        *("25.30", "25.5", "reproduced"),
    ]
    assert cells(table, "C1")[6] == cells(table, "C1")[9] == "differs"
    assert cells(table, "base")[6] == "not run"
    assert cells(table, "base")[1:3] == ["63.0 M", "65 M"]


def test_a_run_of_other_settings_is_not_taken_for_a_row(tmp_path):
    leave(tmp_path / "a", SMALL["A2"], split="valid", perplexity=5.0, bleu=25.5)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "config.json").write_text("{")
    table = report.table3(ROWS, results.workdirs(tmp_path))
    assert "reproduced" not in table and "differs" not in table


def test_table_2_has_the_printed_and_the_found_scores(tmp_path):
    presets = {
        (size, language): ROWS["big" if size == "big" else "base"]
        for size in ("base", "big")
        for language in ("de", "fr")
    }
    leave(tmp_path / "big", ROWS["big"], split="test", perplexity=4.0, bleu=28.3)
    table = report.table2(presets, results.workdirs(tmp_path))
    found = cells(table, "**big, this code**")
    assert found[1].startswith("28.30, reproduced")
    assert cells(table, "**base, this code**")[1] == "not run"
    assert cells(table, "Transformer (big)")[1:] == [
        "28.4",
        "41.8",
        "2.3e+19",
        "2.3e+19",
    ]


def test_small_rows_are_compared_by_the_direction_they_move(tmp_path):
    for row, perplexity, bleu in (("base", 8.0, 30.0), ("C1", 9.0, 31.0)):
        leave(
            tmp_path / row, SMALL[row], split="valid", perplexity=perplexity, bleu=bleu
        )
    table = report.table3_small(SMALL, results.workdirs(tmp_path))
    assert cells(table, "C1")[2:] == [
        *("9.00", "+1.19", "as printed"),
        *("31.00", "-2.1", "the other way"),
    ]
    assert cells(table, "C3")[4] == "not run"


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_small_rows_are_the_papers_divided(row):
    own, printed = SMALL[row].model, ROWS[row].model
    assert own.num_layers == printed.num_layers // 2
    assert (own.d_model, own.d_ff) == (printed.d_model // 4, printed.d_ff // 4)
    assert (own.d_k, own.d_v) == (printed.d_k // 4, printed.d_v // 4)
    assert own.num_heads == printed.num_heads
    assert own.dropout_rate == printed.dropout_rate
    training = SMALL[row].training
    assert training.label_smoothing == ROWS[row].training.label_smoothing
    assert row in paper.TABLE3
