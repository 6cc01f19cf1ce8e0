"""Lines of trees, scored in the form of all other scores."""

import pytest

from tests import settings
from vaswani_jax.evaluation import by_language, tree_scores
from vaswani_jax.inference.results import Hypothesis

GOLD = ["(TOP (S (NP (DT The) (NN man)) (VP (VBZ sleeps))))"]
# The test has two of the three constituents and one of its own.
TEST = ["(TOP (S (NP (DT The)) (VP (NN man) (VBZ sleeps))))"]


def test_f1_comes_first_and_all_have_the_signature():
    first, *others = tree_scores.score_trees(TEST, GOLD)
    assert (first.name, round(first.value, 2)) == ("f1", 33.33)
    assert first.signature.startswith("bracketing|evalb|")
    assert {score.signature for score in others} == {first.signature}
    assert {"precision", "recall", "tagging"} <= {score.name for score in others}


def test_a_treebank_has_these_scores_and_no_bleu():
    data = settings.small_settings(
        **{
            "data.source": "treebank",
            "data.text_directory": ".",
            "data.train_trees": "trees",
            "data.vocabulary_sharing": "separate",
            "training.best_metric": "f1",
        }
    ).data
    scores = by_language.score_outputs(["The man sleeps"], GOLD, GOLD, data=data)
    assert (scores[0].name, scores[0].value) == ("f1", 100)
    assert "sacrebleu" not in {score.name for score in scores}


def test_what_is_no_tree_is_refused():
    with pytest.raises(ValueError, match=r"outputs, line 1: .* not closed"):
        tree_scores.score_trees(["(S (NN a)"], ["(S (NN a))"])


def test_trees_that_were_repaired_are_not_well_formed():
    hypotheses = [
        Hypothesis("", 0.0, (), (), ("NN",), is_repaired=is_repaired)
        for is_repaired in (True, False, False, False)
    ]
    score = tree_scores.score_well_formed(hypotheses)
    assert (score.name, score.value) == ("well_formed", 75)
