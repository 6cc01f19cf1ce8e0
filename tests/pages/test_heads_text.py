"""The lines over which heads are measured, and what is known of their words."""

import numpy as np
import pytest

from tests import settings
from tests.pages.test_build import make_translator
from vaswani_jax.core import languages
from vaswani_jax.data import treebank
from vaswani_jax.pages import heads_text


@pytest.fixture(scope="module")
def translator():
    vocabulary = settings.letters_vocabulary()
    return make_translator(vocabulary, **{"model.num_layers": 1})


def parsed(line):
    [tree] = treebank.parse([line], name="line")
    return treebank.clean(tree)


def test_a_long_text_is_read_evenly(translator):
    lines = [f"a {'b ' * (number % 3)}c" for number in range(2000)]
    selected = heads_text.select(translator, heads_text.Text("letters", lines, lines))
    assert len(selected) == heads_text.MAX_LINES
    first, last = selected[0], selected[-1]
    for pair, line in ((first, lines[0]), (last, lines[-1])):
        assert translator.vocabulary.decode(pair.ids[1]) == line
    # Its words, and the end mark.
    assert first.source_words[-1] == first.target_words[-1] == -1


def test_empty_and_long_lines_are_left_out(translator):
    long = "a " * heads_text.MAX_TOKENS
    lines = ["", "a b", "a", long]
    text = heads_text.Text("letters", lines, ["a", "b a", "", "a"])
    [pair] = heads_text.select(translator, text)
    assert translator.vocabulary.decode(pair.ids[1]) == "b a"
    nothing = heads_text.Text("letters", ["", long], ["a", "b"])
    with pytest.raises(ValueError, match="letters has no pair of lines with text"):
        heads_text.select(translator, nothing)


def test_a_line_without_a_tag_is_named_in_the_whole_text(translator, monkeypatch):
    tags = {"<2de>": "de", "<2fr>": "fr"}
    monkeypatch.setattr(languages, "locales_by_tag", lambda data: tags)
    lines = ["<2de> a"] * 1200
    lines[700] = "a"
    text = heads_text.Text("news", lines, ["a"] * len(lines))
    with pytest.raises(ValueError, match="news: line 701 must begin with a tag"):
        heads_text.select(translator, text)


def test_trees_and_alignments_belong_to_words(translator):
    text = heads_text.Text(
        "letters",
        ["a b c"],
        ["b a"],
        trees=[parsed("(S (NP (D a) (N b)) (VP (V c)))")],
        alignments=[[(0, 1), (1, 0)]],
    )
    [pair] = heads_text.select(translator, text)
    assert pair.constituents.tolist() == [[0, 2], [0, 2], [0, 3]]
    assert pair.links.tolist() == [[False, True, False], [True, False, False]]


def test_what_does_not_fit_its_line_is_refused(translator):
    for known, sentence in (
        ({"targets": []}, "letters has 1 source lines, but 0 targets"),
        ({"trees": []}, "letters has 1 source lines, but 0 trees"),
        (
            {"trees": [parsed("(S (D a) (N d))")]},
            "tree 1 has the words 'a d', but its line is 'a b'",
        ),
        (
            {"alignments": [[(2, 0)]]},
            "alignment, line 1: 2-0 is out of range: the line has 2 source words and 1",
        ),
    ):
        text = heads_text.Text("letters", ["a b"], ["a"])._replace(**known)
        with pytest.raises(ValueError, match=sentence):
            heads_text.select(translator, text)


def test_tables_know_punctuation_and_directions(translator):
    counts = np.arange(translator.vocabulary.size)
    tables = heads_text.make_tables(translator, heads_text.Counts(counts, counts))
    assert tables.is_shared
    spellings = [translator.vocabulary.source.subword(n) for n in range(len(counts))]
    assert tables.source.is_punctuation[spellings.index("<0x2C>")]  # A comma.
    assert not tables.source.is_punctuation[spellings.index("▁a")]
    norms = np.linalg.norm(tables.source.embeddings, axis=1)
    np.testing.assert_allclose(norms, 1.0)
    [pair] = heads_text.select(
        translator, heads_text.Text("letters", ["a b"], ["c d e"])
    )
    views_pair = heads_text.to_pair(pair, tables)
    assert len(views_pair.target_in) == len(views_pair.target_out)
    assert views_pair.target_in.is_mark.tolist()[:2] == [True, False]
    assert views_pair.target_out.is_mark.tolist()[-1:] == [True]
    np.testing.assert_array_equal(
        views_pair.target_in.ids[1:], views_pair.target_out.ids[:-1]
    )
    np.testing.assert_array_equal(views_pair.source.counts, views_pair.source.ids)
