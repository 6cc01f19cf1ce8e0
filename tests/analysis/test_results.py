"""What a report finds in workdirs, and what it calls it."""

import dataclasses
import json
import math
import os

import pytest

from configs import base_ende, big_ende, table3, table3_small
from vaswani_jax.analysis import ablations, paper, report, results
from vaswani_jax.core import config, parsing

ROWS = {row: parsing.parse(table3.get_config(row)) for row in table3.ROWS}
SMALL = {row: parsing.parse(table3_small.get_config(row)) for row in table3.ROWS}


def leave(
    workdir,
    settings,
    *,
    split="valid",
    perplexity=5.0,
    bleu=25.0,
    search=(),
    starts=(),
    **changes,
):
    """What main leaves when it has trained and scored."""
    (workdir / "evaluations").mkdir(parents=True, exist_ok=True)
    (workdir / "config.json").write_text(json.dumps(config.to_dict(settings)))
    scores = [
        {"name": "sacrebleu", "value": 1.0},
        {"name": "paper_bleu", "value": 2.0},
        {"name": "paper_bleu_split", "value": bleu},
        {"name": "tokenized_bleu", "value": bleu},
    ]
    record = {
        "split": split,
        "checkpoint": "averaged",
        f"{split}/perplexity": perplexity,
        "scores": scores,
        "search": dataclasses.asdict(settings.search) | dict(search),
        "data": dataclasses.asdict(settings.data),
        "step": settings.training.num_steps,
        "averaged": list(range(settings.training.average_checkpoints)),
        "references": "0123",
        "vocabulary": "89ab",
    } | changes
    first = {"init_from": "", "changes": []}
    lines = [json.dumps(first | start) for start in ({}, *starts)]
    (workdir / "starts.jsonl").write_text("\n".join(lines))
    path = workdir / "evaluations" / f"{split}-averaged-beam4-alpha0.6.json"
    path.write_text(json.dumps(record))


def cells(table, row):
    [line] = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def read(directory):
    found, unreadable = results.read(directory)
    assert unreadable == []
    return found


def test_a_row_that_was_run_is_found_and_judged(tmp_path):
    leave(tmp_path / "a", ROWS["A2"], perplexity=5.09, bleu=25.3)
    leave(tmp_path / "b", ROWS["C1"], perplexity=9.9, bleu=20.0)
    table = report.table3(ROWS, read(tmp_path))
    assert cells(table, "A2")[5:] == [
        *("5.09", "5.00", "reproduced"),
        *("25.30", "25.5", "reproduced"),
        f"{tmp_path / 'a'}: paper_bleu_split",
    ]
    assert cells(table, "C1")[7] == cells(table, "C1")[10] == "differs"
    assert cells(table, "base")[7] == "not run"
    assert cells(table, "base")[1:4] == ["63.0 M", "65 M", "differs"]
    assert cells(table, "A1")[2:4] == ["", "not printed"]


@pytest.mark.parametrize(
    "changes",
    [
        {"training.average_checkpoints": 2},
        {"training.num_steps": 99_999},
        {"training.label_smoothing_form": "others"},
        {"optimizer.beta2": 0.997},
        {"optimizer.warmup_steps": 16_000},
        {"data.vocab_size": 8000},
        {"data.target_tokens_per_batch": 2048},
        {"model.num_heads": 4},
    ],
    ids=str,
)
def test_a_run_of_other_settings_is_not_taken_for_a_row(tmp_path, changes):
    values = table3.get_config("base")
    values.update_from_flattened_dict(changes)
    leave(tmp_path / "a", parsing.parse(values), bleu=25.8, perplexity=4.92)
    assert cells(report.table3(ROWS, read(tmp_path)), "base")[7] == "not run"


def test_a_search_of_other_settings_is_not_taken_for_a_row(tmp_path):
    leave(tmp_path / "a", ROWS["base"], search={"beam_size": 1})
    assert cells(report.table3(ROWS, read(tmp_path)), "base")[7] == "not run"


def test_where_and_how_it_was_computed_is_no_other_run(tmp_path):
    values = table3.get_config("base")
    values.update_from_flattened_dict(
        {"model.dtype": "bfloat16", "training.accumulate_steps": "4", "seed": 2}
    )
    leave(tmp_path / "a", parsing.parse(values))
    assert cells(report.table3(ROWS, read(tmp_path)), "base")[7] != "not run"


def test_an_average_is_not_table_3s_and_a_last_checkpoint_not_table_2s(tmp_path):
    presets = {
        (size, language): parsing.parse(module.get_config())
        for size, module in (("base", base_ende), ("big", big_ende))
        for language in ("de", "fr")
    }
    leave(tmp_path / "averaged", presets["base", "de"])
    leave(tmp_path / "last", ROWS["base"], split="test")
    runs = read(tmp_path)
    assert cells(report.table3(ROWS, runs), "base")[7] == "not run"
    assert cells(report.table2(presets, runs), "**base, this code**")[1] == "not run"


def test_what_cannot_be_read_is_named_and_left_out(tmp_path):
    for name in ("whole", "settings", "record", "keys", "list"):
        leave(tmp_path / name, ROWS["base"])
    (tmp_path / "settings" / "config.json").write_text("{")
    (tmp_path / "list" / "config.json").write_text("[]")
    for name, text in (("record", '{"split"'), ("keys", '{"split": "valid"}')):
        [path] = (tmp_path / name / "evaluations").iterdir()
        path.write_text(text)
    found, unreadable = results.read(tmp_path)
    assert [one.workdir.name for one in found] == ["whole"]
    assert [line.split("/evaluations")[0] for line in unreadable] == [
        str(tmp_path / name) for name in ("keys", "list", "record", "settings")
    ]


def test_a_workdir_is_not_a_directory_of_workdirs(tmp_path):
    leave(tmp_path / "a", ROWS["base"])
    with pytest.raises(ValueError, match="is a workdir"):
        results.read(tmp_path / "a")


def test_table_2_has_the_printed_and_the_found_scores(tmp_path):
    presets = {
        (size, language): ROWS["big" if size == "big" else "base"]
        for size in ("base", "big")
        for language in ("de", "fr")
    }
    leave(tmp_path / "big", ROWS["big"], split="test", bleu=28.3)
    table = report.table2(presets, read(tmp_path))
    found = cells(table, "**big, this code**")
    where = tmp_path / "big"
    assert found[1] == f"28.30, reproduced ({where}: paper_bleu_split)"
    assert found[3].endswith(", differs")
    assert cells(table, "**base, this code**")[1] == "not run"
    costs = cells(table, "**big, hours x GPUs x FLOP/s**")[3:]
    assert costs == ["2.3e+19, reproduced"] * 2
    assert cells(table, "Transformer (big)")[1:] == [
        "28.4",
        "41.8",
        "2.3e+19",
        "2.3e+19",
    ]


DROPOUT = {"key": "model.dropout_rate", "was": 0.1, "now": 0.2}
LONGER = {"key": "training.num_steps", "was": 50, "now": 100_000}
ELSEWHERE = {"key": "model.dtype", "was": "float32", "now": "bfloat16"}


@pytest.mark.parametrize(
    ("flawed", "told"),
    [
        ({"step": 200}, "scored at step 200 of 100,000"),
        ({"valid/perplexity": math.nan}, "its perplexity is nan"),
        ({"averaged": [1, 2, 3]}, "the average of 3 checkpoints, not of 1"),
        ({"starts": [{"init_from": "runs/other"}]}, "started from runs/other"),
        (
            {"starts": [{"changes": [DROPOUT]}, {}]},
            "config.model.dropout_rate was 0.1 before it was 0.2",
        ),
    ],
)
def test_what_is_no_whole_run_of_its_settings_is_told_and_not_judged(
    tmp_path, flawed, told
):
    right = {"bleu": 25.8, "perplexity": 4.92}
    leave(tmp_path / "a", ROWS["base"], **right, **flawed)
    found = cells(report.table3(ROWS, read(tmp_path)), "base")
    assert found[5:] == [
        *("", "4.92", "not run", "", "25.8", "not run"),
        f"{tmp_path / 'a'}: {told}",
    ]
    # A whole one, however old, comes first.
    leave(tmp_path / "b", ROWS["base"], **right)
    [path] = (tmp_path / "b" / "evaluations").iterdir()
    os.utime(path, (0, 0))
    found = cells(report.table3(ROWS, read(tmp_path)), "base")
    assert found[-1] == f"{tmp_path / 'b'}: paper_bleu_split"


def test_a_run_that_was_prolonged_or_moved_is_whole(tmp_path):
    starts = [{"changes": [LONGER]}, {"changes": [ELSEWHERE]}]
    leave(tmp_path / "a", ROWS["base"], starts=starts, bleu=25.8)
    assert cells(report.table3(ROWS, read(tmp_path)), "base")[10] == "reproduced"


def test_a_run_without_a_record_of_its_start_is_not_judged(tmp_path):
    leave(tmp_path / "a", ROWS["base"], bleu=25.8, perplexity=4.92)
    (tmp_path / "a" / "starts.jsonl").unlink()
    found = cells(report.table3(ROWS, read(tmp_path)), "base")
    assert found[7] == "not run" and "no start of it is recorded" in found[-1]


@pytest.mark.parametrize("table", [report.table3, ablations.table])
@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"references": "4567"}, "scored on another text than"),
        ({"vocabulary": "4567"}, "of another vocabulary than"),
    ],
)
def test_a_row_of_other_subwords_or_text_is_not_compared(tmp_path, table, other, told):
    rows = ROWS if table is report.table3 else SMALL
    leave(tmp_path / "base", rows["base"])
    leave(tmp_path / "A2", rows["A2"], bleu=25.5, **other)
    found = cells(table(rows, read(tmp_path)).split("\n\nWhat")[0], "A2")
    assert found[-1] == f"{tmp_path / 'A2'}: {told} {tmp_path / 'base'}"
    assert "25.50" not in found


def test_small_rows_are_compared_by_the_direction_they_move(tmp_path):
    found = {
        "base": (8.0, 30.0),
        "C1": (9.0, 31.0),
        "A1": (8.07, 29.6),
        "E": (8.5, 30.4),
        "A4": (8.0, 29.0),
    }
    for row, (perplexity, bleu) in found.items():
        leave(tmp_path / row, SMALL[row], perplexity=perplexity, bleu=bleu)
    table, conclusions = ablations.table(SMALL, read(tmp_path)).split("\n\nWhat")
    assert cells(table, "base")[2:-1] == ["8.00", "", "", "", "30.00", "", "", ""]
    assert cells(table, "C1")[2:] == [
        *("9.00", "+1.00", "+1.19", "as printed"),
        *("31.00", "+1.00", "-2.1", "the other way"),
        f"{tmp_path / 'C1'}: tokenized_bleu",
    ]
    assert cells(table, "A1")[5] == cells(table, "A1")[9] == "ours does not"
    assert cells(table, "E")[5] == "only ours does"
    assert cells(table, "E")[9] == "neither does"
    assert cells(table, "C3")[2:6] == ["", "", "-0.04", "not run"]
    assert cells(table, "C3")[6:] == ["", "", "-0.3", "not run", ""]
    parts = (line.strip("| ").split(" | ") for line in conclusions.splitlines())
    told = {part[1]: part[3:] for part in parts if len(part) == 6}
    assert told["base against A1"] == ["+0.90", "+0.40", "no clear difference"]
    assert told["base against E"] == ["+0.10", "-0.40", "holds"]
    small = "holds; the paper's is within the bound"
    assert told["base against A4"] == ["+0.40", "+1.00", small]
    assert told["base against C2"] == ["+0.50", "", "not run"]


def test_other_seeds_of_the_base_model_stand_beside_it(tmp_path):
    values = table3_small.get_config("base")
    leave(tmp_path / "first", SMALL["base"], bleu=30.0, perplexity=8.0)
    os.utime(next((tmp_path / "first" / "evaluations").iterdir()), (0, 0))
    assert "with one seed" in ablations.table(SMALL, read(tmp_path))
    for seed, bleu in ((7, 30.5), (3, 29.75)):
        values.seed = seed
        leave(tmp_path / str(seed), parsing.parse(values), bleu=bleu, perplexity=8.5)
    table = ablations.table(SMALL, read(tmp_path))
    # Its own seed is the row, however old.
    assert cells(table.split("\n\nWhat")[0], "base")[2] == "8.00"
    own = SMALL["base"].seed
    told = {own: "30.00 and 8.00", 3: "29.75 and 8.50", 7: "30.50 and 8.50"}
    expected = ", ".join(f"{told[seed]} (seed {seed})" for seed in sorted(told))
    assert f"by its seed: {expected}." in table


def test_perplexities_are_better_when_they_are_lower(tmp_path):
    for row, perplexity in {"base": 8.0, "D3": 7.0, "D4": 7.5}.items():
        leave(tmp_path / row, SMALL[row], perplexity=perplexity)
    table = ablations.table(SMALL, read(tmp_path))
    [better] = [line for line in table.splitlines() if "D3 against base" in line]
    [worse] = [line for line in table.splitlines() if "base against D4" in line]
    assert better.endswith("| perplexity | -0.25 | -1.00 | holds |")
    assert worse.endswith("| perplexity | -0.55 | +0.50 | does not hold |")


def test_the_papers_own_table_bears_its_conclusions_out():
    """But for the eight layers of row C3, whose BLEU is printed below the six's."""
    doubtful = []
    for conclusion in paper.CONCLUSIONS:
        for worse, better in conclusion.pairs:
            values = [
                getattr(paper.TABLE3[row], conclusion.figure) for row in (worse, better)
            ]
            difference = values[1] - values[0]
            if conclusion.figure == "perplexity":
                difference = -difference
            if difference <= 0 and not conclusion.same:
                doubtful.append((worse, better))
    assert doubtful == [("base", "C3")]


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


def test_a_run_from_before_a_setting_was_one_did_what_was_done_then(tmp_path):
    def forget(values, section):
        return {
            key: value
            for key, value in values.items()
            if f"{section}.{key}" not in config.ADDED_LATER
        }

    for name, changes in (("then", {}), ("now", {"model.activation": "swish"})):
        values = table3.get_config("base")
        values.update_from_flattened_dict(changes)
        leave(tmp_path / name, parsing.parse(values), bleu=25.8, perplexity=4.92)
    for path in (tmp_path / "then").rglob("*.json"):
        old = json.loads(path.read_text())
        for section in {"model", "data", "search"} & old.keys():
            old[section] = forget(old[section], section)
        path.write_text(json.dumps(old))
    assert "activation" not in (tmp_path / "then" / "config.json").read_text()
    table = report.table3(ROWS, read(tmp_path))
    assert str(tmp_path / "then") in cells(table, "base")[-1]
