"""F1 of constituents: each of EVALB's rules by a score worked out by hand."""

import json
import logging
import random

import pytest

import vaswani_jax
from tests.evaluation import perturbed_trees
from vaswani_jax.data import treebank
from vaswani_jax.data.treebank import Tree
from vaswani_jax.evaluation import bracketing
from vaswani_jax.evaluation.bracketing import COLLINS, NK
from vaswani_jax.evaluation.bracketing_score import BracketingScore, Counts


def trees_of(*lines: str) -> list[Tree]:
    return list(treebank.parse(lines, name="test"))


def score(
    gold: str, test: str, parameters: bracketing.Parameters = COLLINS
) -> BracketingScore:
    """Return the score of the trees of two texts."""
    return bracketing.score(trees_of(gold), trees_of(test), parameters=parameters)


def counts(gold: str, test: str, parameters: bracketing.Parameters = COLLINS) -> Counts:
    return score(gold, test, parameters).counts


def score_lines(gold: str, test: str) -> BracketingScore:
    """Return EVALB's score of two texts, line by line."""
    lines = [[trees_of(line) for line in text.splitlines()] for text in (gold, test)]
    return bracketing.score_as_evalb(*lines)


MAN = "(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))"


def test_a_tree_scores_100_against_itself() -> None:
    ours = score(MAN, MAN)
    figures = ours.figures()
    assert figures.pop("crossing") == 0
    assert set(figures.values()) == {100.0}
    assert ours.counts == Counts(gold=3, test=3, matched=3)


def test_precision_and_recall_are_of_the_test_and_of_the_reference() -> None:
    # S matches; NP and VP are missing; X is over the words of the VP.
    ours = score(MAN, "(S (DT the) (NN man) (X (VBZ sleeps)))")
    assert ours.counts == Counts(gold=3, test=2, matched=1)
    assert ours.precision == 50
    assert ours.recall == pytest.approx(100 / 3)
    assert ours.f1 == 40
    assert ours.unlabelled == Counts(gold=3, test=2, matched=2)


@pytest.mark.parametrize(
    ("gold", "test", "expected"),
    [
        # Whatever the outermost bracket is called, it is no constituent.
        ("(S (NN a))", "(ROOT (S (NN a)))", Counts(1, 1, 1)),
        ("(TOP (S (NN a)))", "(S1 (S (NN a)))", Counts(1, 1, 1)),
        ("( (S (NN a)))", "(TOP (S (NN a)))", Counts(1, 1, 1)),
        ("(ROOT (NP (NN a)) (NP (NN b)))", "(NP (NN a) (NN b))", Counts(2, 1, 0)),
        # TOP does not count inside, either; ROOT does.
        ("(S (TOP (NN a)))", "(S (NN a))", Counts(1, 1, 1)),
        ("(S (ROOT (NN a)))", "(S (NN a))", Counts(2, 1, 1)),
        # A constituent counts as often as both have it.
        ("(NP (NP (NN a)))", "(NP (NN a))", Counts(2, 1, 1)),
        ("(NP (NN a))", "(NP (NP (NP (NN a))))", Counts(1, 3, 1)),
        ("(NP (NP (NN a)))", "(NP (NP (NP (NN a))))", Counts(2, 3, 2)),
        ("(NP (VP (NN a)))", "(VP (NP (NN a)))", Counts(2, 2, 2)),
        # Punctuation has no place, and what has nothing else does not count.
        ("(S (NP (NN a)) (. .))", "(S (NP (NN a) (. .)))", Counts(2, 2, 2)),
        ("(S (NN a) (X (, ,) (: -)))", "(S (NN a) (, ,) (: -))", Counts(1, 1, 1)),
        (
            "(S (`` ``) (NP (NN a)) ('' ''))",
            "(S (`` ``) (NN a) ('' ''))",
            Counts(2, 1, 1),
        ),
        # Brackets, signs and hyphens are words.
        ("(S (NP (NN a)) (-LRB- x))", "(S (NP (NN a) (-LRB- x)))", Counts(2, 2, 1)),
        ("(S (NP (NN a)) ($ x))", "(S (NP (NN a) ($ x)))", Counts(2, 2, 1)),
        ("(S (NP (NN a)) (HYPH -))", "(S (NP (NN a) (HYPH -)))", Counts(2, 2, 1)),
        # Functions and indices do not count.
        ("(S (NP-SBJ-1 (NN a)))", "(S (NP=2 (NN a)))", Counts(2, 2, 2)),
        ("(S (NP|X (NN a)))", "(S (NP (NN a)))", Counts(2, 2, 1)),
        # Particles are adverbs, with their function tags, too.
        ("(S (ADVP (NN a)))", "(S (PRT (NN a)))", Counts(2, 2, 2)),
        ("(S (PRT-1 (NN a)))", "(S (ADVP-TMP (NN a)))", Counts(2, 2, 2)),
        ("(ADVP (PRT (NN a)))", "(PRT (PRT (NN a)))", Counts(2, 2, 2)),
        # Empty elements are no words, and the other file need not have them.
        ("(S (NP (-NONE- *)) (NN a))", "(S (NN a))", Counts(1, 1, 1)),
        ("(S (NN a))", "(S (NP (NN a) (-NONE- *T*-1)))", Counts(1, 2, 1)),
    ],
)
def test_what_counts_and_what_matches(gold: str, test: str, expected: Counts) -> None:
    assert counts(gold, test) == expected


def test_the_reference_decides_what_is_punctuation() -> None:
    gold = "(S (NP (NN a)) (, ,) (VP (VB b)))"
    # The comma has another tag, and a word that of a comma.
    test = "(S (NP (, a)) (NN ,) (VP (VB b)))"
    assert counts(gold, test) == Counts(3, 3, 3)
    assert score(gold, test).tagging == 50
    # EVALB lets each file decide: their words then differ.
    with pytest.raises(ValueError, match=r"no sentence is left to score \(errors: 1, "):
        score_lines(gold, test)


def test_trees_without_tags_have_no_tagging_accuracy() -> None:
    gold = "(S (NP (NN a)) (. .))"
    ours = score(gold, "(S (NP (XX a) (XX .)))")
    assert ours.f1 == 100 and ours.tagging is None
    assert "tagging" not in ours.figures()
    assert "tagging" not in ours.format()
    assert ours.as_dict()["f1"] == 100


def test_tags_count_as_labels_do_and_are_not_cut() -> None:
    assert score(
        "(S (ADVP a) (NN b) (NN c))", "(S (PRT a) (NN-X b) (NN c))"
    ).tagging == (pytest.approx(200 / 3))


def test_constituents_of_the_test_cross_once_each() -> None:
    gold = "(S (NP (A a) (B b)) (VP (C c) (D d)))"
    crossing = "(S (A a) (X (X (B b) (C c))) (D d))"
    ours = score(f"{gold} {gold}", f"{crossing} {gold}")
    # Both of the X cross NP and VP; the second sentence has none.
    assert ours.crossing == 1
    assert ours.no_crossing == 50
    assert ours.complete_match == 50


def test_figures_are_of_sums_not_means() -> None:
    # 1 of 1, and 2 of 4 constituents: the sums give 60, the mean would be 75.
    ours = score(
        "(S (A a)) (S (NP (A a)) (VP (B b) (NP (C c))))",
        "(S (A a)) (S (VP (A a)) (NP (B b) (NP (C c))))",
    )
    assert ours.counts == Counts(5, 5, 3)
    assert ours.f1 == pytest.approx(60)
    assert ours.complete_match == 50


def test_labels_have_their_own_scores_the_most_frequent_first() -> None:
    ours = score(
        "(S (NP (A a)) (NP (B b)) (PRT (C c)))",
        "(S (NP (A a)) (VP (B b)) (ADVP (C c)))",
    )
    assert list(ours.by_label.items()) == [
        ("NP", Counts(2, 1, 1)),
        ("ADVP", Counts(1, 1, 1)),
        ("S", Counts(1, 1, 1)),
        ("VP", Counts(0, 1, 0)),
    ]


def flat(length: int, label: str = "S") -> str:
    return f"({label} {'(NN a) ' * length})"


def test_sentences_are_grouped_by_words_with_punctuation() -> None:
    lengths = [1, 5, 6, 10, 11, 15, 16, 20, 21, 30, 31, 60]
    gold = [flat(length) for length in lengths]
    # Punctuation makes it one of six words; an empty element makes it no longer.
    gold.append("(S (A a) (A a) (A a) (A a) (A a) (. .))")
    gold.append("(S (A a) (-NONE- *) (A a) (A a) (A a) (A a))")
    text = " ".join(gold)
    assert {k: c.gold for k, c in score(text, text).by_length.items()} == {
        "1-5": 3,
        "6-10": 3,
        "11-15": 2,
        "16-20": 2,
        "21-30": 2,
        "31+": 2,
    }
    assert list(score(MAN, MAN).by_length) == ["1-5"]


def test_f1_40_is_of_sentences_up_to_40_words() -> None:
    gold = f"{flat(40)} {flat(41)}"
    assert score(gold, f"{flat(40)} {flat(41, 'X')}").short == Counts(1, 1, 1)
    assert score(gold, f"{flat(40, 'X')} {flat(41)}").figures()["f1_40"] == 0


def test_nk_deletes_question_marks_and_s1() -> None:
    gold, test = "(S (S1 (NP (A a)) (? ?)))", "(S (NP (A a) (? ?)))"
    assert counts(gold, test, NK) == Counts(2, 2, 2)
    assert counts(gold, test, COLLINS) == Counts(3, 2, 1)


def test_depth_has_no_limit() -> None:
    depth = 5000
    text = "(A " * depth + "(B c)" + ")" * depth
    assert counts(text, text) == Counts(depth, depth, depth)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (
            "(S (A a) (B x) (C c))",
            "word 2 is 'b' in the gold tree, 'x' in the test tree",
        ),
        ("(S (A a) (B b))", "word 3 is 'c' in the gold tree, missing in the test tree"),
        (
            "(S (A a) (B b) (C c) (D d))",
            "word 4 is 'd' in the test tree, missing in the gold tree",
        ),
    ],
)
def test_other_words_are_refused(test: str, reason: str) -> None:
    gold = "(S (A a) (B b) (C c))"
    with pytest.raises(treebank.WordMismatchError) as error:
        score(f"{MAN} {gold}", f"{MAN} {test}")
    assert (error.value.number, error.value.reason) == (2, reason)
    assert str(error.value) == f"tree 2: {reason}"


def test_another_number_of_trees_is_refused() -> None:
    with pytest.raises(ValueError, match="one test tree, got 2 gold trees and 1 test"):
        score(f"{MAN} {MAN}", MAN)
    with pytest.raises(ValueError, match="at least one tree, got 0 gold trees and 0"):
        bracketing.score([], [])


# What the sample of EVALB shows, in its order: 20 outputs of a sentence, 4 pairs.
CLAUSE = "(NP (D this)) (VP (V is) (NP (T a) (N test)))"
OUTPUTS = f"""\
(S {CLAUSE})
(S (NP (D this)) (VP (V is) (PP (T a) (N test))))
(S (NP (D this)) (VP (V is) (NP (T a) (M test))))
(S (PP (D this)) (VP (V is) (NP (T a) (M test))))
(S (NP (D this)) (VP (V is) (T a) (NP (N test))))
(S (NP (D this) (V is)) (NP (T a) (N test)))
(S (D this) (V is) (T a) (N test))
(D this) (V is) (T a) (N test)
(S (NP (D this)) (VP (V is) (NP (NP (T a) (N test)))))
(S (NP (D this)) (VP (V is) (NP (NP (NP (NP (NP (T a) (N test))))))))

(S (NP (D this)) (VP (V was) (NP (NP (T a) (N test)))))
(S (NP (D this)) (VP (V is) (M not) (NP (NP (T a) (N test)))))

(TOP (S {CLAUSE}))
(S (NP (D this)) (NONE *) (VP (V is) (NP (T a) (N test))))
(S (NP (D this)) (S (NONE x) (NP (NONE *))) (VP (V is) (NP (T a) (N test))))
(S (NP (D this)) (VP (V is) (NP (T a) (NX test))))
(S {CLAUSE})
(S (NP (D That)) (VP (V is) (NP (T a) (N test))))"""
PAIRS = [
    *((f"(S {CLAUSE})", output) for output in OUTPUTS.split("\n")),
    ("(S (NP-SBJ-1 (D this)) (VP-X (V is) (NP (T a) (N test))))", f"(S {CLAUSE})"),
    (f"(S {' '.join([CLAUSE] * 11)})", f"(S {' '.join([CLAUSE] * 11)})"),
    (f"(S {CLAUSE} (-NONE- *))", f"(S {CLAUSE} (-NONE- *))"),
    (f"(S {CLAUSE} (: *))", f"(S {CLAUSE} (: *))"),
]


def test_the_sample_of_evalb_has_its_published_figures() -> None:
    gold, test = (
        [trees_of(line) for line in lines] for lines in zip(*PAIRS, strict=True)
    )
    parameters = bracketing.Parameters(
        "sample",
        deleted_labels=COLLINS.deleted_labels - {"."},
        equivalent_labels={"NX": "N"},
    )
    ours = bracketing.score_as_evalb(gold, test, parameters=parameters)
    assert (ours.sentences, ours.errors, ours.skips) == (17, 5, 2)
    assert ours.counts == Counts(gold=98, test=95, matched=86)
    figures = {name: round(value, 2) for name, value in ours.figures().items()}
    del figures["f1_unlabelled"]
    assert figures == {
        "f1": 89.12,
        "precision": 90.53,
        "recall": 87.76,
        "complete_match": 52.94,
        "crossing": 0.06,
        "no_crossing": 94.12,
        "f1_40": 83.2,  # 2 x 81.25 x 85.25 / (81.25 + 85.25)
        "tagging": 98.15,
    }


def test_evalb_counts_the_root() -> None:
    root = f"(ROOT {MAN})"
    assert score_lines(root, root).counts == Counts(4, 4, 4)
    assert score_lines(f"( {MAN})", MAN).counts == Counts(4, 3, 3)
    assert score_lines(f"(TOP {MAN})", MAN).counts == Counts(3, 3, 3)


def test_a_line_that_is_no_tree_is_an_error_of_evalb() -> None:
    lines = [trees_of(MAN), trees_of(MAN), None]
    ours = bracketing.score_as_evalb(lines, [trees_of(MAN), None, trees_of(MAN)])
    assert (ours.sentences, ours.errors, ours.skips) == (1, 2, 0)


def test_evalb_leaves_out_the_last_lines_of_the_longer_file(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = trees_of(MAN)
    with caplog.at_level(logging.WARNING, "vaswani_jax"):
        ours = bracketing.score_as_evalb([line, line], [line, line, line])
    assert (ours.sentences, ours.errors) == (2, 0)
    assert "the gold file has 2 lines, the test file 3" in caplog.text


def test_the_signature_says_how_the_score_was_computed() -> None:
    version = vaswani_jax.__version__
    assert score(MAN, MAN, NK).signature == (
        f"bracketing|evalb|prm:nk|tags:reference|sentences:1|v:{version}"
    )
    assert score_lines(f"{MAN}\n{MAN}\n{MAN}", f"{MAN}\n\n(S (NN b))").signature == (
        f"bracketing|evalb|prm:COLLINS|tags:own|sentences:1|errors:1|skips:1|v:{version}"
    )


def test_a_score_is_printed_a_line_a_figure_and_written_as_json() -> None:
    ours = score(MAN, "(S (NP (DT the) (NN man)) (VBZ sleeps))")
    assert ours.format(by_label=True, by_length=True).splitlines() == [
        f"f1 80.00  {ours.signature}",
        "precision 100.00",
        "recall 66.67",
        "complete_match 0.00",
        "crossing 0.00",
        "no_crossing 100.00",
        "f1_40 80.00",
        "f1_unlabelled 80.00",
        "tagging 100.00",
        "",
        "label      f1  precision  recall    gold    test",
        "NP     100.00     100.00  100.00       1       1",
        "S      100.00     100.00  100.00       1       1",
        "VP       0.00       0.00    0.00       1       0",
        "",
        "words      f1  precision  recall    gold    test",
        "1-5     80.00     100.00   66.67       3       2",
    ]
    values = json.loads(json.dumps(ours.as_dict()))
    assert values["f1"] == pytest.approx(80)
    assert values["by_label"]["VP"]["gold"] == 1
    assert values["by_length"]["1-5"]["recall"] == pytest.approx(200 / 3)
    assert (values["sentences"], values["errors"], values["skips"]) == (1, 0, 0)
    assert values["signature"] == ours.signature


def test_labels_and_lengths_add_up_to_all() -> None:
    generator = random.Random(7)
    gold = [perturbed_trees.random_tree(generator) for _ in range(40)]
    test = [
        Tree(
            "TOP", tuple(perturbed_trees.perturb(t, generator, change_leaf=lambda o: o))
        )
        for t in gold
    ]
    ours = bracketing.score(gold, test)
    for table in (ours.by_label, ours.by_length):
        for name in ("gold", "test", "matched"):
            total = sum(getattr(row, name) for row in table.values())
            assert total == getattr(ours.counts, name)
    swapped = bracketing.score(test, gold)
    assert swapped.precision == ours.recall and swapped.recall == ours.precision
