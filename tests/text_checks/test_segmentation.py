"""How a vocabulary segments both sides."""

import dataclasses

import pytest

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.text_checks import segmentation
from vaswani_jax.text_checks.findings import Finding

DATA = settings.small_settings(
    **{"data.byte_fallback": True, "data.vocab_size": 300}
).data
VOCABULARY = settings.letters_vocabulary()


def test_tokens_words_and_bytes_are_counted() -> None:
    source, target = segmentation.segment(
        [("a b", "é a"), ("hello world", "")], VOCABULARY
    )
    measures = source.measures()
    assert measures["per_word"] == sum(source.lengths) / 4
    assert measures["bytes"] == measures["unknown"] == 0
    # The mark of a word, two bytes, and the a.
    assert list(target.lengths) == [4, 0]
    assert target.bytes == 0.5


def test_bytes_are_found() -> None:
    pairs = [("hello world", "a b c d é")] * 20
    found = segmentation.find(
        segmentation.segment(pairs, VOCABULARY), data=DATA, split="test"
    )
    assert [(finding.kind, str(finding.severity)) for finding in found] == [
        ("bytes", "serious")
    ]
    assert "character_coverage=1" in found[0].remedies[0]


def test_unknown_subwords_are_found() -> None:
    data = dataclasses.replace(DATA, byte_fallback=False, vocab_size=20)
    vocabulary = settings.learn_vocabulary(["a b c d e f g h a b c"] * 20, data)
    pairs = [("a b c", "a b c d e f g z")] * 20
    [finding] = segmentation.find(
        segmentation.segment(pairs, vocabulary), data=data, split="train"
    )
    assert (finding.kind, finding.severity) == ("unknown_subwords", "serious")
    assert "target" in finding.message


def test_unknown_symbols_of_trees_need_more_trees() -> None:
    # A label is no character: neither bytes nor another coverage would help.
    data = dataclasses.replace(DATA, source="treebank")
    words, trees = segmentation.segment([("a b", "c d")] * 20, VOCABULARY)
    trees = dataclasses.replace(trees, unknown=0.1)
    [finding] = segmentation.find((words, trees), data=data, split="valid")
    assert finding.kind == "unknown_subwords"
    assert finding.message.endswith("the training trees lack these labels or tags")
    assert "config.data.train_trees" in finding.remedies[0]


def test_a_side_that_is_cut_into_small_pieces_is_found() -> None:
    pairs = [("hello world again", "abcdefgh hgfedcba")] * 20
    sides = segmentation.segment(pairs, VOCABULARY)

    def find(data: config.DataConfig) -> list[Finding]:
        found = segmentation.find(sides, data=data, split="valid")
        return [finding for finding in found if finding.kind == "segmentation"]

    [finding] = find(DATA)
    assert "does not fit the target" in finding.message
    [finding] = find(dataclasses.replace(DATA, vocabulary="some.model"))
    assert finding.remedies[-1].startswith("--config.data.vocabulary=")
    # A language without spaces has no words to count.
    for locale in ("zh", "de,zh"):
        assert not find(dataclasses.replace(DATA, target_locale=locale))


@pytest.mark.parametrize("length", [16, 100])
def test_pairs_of_too_many_tokens_are_found(length: int) -> None:
    data = dataclasses.replace(DATA, max_length=length)
    pairs = [("hello world", "a b c d e f g h a b c d e f g h")] * 20
    found = segmentation.find(
        segmentation.segment(pairs, VOCABULARY), data=data, split="train"
    )
    assert [f.kind for f in found] == ["too_long"] * (length == 16)
