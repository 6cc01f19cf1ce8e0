"""A translation or a score in each form that `decode` writes."""

import dataclasses
import json

import numpy as np

from vaswani_jax.inference import formats
from vaswani_jax.inference.results import Hypothesis, Output, PairScore
from vaswani_jax.inference.scoring import Scored

OUTPUTS = (Output((5,), (7, 2), -1.0), Output((6,), (8, 2), -0.5))
BEST = Hypothesis("a\tb", -1.5, ("a", "</s>", "b"), OUTPUTS)
SECOND = Hypothesis("c", -2.0, ("c",), (Output((5, 6), (9, 2), -2.0),))


def test_a_hypothesis_is_one_line_of_text_or_of_fields() -> None:
    text = formats.format_translation(3, [BEST, SECOND], scored=None, form="text")
    assert text == "a\tb"
    rows = formats.format_translation(3, [BEST, SECOND], scored=None, form="tsv")
    assert rows == "3\t1\t-1.500000\ta b\n3\t2\t-2.000000\tc"


def test_json_has_the_token_scores_of_every_piece() -> None:
    log_probs = ([-0.25, -0.75], [-0.5], [-2.0])
    scored = [Scored(np.array(each, np.float32), {}) for each in log_probs]
    line = formats.format_translation(3, [BEST, SECOND], scored=scored, form="json")
    record = json.loads(line)
    assert record["line"] == 3
    best, second = record["hypotheses"]
    assert best["tokens"] == ["a", "</s>", "b"]
    assert best["log_probs"] == [-0.25, -0.75, -0.5]
    assert (second["text"], second["log_probs"]) == ("c", [-2.0])


def test_json_has_the_symbols_of_trees_and_whether_they_were_repaired() -> None:
    tree = Hypothesis("(S (X a))", -1.0, ("(S", "</s>"), (), ("(S",), is_repaired=True)
    line = formats.format_translation(1, [tree], scored=None, form="json")
    [record] = json.loads(line)["hypotheses"]
    assert record["symbols"] == ["(S"]
    assert record["repaired"] is True
    line = formats.format_translation(1, [BEST], scored=None, form="json")
    assert json.loads(line)["hypotheses"][0].keys() == {"text", "score"}


def test_json_has_the_phrases_that_are_missing() -> None:
    lacking = dataclasses.replace(BEST, missing_phrases=("d e", "f"))
    line = formats.format_translation(1, [lacking, SECOND], scored=None, form="json")
    first, second = json.loads(line)["hypotheses"]
    assert first["missing_phrases"] == ["d e", "f"]
    assert second.keys() == {"text", "score"}


def test_json_says_which_translation_is_cut() -> None:
    cut = dataclasses.replace(SECOND, outputs=(Output((5, 6), (9, 9), -2.0),))
    line = formats.format_translation(1, [cut, SECOND], scored=None, form="json")
    first, second = json.loads(line)["hypotheses"]
    assert first["cut"] is True and "cut" not in second
    tree = dataclasses.replace(cut, symbols=("(S",))  # It is said to be repaired.
    line = formats.format_translation(1, [tree], scored=None, form="json")
    assert "cut" not in json.loads(line)["hypotheses"][0]


def test_a_reranked_list_has_what_it_is_sorted_by() -> None:
    ranked = [dataclasses.replace(SECOND, rank_score=61.5), BEST]
    rows = formats.format_translation(3, ranked, scored=None, form="tsv")
    assert rows == "3\t1\t61.500000\tc\n3\t2\t-1.500000\ta b"
    line = formats.format_translation(3, ranked, scored=None, form="json")
    first, second = json.loads(line)["hypotheses"]
    assert first == {"text": "c", "score": -2.0, "rank_score": 61.5}
    assert "rank_score" not in second


def test_a_scored_pair_has_its_perplexity() -> None:
    score = PairScore(-2.0, ("a", "</s>"), (-0.5, -1.5))
    assert formats.format_score(4, score, form="text") == "-2.000000"
    row = formats.format_score(4, score, form="tsv")
    assert row == "4\t-2.000000\t2\t2.718282"
    record = json.loads(formats.format_score(4, score, form="json"))
    assert record["tokens"] == ["a", "</s>"]
    assert record["log_probs"] == [-0.5, -1.5]
