"""Words of a line and their subwords: one start a word, whatever the characters."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from tests import settings
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords, split_words

LINES = ["He ( she ) slept well .", "-LRB- the old house -RRB- fell"] * 20
# A word is anything without white space of ASCII, as between the brackets of trees.
words = strategies.text(
    strategies.one_of(
        strategies.sampled_from("\u2581\xa0\u3000\u00b4\u00bd\u2003()eh\0"),
        strategies.characters(exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=5,
).filter(lambda word: len(word.encode("utf-8").split()) == 1 and "\0" not in word)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def subwords(request):
    data = settings.small_settings(
        **{
            "data.subword_model": request.param,
            "data.byte_fallback": True,
            "data.vocab_size": 282,
            "data.normalization": "nmt_nfkc",
        }
    ).data
    return WordSubwords(learn_subwords(LINES, data).model)


@hypothesis.settings(deadline=None, max_examples=150)
@hypothesis.given(
    line=strategies.lists(words, max_size=6), replace_unknown=strategies.booleans()
)
def test_each_word_has_exactly_one_start_and_comes_first(
    subwords, line, replace_unknown
):
    [ids] = subwords.encode([" ".join(line)], replace_unknown=replace_unknown)
    starts = subwords.word_starts[ids]
    assert np.count_nonzero(starts) == len(line)
    assert not ids or starts[0]


def test_a_line_of_plain_words_has_the_ids_of_its_model(subwords):
    line = "the old house fell"
    [ids] = subwords.encode([line])
    assert subwords.decode(ids) == line
    assert super(WordSubwords, subwords).encode([line]) == [ids]


def test_brackets_are_those_of_treebanks():
    assert split_words(" ( a\t(b)  c ") == ["-LRB-", "a", "-LRB-b-RRB-", "c"]
    assert split_words("a\xa0b") == ["a\xa0b"]  # no white space of a tree


def test_each_word_keeps_its_own_characters(subwords):
    [ids] = subwords.encode(["\u2581the old\u2581 \u200b he"])
    number = np.cumsum(subwords.word_starts[ids])
    of_words = [
        subwords.decode([token for token, n in zip(ids, number, strict=True) if n == k])
        for k in (1, 2, 4)
    ]
    assert of_words == ["_the", "old_", "he"]


def test_brackets_are_known_if_their_names_are(subwords):
    assert subwords.unknown_characters("( the )", replace_unknown=True) == []
    assert subwords.unknown_characters("the \u20ac", replace_unknown=True) == ["\u20ac"]


def test_spans_are_those_of_the_words(subwords):
    line = "  He (slept)"
    spans = subwords.find_spans(line)
    [ids] = subwords.encode([line])
    assert len(spans) == len(ids)
    assert {line[begin:end] for begin, end in spans} == {"He", "(slept)"}


def test_symbols_come_last_and_the_kind_stays(subwords):
    extended = subwords.extend(["<spoken>"])
    assert isinstance(extended, WordSubwords)
    assert extended.spellings[: subwords.size] == subwords.spellings
    assert subwords.extend([]).fingerprint == subwords.fingerprint
