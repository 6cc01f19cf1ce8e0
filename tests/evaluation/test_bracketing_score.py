"""The figures of a parser: their names, their order, and how they are printed."""

from vaswani_jax.evaluation.bracketing_score import BracketingScore, Counts

SCORE = BracketingScore(
    counts=Counts(gold=4, test=2, matched=2),
    complete_match=50.0,
    crossing=0.5,
    no_crossing=50.0,
    short=Counts(gold=1, test=1, matched=1),
    unlabelled=Counts(gold=4, test=2, matched=1),
    tagging=None,
    by_label={"NP": Counts(gold=3, test=1, matched=1)},
    by_length={"1-5": Counts(gold=4, test=2, matched=2)},
    sentences=2,
    errors=0,
    skips=0,
    signature="signature",
)


def test_figures_are_percentages_and_f1_is_first() -> None:
    assert (SCORE.f1, SCORE.precision, SCORE.recall) == (400 / 6, 100.0, 50.0)
    figures = SCORE.figures()
    assert list(figures)[:4] == ["f1", "precision", "recall", "complete_match"]
    assert (figures["f1_40"], figures["f1_unlabelled"]) == (100.0, 200 / 6)
    assert "tagging" not in figures
    assert Counts(gold=0, test=0, matched=0).f1 == 0


def test_lines_have_two_decimals_and_tables_if_asked() -> None:
    assert SCORE.format().startswith("f1 66.67  signature\nprecision 100.00\n")
    assert "NP" not in SCORE.format()
    table = SCORE.format(by_label=True).splitlines()[-2:]
    assert [line.split() for line in table] == [
        ["label", "f1", "precision", "recall", "gold", "test"],
        ["NP", "50.00", "100.00", "33.33", "3", "1"],
    ]


def test_the_dictionary_has_everything() -> None:
    everything = SCORE.as_dict()
    assert everything["signature"] == "signature" and everything["sentences"] == 2
    assert everything["by_length"]["1-5"] == {
        **{"f1": 400 / 6, "precision": 100.0, "recall": 50.0},
        **{"gold": 4, "test": 2, "matched": 2},
    }
