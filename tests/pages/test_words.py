"""The word of each subword, by hand."""

import pytest

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords
from vaswani_jax.pages import words


def data_of(**changes):
    return settings.small_settings(
        **{f"data.{key}": value for key, value in changes.items()}
    ).data


def of_source(line, vocabulary, data):
    """Return the subwords of each word of a source line, joined."""
    [ids] = vocabulary.encode([line])
    numbers = words.of_source(line, ids, vocabulary=vocabulary, data=data)
    assert len(numbers) == len(ids) + 1 and numbers[-1] == -1
    return joined(map(vocabulary.source.subword, ids), numbers[:-1])


def of_target(line, text, vocabulary, data, *, ends=True):
    """Return the same of a translation."""
    [ids] = vocabulary.encode([text], target=True)
    ids = [*ids, *[types.EOS_ID] * ends]
    numbers = words.of_target(line, ids, vocabulary=vocabulary, data=data)
    assert len(numbers) == len(ids) and (-1 in numbers) == ends
    length = len(ids) - ends
    return joined(map(vocabulary.target.subword, ids[:length]), numbers[:length])


def joined(subwords, numbers):
    # Words are counted from 0, in order, without a gap.
    assert list(dict.fromkeys(numbers)) == list(range(len(set(numbers))))
    parts = {}
    for subword, number in zip(subwords, numbers, strict=True):
        parts[number] = parts.get(number, "") + subword
    return list(parts.values())


def test_words_are_what_white_space_divides():
    vocabulary = settings.letters_vocabulary()
    data = data_of()
    expected = ["▁hello", "▁bad", "▁x"]
    assert of_source("hello bad x", vocabulary, data)[:2] == expected[:2]
    assert of_target("a", "hello bad x", vocabulary, data)[:2] == expected[:2]
    assert len(of_source("hello bad x", vocabulary, data)) == 3
    # White space that is read as a space, a mark that is read as nothing.
    assert of_source("\u200e hello\u00a0bad", vocabulary, data) == expected[:2]
    assert of_target("a", "a b", vocabulary, data, ends=False) == ["▁a", "▁b"]


def test_an_empty_line_has_an_end_mark_alone():
    vocabulary, data = settings.letters_vocabulary(), data_of()
    assert words.of_source(" ", [], vocabulary=vocabulary, data=data) == (-1,)
    ends = {"vocabulary": vocabulary, "data": data}
    assert words.of_target("", [types.EOS_ID], **ends) == (-1,)
    assert words.of_target("", [], **ends) == ()


@pytest.mark.parametrize("locale", ["ja", "zh_CN", "th"])
def test_without_spaces_each_subword_is_a_word(locale):
    vocabulary = settings.letters_vocabulary()
    data = data_of(source_locale=locale, target_locale=locale)
    [ids] = vocabulary.encode(["hello bad"])
    assert len(of_source("hello bad", vocabulary, data)) == len(ids) > 2
    assert len(of_target("a", "hello bad", vocabulary, data)) == len(ids)
    tokenized = data_of(source_locale=locale, text_form="tokenized")
    assert of_source("hello bad", vocabulary, tokenized) == ["▁hello", "▁bad"]


def test_a_tag_names_the_language_of_the_words():
    vocabulary = settings.letters_vocabulary()
    data = data_of(source="cldr", target_locale="de,ja", user_symbols="<2de>,<2ja>")
    assert len(of_target("<2de> a", "bad", vocabulary, data)) == 1
    assert len(of_target("<2ja> a", "bad", vocabulary, data)) > 1


def test_of_a_parser_words_are_those_of_its_trees_and_symbols_are_words():
    data = data_of(vocab_size=20, byte_fallback=False)
    subwords = WordSubwords(learn_subwords(["a b c d e f g h"] * 20, data).model)
    symbols = TreeSymbols.learn(["(S (NP (DT a) (NN b)) (VP (V c)))"], terminals="tag")
    vocabulary = Vocabulary(subwords, symbols, is_shared=False)
    # A no-break space divides no words of a tree.
    assert of_source("ab\u00a0c d", vocabulary, data) == ["▁ab", "▁d"]
    tree = "(S (NP (DT a) (NN b)))"
    assert of_target("a b", tree, vocabulary, data) == [
        *("(S", "(NP", "DT", "NN", ")NP", ")S")
    ]
