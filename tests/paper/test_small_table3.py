"""Table 3 at a smaller scale: verdicts on its rows and on the conclusions."""

import gzip
import os
import pathlib
import re

import pytest

from configs import table3, table3_small
from tests.paper.workdirs import ROWS, SMALL, cells, leave, read
from vaswani_jax.core import parsing
from vaswani_jax.paper import printed, scored_runs, small_table3

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


def test_the_recorded_table_is_that_of_the_recorded_runs(monkeypatch):
    """docs/results/table3_small.md has what the report makes of the runs beside it."""
    monkeypatch.chdir(ROOT)
    records = scored_runs.read(pathlib.Path("docs/results"))
    assert records.runs and not records.unreadable
    assert not [run.source for run in records.runs if run.flaw]
    recorded = (RESULTS / "table3_small.md").read_text(encoding="utf-8")
    assert small_table3.format_table(SMALL, records.runs) in recorded


def test_no_record_names_a_directory_of_the_machine_it_was_made_on():
    for path in RESULTS.rglob("*.json*"):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        # A slash begins weights in base64, too, but then no lower-case name follows.
        assert not re.search(r'"/[a-z_]+/', text), path


def test_small_rows_are_compared_by_the_direction_they_move(tmp_path):
    figures = {
        "base": (8.0, 30.0),
        "C1": (9.0, 31.0),
        "A1": (8.07, 29.6),
        "E": (8.5, 30.4),
        "A4": (8.0, 29.0),
    }
    for row, (perplexity, bleu) in figures.items():
        leave(tmp_path / row, SMALL[row], perplexity=perplexity, bleu=bleu)
    table, conclusions = small_table3.format_table(SMALL, read(tmp_path)).split(
        "\n\nWhat"
    )
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
    verdicts = {(part[1], part[2]): part[3:] for part in parts if len(part) == 6}
    unclear = ["+0.90", "+0.40", "no clear difference"]
    assert verdicts["base against A1", "BLEU"] == unclear
    # What the text says of BLEU alone is held against it alone.
    assert ("base against A1", "perplexity") not in verdicts
    same = ["+0.10", "-0.40", "holds: no clear difference"]
    assert verdicts["base against E", "BLEU"] == same
    worse = ["+0.00", "-0.50", "does not hold"]
    assert verdicts["base against E", "perplexity"] == worse
    small = "holds; the paper's is within the bound"
    assert verdicts["base against A4", "BLEU"] == ["+0.40", "+1.00", small]
    none = ["-0.09", "+0.00", "no clear difference"]
    assert verdicts["base against A4", "perplexity"] == none
    assert verdicts["base against C2", "BLEU"] == ["+0.50", "", "not run"]


def test_other_seeds_of_the_base_model_stand_beside_it(tmp_path):
    values = table3_small.get_config("base")
    leave(tmp_path / "first", SMALL["base"], bleu=30.0, perplexity=8.0)
    os.utime(next((tmp_path / "first" / "evaluations").iterdir()), (0, 0))
    assert "with one seed" in small_table3.format_table(SMALL, read(tmp_path))
    for seed, bleu in ((7, 30.5), (3, 29.75)):
        values.seed = seed
        leave(tmp_path / str(seed), parsing.parse(values), bleu=bleu, perplexity=8.5)
    table = small_table3.format_table(SMALL, read(tmp_path))
    # The configured seed is the row, however old.
    assert cells(table.split("\n\nWhat")[0], "base")[2] == "8.00"
    configured = SMALL["base"].seed
    figures = {configured: "30.00 and 8.00", 3: "29.75 and 8.50", 7: "30.50 and 8.50"}
    expected = ", ".join(f"{figures[seed]} (seed {seed})" for seed in sorted(figures))
    assert f"by its seed: {expected}." in table


def test_a_change_that_another_seed_makes_too_is_none(tmp_path):
    values = table3_small.get_config("base")
    for seed, bleu, perplexity in ((1, 30.0, 8.0), (2, 31.2, 8.4), (3, 30.4, 8.2)):
        values.seed = seed
        figures = {"bleu": bleu, "perplexity": perplexity}
        leave(tmp_path / str(seed), parsing.parse(values), **figures)
    # Seeds 1 and 2 are 1.2 BLEU and 5 % of perplexity apart.
    for row, bleu, perplexity in (("C1", 28.8, 8.4), ("B1", 28.7, 8.41)):
        leave(tmp_path / row, SMALL[row], bleu=bleu, perplexity=perplexity)
    table, conclusions = small_table3.format_table(SMALL, read(tmp_path)).split(
        "\n\nWhat"
    )
    words = " ".join(table.split())
    assert "between two seeds: 1.20 BLEU or 5.0% of perplexity." in words
    assert cells(table, "C1")[5] == cells(table, "C1")[9] == "ours does not"
    assert cells(table, "B1")[5] == cells(table, "B1")[9] == "as printed"
    rows = conclusions.splitlines()
    [verdict] = [line for line in rows if "base against B1 | BLEU" in line]
    assert verdict.endswith("| +0.70 | +1.30 | holds |")


def test_perplexities_are_better_when_they_are_lower(tmp_path):
    for row, perplexity in {"base": 8.0, "D3": 7.0, "D4": 7.5}.items():
        leave(tmp_path / row, SMALL[row], perplexity=perplexity)
    table = small_table3.format_table(SMALL, read(tmp_path))
    [better] = [line for line in table.splitlines() if "D3 against base" in line]
    [worse] = [line for line in table.splitlines() if "base against D4" in line]
    assert better.endswith("| perplexity | -0.25 | -1.00 | holds |")
    assert worse.endswith("| perplexity | -0.55 | +0.50 | does not hold |")


def test_the_papers_own_table_bears_its_conclusions_out():
    """But for the eight layers of row C3, whose BLEU is printed below the six's."""
    doubtful = []
    for conclusion in printed.CONCLUSIONS:
        for figure in conclusion.figures:
            for worse, better in conclusion.pairs:
                values = [
                    getattr(printed.TABLE3[row], figure) for row in (worse, better)
                ]
                difference = values[1] - values[0]
                if figure == "perplexity":
                    difference = -difference
                if difference <= 0 and not conclusion.same:
                    doubtful.append((worse, better, figure))
    assert doubtful == [("base", "C3", "bleu")]


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_small_rows_are_the_papers_divided(row):
    model, paper = SMALL[row].model, ROWS[row].model
    assert model.num_layers == paper.num_layers // 2
    assert (model.d_model, model.d_ff) == (paper.d_model // 4, paper.d_ff // 4)
    assert (model.d_k, model.d_v) == (paper.d_k // 4, paper.d_v // 4)
    assert model.num_heads == paper.num_heads
    assert model.dropout_rate == paper.dropout_rate
    training = SMALL[row].training
    assert training.label_smoothing == ROWS[row].training.label_smoothing
    assert row in printed.TABLE3
