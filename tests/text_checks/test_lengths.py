"""Sizes and lengths of a text."""

import dataclasses
import functools

import numpy as np
import pytest

from tests import settings
from tests.text_checks import texts
from vaswani_jax.core import languages, types
from vaswani_jax.text_checks import lengths
from vaswani_jax.text_checks.sample import Pair

DATA = settings.small_settings().data


def measured(pairs: list[Pair], *, max_words: int = 100) -> lengths.Lengths:
    result = lengths.Lengths()
    for begin in range(0, len(pairs), 7):
        result.add(pairs[begin : begin + 7], max_words=max_words)
    return result


def test_lengths_are_those_of_numpy() -> None:
    pairs = texts.sentences(101)
    measures = measured(pairs).measures()
    assert measures["pairs"] == 101
    for side, name in enumerate(types.SIDES):
        numbers = np.array([len(pair[side]) for pair in pairs])
        summary = measures["characters"][name]
        assert summary["mean"] == pytest.approx(numbers.mean(), abs=0.005)
        assert summary["median"] == np.quantile(numbers, 0.5, method="inverted_cdf")
        assert summary["95%"] == np.quantile(numbers, 0.95, method="inverted_cdf")
        assert summary["maximum"] == numbers.max()
    assert measures["words"]["source"]["maximum"] == 10  # Anna sees ... in May.


def test_empty_sides_are_counted_and_shown() -> None:
    pairs = [*texts.sentences(60), ("a dog", " "), ("", "ein Hund")]
    text = measured(pairs)
    assert text.num_empty == 2
    [finding] = text.find_empty(split="train")
    assert finding.severity == "minor" and finding.share == pytest.approx(2 / 62)
    assert str(finding.examples[0]) == "line 61: a dog |  "
    [finding] = measured(pairs[-3:]).find_empty(split="valid")
    assert finding.severity == "serious"
    assert measured(texts.sentences(60)).find_empty(split="train") == []


def test_lines_of_more_words_than_tokens_may_be_are_too_long() -> None:
    data = dataclasses.replace(DATA, max_length=10)
    text = measured(texts.sentences(20), max_words=9)
    [finding] = text.find_too_long(data)
    assert finding.severity == "serious" and finding.share == 1.0
    assert finding.remedies[0].startswith("--config.data.max_length=20")
    assert measured(texts.sentences(20), max_words=10).find_too_long(data) == []


def test_brackets_of_trees_are_no_words() -> None:
    tree = "(S (NP (DT the) (JJ old) (JJ grey) (NN man)) (VP (VBZ sleeps)))"
    trees = lengths.Lengths(has_trees=True)
    trees.add([("the old grey man sleeps", tree)] * 4, max_words=5)
    trees.add([("the old grey man sleeps well", tree)], max_words=5)
    assert trees.num_too_long == 1


def test_pairs_of_odd_lengths_are_found() -> None:
    pairs = texts.sentences(100)
    assert lengths.find_odd_ratios(texts.blocks(pairs), split="train") == []
    pairs[10:15] = [(pair[0], "Anna.") for pair in pairs[10:15]]
    [finding] = lengths.find_odd_ratios(texts.blocks(pairs), split="train")
    assert finding.share == 0.05 and finding.severity == "minor"
    assert all(e.number in range(11, 16) for e in finding.examples)
    assert finding.message.startswith("5.0% of the pairs have one side that is over 3")
    [finding] = lengths.find_odd_ratios(texts.blocks(pairs), split="train", locale="de")
    assert finding.message.startswith(
        "5.0% of the pairs whose target is in de have one"
    )
    # A language may be shorter throughout.
    shorter = [(pair[0], pair[1][:6]) for pair in pairs]
    assert lengths.find_odd_ratios(texts.blocks(shorter), split="train") == []


def test_the_usual_ratio_is_that_of_the_longer_side() -> None:
    pairs = [("four", "eighty-eight"), ("a", "b" * 100), ("", "x"), ("ab", "abcdef")]
    assert lengths.usual_ratio(texts.blocks(pairs)) == pytest.approx(3)
    swapped = [(target, source) for source, target in pairs]
    assert lengths.usual_ratio(texts.blocks(swapped)) == pytest.approx(3)
    assert lengths.usual_ratio(texts.blocks([("", "x")])) == 1.0


def test_a_source_that_is_only_a_tag_is_empty() -> None:
    configured = settings.small_settings(**settings.TWO_TARGETS).data
    tag = languages.tag(languages.target_locales(configured)[0])
    counted = lengths.Lengths(
        is_empty_source=functools.partial(languages.is_empty, data=configured)
    )
    counted.add([(tag, "a"), (f"{tag} \u3000", "a"), (f"{tag} b", "a")], max_words=9)
    assert counted.num_empty == 2
