"""The verdicts on the paper's claims, with scored runs and without."""

import dataclasses
import json
import pathlib

import pytest

from tests.paper.layer_costs import costs_of
from tests.paper.workdirs import (
    PAPERS_PARSER,
    ROWS,
    SMALL,
    WSJ,
    leave,
    leave_parser,
    parsing_settings,
    read,
)
from vaswani_jax.paper import claims, presets, printed

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def systems():
    return presets.systems()


def judge(systems, directory):
    evidence = claims.Evidence(systems, ROWS, SMALL, read(directory), costs_of())
    return {claim.id: claim for claim in claims.judge(evidence)}


def test_without_runs_only_what_is_computed_is_judged(systems, tmp_path):
    judged = judge(systems, tmp_path)
    for claim in judged.values():
        is_judged = claim.verdict != "not run"
        assert claim.command or not is_judged
        assert is_judged == (claim.basis != "nothing") == bool(claim.figures), claim
        assert claim.basis != "training" and not claim.runs
        assert claim.text and claim.because, claim
    assert {id for id, claim in judged.items() if claim.basis == "computation"} == {
        *("scaling", "cost-of-heads", "wavelengths", "offsets"),
        *("sequential-operations", "hours", "training-cost", "parameters"),
    }
    assert judged["parameters"].verdict == "does not hold"


def test_claims_stand_in_the_papers_order_and_each_once(systems, tmp_path):
    evidence = claims.Evidence(systems, ROWS, SMALL, [], costs_of())
    judged = claims.judge(evidence)
    assert len({claim.id for claim in judged}) == len(judged)
    sections = [claims.SECTIONS.index(claim.section) for claim in judged]
    assert sections == sorted(sections)
    assert set(sections) == set(range(len(claims.SECTIONS)))


@pytest.mark.parametrize(
    ("bleu", "verdict", "margin"),
    [
        (28.5, "holds", "holds"),
        (28.2, "holds", "does not hold"),
        (20.0, "does not hold", "does not hold"),
    ],
)
def test_a_system_that_was_trained_is_judged(systems, tmp_path, bleu, verdict, margin):
    leave(tmp_path / "big", systems["big", "de"], split="test", bleu=bleu)
    judged = judge(systems, tmp_path)
    assert judged["big-ende"].verdict == verdict
    assert judged["margin-ende"].verdict == margin
    assert judged["big-ende"].runs == (str(tmp_path / "big"),)
    assert judged["big-ende"].figures["bleu"] == bleu
    assert judged["base-ende"].verdict == judged["big-enfr"].verdict == "not run"


def test_a_conclusion_is_judged_by_small_rows_until_the_papers_are_run(
    systems, tmp_path
):
    for row, bleu in {"base": 30.0, "A1": 30.2}.items():
        leave(tmp_path / f"small_{row}", SMALL[row], bleu=bleu)
    heads = judge(systems, tmp_path)["a-single-head-is-worse-by-bleu"]
    assert (heads.verdict, heads.scale) == ("no clear difference", "small")
    for row, bleu in {"base": 25.8, "A1": 24.9}.items():
        leave(tmp_path / row, ROWS[row], bleu=bleu)
    heads = judge(systems, tmp_path)["a-single-head-is-worse-by-bleu"]
    assert (heads.verdict, heads.scale) == ("holds", "")
    assert heads.figures["base - A1"] == pytest.approx(0.9)
    assert set(heads.runs) == {str(tmp_path / row) for row in ("base", "A1")}


def test_a_conclusion_that_some_rows_bear_out_holds_in_part(systems, tmp_path):
    for row, bleu in {"base": 30.0, "B1": 28.0, "B2": 30.1}.items():
        leave(tmp_path / row, SMALL[row], bleu=bleu)
    keys = judge(systems, tmp_path)["a-smaller-d_k-is-worse-by-bleu"]
    assert keys.verdict == "holds in part"
    assert keys.because.startswith("1 of 2 hold: +2.00 (base against B1), -0.10")


@pytest.mark.parametrize(
    ("base", "unsmoothed", "verdict"),
    [
        (0.63, 0.62, "holds"),
        (0.63, 0.626, "no clear difference"),
        (0.62, 0.63, "does not hold"),
    ],
)
def test_label_smoothing_is_judged_by_accuracy_too(
    systems, tmp_path, base, unsmoothed, verdict
):
    name = "label-smoothing-improves-accuracy"
    for row, accuracy in {"base": base, "D3": unsmoothed}.items():
        assert judge(systems, tmp_path)[name].verdict == "not run"
        leave(tmp_path / row, SMALL[row], **{"valid/accuracy": accuracy})
    claim = judge(systems, tmp_path)[name]
    assert (claim.verdict, claim.scale) == (verdict, "small")
    assert claim.figures["base - D3"] == pytest.approx(base - unsmoothed)


def test_two_seeds_of_the_base_model_are_the_noise_of_accuracy(systems, tmp_path):
    seed2 = dataclasses.replace(SMALL["base"], seed=2)
    for name, settings, accuracy in (
        ("base", SMALL["base"], 0.63),
        ("seed2", seed2, 0.61),
        ("D3", SMALL["D3"], 0.615),
    ):
        leave(tmp_path / name, settings, **{"valid/accuracy": accuracy})
    claim = judge(systems, tmp_path)["label-smoothing-improves-accuracy"]
    assert claim.verdict == "no clear difference"
    assert claim.figures["noise"] == pytest.approx(0.02)
    assert claim.runs[-1] == str(tmp_path / "seed2")


@pytest.mark.parametrize(
    ("alone", "semi_supervised", "verdict", "because"),
    [
        (91.2, 92.9, "holds", "2 of 2 hold: 91.20 F1 (WSJ only), 92.90 F1 (semi-"),
        (91.2, 90.0, "holds in part", "1 of 2 hold: 91.20 F1 (WSJ only), 90.00 F1"),
        (91.2, None, "holds in part", "1 of 2 hold: 91.20 F1 (WSJ only), not run (s"),
        (None, 92.9, "holds in part", "1 of 2 hold: not run (WSJ only), 92.90 F1"),
        (80.0, None, "does not hold", "0 of 2 hold: 80.00 F1 (WSJ only), not run"),
        (80.0, 85.0, "does not hold", "0 of 2 hold: 80.00 F1 (WSJ only), 85.00 F1"),
        (None, None, "not run", "the treebank is licensed by the LDC"),
    ],
)
def test_the_abstract_on_parsing_is_judged_by_both_trainings(
    systems, tmp_path, alone, semi_supervised, verdict, because
):
    f1_by_silver = {"": alone, "silver.trees": semi_supervised}
    f1_by_silver = {silver: f1 for silver, f1 in f1_by_silver.items() if f1}
    for silver, f1 in f1_by_silver.items():
        changes = {"data.silver_trees": silver}
        settings = parsing_settings(**(PAPERS_PARSER | WSJ | changes))
        leave_parser(tmp_path / f"run_{silver}", settings, split="test", f1=f1)
    claim = judge(systems, tmp_path)["parsing"]
    assert claim.verdict == verdict
    assert claim.because.startswith(because)
    assert list(claim.figures.values()) == list(f1_by_silver.values())
    assert claim.runs == tuple(str(tmp_path / f"run_{name}") for name in f1_by_silver)
    assert (claim.basis == "training") == bool(f1_by_silver)


def test_dyers_parser_excepts_the_claim_that_it_is_printed_beside(systems, tmp_path):
    judged = judge(systems, tmp_path)
    assert judged["f1-wsj-only"].text.endswith("(90.4) but Dyer et al.'s")
    assert judged["f1-semi-supervised"].text.endswith("(92.1)")


def test_every_conclusion_on_table_3_is_a_claim(systems, tmp_path):
    texts = [claim.text for claim in judge(systems, tmp_path).values()]
    for conclusion in printed.CONCLUSIONS:
        found = [text for text in texts if text.startswith(conclusion.text)]
        assert len(found) == len(conclusion.figures), conclusion


def test_claims_are_json(systems, tmp_path):
    judged = list(judge(systems, tmp_path).values())
    written = claims.to_json(judged)
    assert json.loads(json.dumps(written)) == written
