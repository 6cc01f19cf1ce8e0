"""Table 4: runs that parse beside the paper's, each with what makes its F1."""

import json
import os

import pytest

from tests.paper.workdirs import (
    PAPERS_PARSER,
    ROWS,
    SIGNATURE,
    SMALL,
    WSJ,
    leave,
    leave_parser,
    parsing_settings,
    read,
)
from vaswani_jax.paper import presets, printed, small_table3, table4, tables

OURS = "**Transformer (6 layers), legal trees, this code**"
NOT_RUN = "not run: the treebank is licensed by the LDC (LDC99T42)"
# A bar within a cell is escaped, or it would end the cell.
SCORER = SIGNATURE.replace("|", r"\|")


def rows(directory):
    """Return the cells of each row."""
    lines = table4.format_table(read(directory)).splitlines()[4:]
    return [[cell.strip() for cell in line[2:-2].split(" | ")] for line in lines]


def our_rows(directory):
    """Return the rows of this code that were run."""
    return [row for row in rows(directory)[len(printed.TABLE4) :] if row[4] != NOT_RUN]


def test_without_runs_it_has_the_papers_rows_and_why_ours_are_missing(tmp_path):
    *paper, alone, semi_supervised = rows(tmp_path)
    assert [row[:5] for row in paper] == [
        [row.name, row.training, "WSJ", "section 23", f"{row.f1}"]
        for row in printed.TABLE4
    ]
    for row, training in ((alone, "WSJ only"), (semi_supervised, "semi-supervised")):
        assert row[1:5] == [training, "WSJ", "section 23", NOT_RUN]


def test_a_run_has_its_treebank_split_score_and_scorer(tmp_path):
    leave_parser(tmp_path / "a", parsing_settings(), f1=71.234)
    assert our_rows(tmp_path) == [
        [
            *(OURS, "forest only", "forest", "valid (dev.trees)", "71.23"),
            *(SCORER, "1 (1)", str(tmp_path / "a")),
        ]
    ]


def test_what_the_papers_parser_does_not_have_is_named(tmp_path):
    settings = parsing_settings(
        **{
            "model.deterministic_attention": True,
            "model.num_encoder_layers": 3,
            "model.num_decoder_layers": 2,
            "data.silver_trees": "silver.trees",
        }
    )
    leave_parser(tmp_path / "a", settings, search={"legal_trees": False})
    [row] = our_rows(tmp_path)
    parser = "**Transformer (3 + 2 layers), deterministic attention, this code**"
    assert row[:3] == [parser, "semi-supervised", "forest"]


def test_seeds_share_a_row_with_their_mean(tmp_path):
    for seed, f1 in ((1, 70.0), (3, 73.0), (2, 71.5)):
        leave_parser(tmp_path / f"seed{seed}", parsing_settings(seed=seed), f1=f1)
    # Other trees or another split are no seed.
    leave_parser(tmp_path / "test", parsing_settings(), split="test", f1=60.0)
    leave_parser(tmp_path / "other", parsing_settings(), references="4567", f1=50.0)
    found = {row[4]: row for row in our_rows(tmp_path)}
    assert found.keys() == {"71.50 (70.00 to 73.00)", "60.00", "50.00"}
    assert found["71.50 (70.00 to 73.00)"][6:] == [
        "3 (1, 2, 3)",
        ", ".join(str(tmp_path / f"seed{seed}") for seed in (1, 2, 3)),
    ]
    assert found["60.00"][3] == "test (test.trees)"


def test_the_search_that_a_run_was_configured_with_comes_first(tmp_path):
    leave_parser(tmp_path / "a", parsing_settings(), f1=71.0)
    [path] = (tmp_path / "a/evaluations").iterdir()
    record = json.loads(path.read_text())
    record["search"]["beam_size"] = 21
    record["scores"][0]["value"] = 75.0
    wider = path.with_name("valid-averaged-beam21-alpha0.6.json")
    wider.write_text(json.dumps(record))
    [row] = our_rows(tmp_path)
    assert row[4] == "71.00"
    path.unlink()
    [row] = our_rows(tmp_path)
    assert row[4] == "75.00"


def test_an_incomplete_run_is_named_and_not_counted(tmp_path):
    leave_parser(tmp_path / "a", parsing_settings(), step=200)
    [row] = our_rows(tmp_path)
    flaw = f"{tmp_path / 'a'}: scored at step 200 of 100,000"
    assert row[4:] == ["", "", "", flaw]
    leave_parser(tmp_path / "b", parsing_settings(seed=2))
    [row] = our_rows(tmp_path)
    assert row[6:] == ["1 (2)", str(tmp_path / "b")]


def test_a_run_on_wsj_takes_the_place_of_the_reason_why_there_is_none(tmp_path):
    leave_parser(tmp_path / "a", parsing_settings(**WSJ), split="test", f1=91.0)
    leave_parser(tmp_path / "b", parsing_settings(**WSJ), split="valid", f1=92.0)
    *_, semi_supervised, development, test = rows(tmp_path)
    assert semi_supervised[1:5] == ["semi-supervised", "WSJ", "section 23", NOT_RUN]
    assert development[1:5] == ["WSJ only", "WSJ", "section 22", "92.00"]
    assert test[1:5] == ["WSJ only", "WSJ", "section 23", "91.00"]
    assert len(rows(tmp_path)) == len(printed.TABLE4) + 3


@pytest.mark.parametrize(
    ("changes", "f1", "cells"),
    [
        ({}, 91.05, ["WSJ only", "91.05, reproduced"]),
        ({}, 90.9, ["WSJ only", "90.90, differs"]),
        ({"data.silver_trees": "a"}, 92.9, ["semi-supervised", "92.90, reproduced"]),
        ({"model.num_layers": 2}, 91.3, ["WSJ only", "91.30"]),
        ({"model.deterministic_attention": True}, 91.3, ["WSJ only", "91.30"]),
        ({"search.beam_size": 4}, 91.3, ["WSJ only", "91.30"]),
        ({"data.tree_terminals": "word"}, 91.3, ["WSJ only", "91.30"]),
    ],
)
def test_the_papers_parser_alone_is_judged(tmp_path, changes, f1, cells):
    settings = parsing_settings(**(PAPERS_PARSER | WSJ | changes))
    leave_parser(tmp_path / "a", settings, split="test", f1=f1)
    [row] = our_rows(tmp_path)
    assert [row[1], row[4]] == cells
    result = table4.find_result(read(tmp_path), cells[0])
    is_judged = "," in cells[1]
    assert (result and result.f1) == (f1 if is_judged else None)


@pytest.mark.parametrize(
    "changes",
    [
        {"data.test_trees": "24"},
        {"data.train_trees": "02-20"},
        {"data.test_trees": "brown/22,wsj/23"},
    ],
    ids=str,
)
def test_other_sections_are_not_the_papers(tmp_path, changes):
    settings = parsing_settings(**(WSJ | changes))
    leave_parser(tmp_path / "a", settings, split="test")
    [row] = our_rows(tmp_path)
    assert row[2:4] == ["wsj", f"test ({settings.data.test_trees})"]


def test_of_settings_that_the_paper_does_not_print_the_newest_run_is_judged(tmp_path):
    for number, (dropout_rate, f1) in enumerate(((0.1, 90.0), (0.3, 91.4), (0.2, 89))):
        changes = {"model.dropout_rate": dropout_rate}
        settings = parsing_settings(**(PAPERS_PARSER | WSJ | changes))
        leave_parser(tmp_path / str(number), settings, split="test", f1=f1)
    for name, time in (("0", 2e9), ("1", 3e9), ("2", 1e9)):
        [path] = (tmp_path / name / "evaluations").iterdir()
        os.utime(path, (time, time))
    figures = {row[7]: row[4] for row in our_rows(tmp_path)}
    assert figures == {
        str(tmp_path / "0"): "90.00",
        str(tmp_path / "1"): "91.40, reproduced",
        str(tmp_path / "2"): "89.00",
    }
    result = table4.find_result(read(tmp_path), "WSJ only")
    assert [run.workdir for run in result.runs] == [tmp_path / "1"]


def test_sections_are_known_by_the_last_part_of_their_path(tmp_path):
    sections = {
        "data.text_directory": "/corpora",
        "data.train_trees": "ptb/wsj/02-21",
        "data.valid_trees": "ptb/wsj/22",
        "data.test_trees": " ptb/wsj/23/ ",
    }
    settings = parsing_settings(**(PAPERS_PARSER | sections))
    leave_parser(tmp_path / "a", settings, split="test", f1=91.3)
    leave_parser(tmp_path / "b", settings, split="valid", f1=92.0)
    shown = [row[1:5] for row in our_rows(tmp_path)]
    assert shown == [
        ["WSJ only", "WSJ", "section 22", "92.00"],
        ["WSJ only", "WSJ", "section 23", "91.30, reproduced"],
    ]


def test_f1_is_never_taken_for_bleu(tmp_path):
    """Tables of translation have no parser, whose other settings are the base's."""
    leave_parser(tmp_path / "a", parsing_settings(), f1=25.8, perplexity=4.92)
    runs = read(tmp_path)
    [run] = runs
    assert (run.metric, run.score) == ("f1", 25.8)
    assert not run.has_bleu
    assert tables.table3(ROWS, runs) == tables.table3(ROWS, [])
    systems = presets.systems()
    assert tables.table2(systems, runs) == tables.table2(systems, [])
    assert small_table3.format_table(SMALL, runs) == small_table3.format_table(
        SMALL, []
    )


def test_all_scored_runs_say_which_score_it_is(tmp_path):
    leave(tmp_path / "a", ROWS["base"], bleu=25.0)
    assert "| perplexity | BLEU | is |" in tables.evaluations(read(tmp_path))
    leave_parser(tmp_path / "b", parsing_settings(), f1=71.0)
    listed = tables.evaluations(read(tmp_path))
    assert "| perplexity | BLEU or F1 | is |" in listed
    assert "| 5.00 | 25.00 | paper_bleu_split_ascii |" in listed
    assert "| 5.00 | 71.00 | f1 |" in listed
    [row] = our_rows(tmp_path)
    assert row[4] == "71.00"
