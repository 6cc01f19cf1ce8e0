"""Pages of models that have learned nothing, against what `Translator` returns."""

import dataclasses

import numpy as np
import pytest

from tests import interpreter, settings
from vaswani_jax import __version__
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import build, contents

LINES = ["a b c", "", "d e f g"]


@pytest.fixture(scope="module")
def vocabulary():
    data = settings.small_settings(**{"data.vocab_size": 20}).data
    return settings.learn_vocabulary(["a b c d e f g h", "c d a b h g e f"] * 20, data)


@pytest.fixture(scope="module")
def translator(vocabulary):
    return make_translator(vocabulary)


def make_translator(vocabulary, *, steps=(7,), record=None, **overrides):
    """Return a model, or an ensemble, whose parameters differ by their steps."""
    small = settings.small_settings(**{"model.num_layers": 2, **overrides})
    members = []
    for step in steps:
        params = settings.random_params(
            small.model, vocab_size=vocabulary.size, seed=step
        )
        checkpoint = Checkpoint(step, {"params": params}, record or {})
        members.append(Member(small.model, checkpoint))
    return Translator(small, vocabulary, members=members)


def check_view(view, pair):
    """Check that a page shows what the translator says of a line and its output."""
    assert view.text == pair.text
    assert view.log_probs == pair.log_probs
    for side in ("source", "target_in", "target_out"):
        assert getattr(view.attention, side) == getattr(pair.attention, side)
    for kind in contents.KINDS:
        weights, expected = (
            getattr(of, kind) for of in (view.attention, pair.attention)
        )
        np.testing.assert_array_equal(weights, expected)
    assert len(view.target_words) == len(pair.ids)


@pytest.mark.parametrize("targets", [None, ["g f", "", "a"]])
def test_a_page_shows_the_numbers_of_the_translator(translator, targets):
    page = build.make_page(translator, LINES, targets=targets, title="run")
    assert page.title == "run" and page.models == (contents.Model("7", 7),)
    assert [sentence.line for sentence in page.sentences] == [1, 2, 3]
    assert [sentence.text for sentence in page.sentences] == LINES
    pairs = translator.attend(LINES, targets)
    for sentence, pair in zip(page.sentences, pairs, strict=True):
        [view] = sentence.views
        check_view(view, pair)
        assert len(sentence.source_words) == len(view.attention.source)
        # A given translation, and that of an empty line, were not searched for.
        assert (view.search is None) == (targets is not None or not sentence.text)
        if view.search:
            winner = view.search.finished[0]
            assert winner.tokens == view.attention.target_out
            np.testing.assert_allclose(winner.log_prob, sum(view.log_probs), rtol=1e-4)
    empty = page.sentences[1].views[0].attention
    assert (empty.source, empty.target_out) == (("</s>",), ("</s>",))
    assert page.sentences[1].source_words == (-1,)
    assert contents.to_json(page)["version"] == contents.VERSION


def test_a_page_says_what_is_known_of_the_model(vocabulary, translator):
    page = build.make_page(translator, ["a"], targets=["b"])
    assert (page.source_language, page.target_language) == ("en", "de")
    assert page.facts == {
        "checkpoint": "7",
        "updates": "7",
        "languages": "en to de",
        "model": "2 encoder and 2 decoder layers, 2 heads, d_model 8, d_ff 10",
        "parameters": f"{sum(map(np.size, leaves(translator.params))):,}",
        "vocabulary": f"vocabulary of {vocabulary.size} subwords",
        "search": "beam size 3, length penalty 0.6",
        "program": f"vaswani-jax {__version__}",
    }


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    return [tree]


def test_an_ensemble_and_an_average_are_one_model(vocabulary, translator):
    both = make_translator(vocabulary, steps=(7, 8))
    page = build.make_page(both, ["a b c"], targets=["d"])
    assert page.models == (contents.Model("7,8", None),)
    assert page.facts["model"].startswith("2 models of 2 encoder and 2 decoder")
    check_view(page.sentences[0].views[0], *both.attend(["a b c"], ["d"]))
    average = make_translator(vocabulary, record={"averaged": [6, 7]})
    page = build.make_page(average, ["a b c"], targets=["d"])
    assert page.models == (contents.Model("averaged", 7),)
    named = build.make_page(translator, ["a"], targets=["d"], names=["best"])
    assert named.models == (contents.Model("best", 7),)


def test_several_models_are_in_their_order(vocabulary):
    translators = [make_translator(vocabulary, steps=(step,)) for step in (0, 4, 9)]
    lines, targets = ["a b c", "d"], ["e", "f g"]
    page = build.make_page(iter(translators), lines, targets=targets)
    assert [model.step for model in page.models] == [None, 4, 9]
    assert page.facts["checkpoint"] == "0, 4, 9"
    for sentence in page.sentences:
        assert len(sentence.views) == 3
    for number, translator in enumerate(translators):
        pairs = translator.attend(lines, targets)
        for sentence, pair in zip(page.sentences, pairs, strict=True):
            check_view(sentence.views[number], pair)


def test_models_that_no_page_can_compare_are_refused(vocabulary, translator):
    shallow = make_translator(vocabulary, **{"model.num_decoder_layers": 1})
    with pytest.raises(ValueError, match="one vocabulary and equal numbers of layers"):
        build.make_page([translator, shallow], ["a"], targets=["b"])
    with pytest.raises(ValueError, match="a page needs a translator, got none"):
        build.make_page([], ["a"])


def test_what_a_page_has_no_room_for_is_refused(translator):
    for lines, sentence in (
        (["a"] * 51, "a page has at most 50 sentences, got 51"),
        ([], "a page needs a line with text, got none"),
        (["", " "], "a page needs a line with text, got none"),
        (["a", "b a b"], "source, line 2: 4 tokens are more than max_tokens=3"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            build.make_page(translator, lines, max_tokens=3)
    with pytest.raises(ValueError, match=r"^target, line 1: 4 tokens are more than"):
        build.make_page(translator, ["a"], targets=["b a b"], max_tokens=3)
    outputs = [len(pair.ids) for pair in translator.attend(LINES)]
    longest = outputs.index(max(outputs))
    assert outputs[longest] > 5  # than any of the sources
    with pytest.raises(ValueError, match=rf"^translation, line {longest + 1}: \d+ tok"):
        build.make_page(translator, LINES, max_tokens=outputs[longest] - 1)
    with pytest.raises(ValueError, match="several checkpoints has at most 2 sentences"):
        build.make_page([translator] * 2, LINES)
    with pytest.raises(ValueError, match="at most 12 checkpoints, got 13"):
        build.check_size(1, num_models=13)
    for lines in ("a b", "a " * 40):
        with pytest.raises(TypeError, match=r"^lines must be a list of strings"):
            build.make_page(translator, lines)
    with pytest.raises(ValueError, match="equal numbers of lines, got 1 and 2"):
        build.make_page(translator, ["a"], targets=["b", "c"])


# In a process of its own: here the annotations are checked first.
WRONG_LINES = """
from vaswani_jax.pages import build
for lines, targets in (([None], None), (["a"], "b"), (["a"], [None])):
    try:
        build.make_page([], lines, targets=targets)
    except TypeError as error:
        print(error)
"""


def test_lines_that_are_no_strings_are_refused():
    assert interpreter.output_of(WRONG_LINES).splitlines() == [
        "lines must be strings, got None",
        "targets must be a list of strings, got the string 'b': write [text] for one "
        "line",
        "targets must be strings, got None",
    ]


def test_steps_are_spread_from_the_first_to_the_last():
    assert build.spread(range(1, 31), 12) == [
        1,
        4,
        6,
        9,
        12,
        14,
        17,
        19,
        22,
        25,
        27,
        30,
    ]
    assert build.spread([5, 6], 12) == [5, 6]


def test_a_model_of_several_languages_has_no_language_of_its_own(vocabulary):
    several = make_translator(vocabulary, **settings.TWO_TARGETS)
    page = build.make_page(several, ["<2de> a"], targets=["b"])
    assert (page.source_language, page.target_language) == ("en", "")
    with pytest.raises(ValueError, match=r"^line 2 must begin with a tag"):
        build.make_page(several, ["<2de> a", "a"])
    data = dataclasses.replace(several.config.data, target_locale="pt_BR")
    config = dataclasses.replace(several.config, data=data)
    one = Translator(config, vocabulary, members=several.members)
    assert build.make_page(one, ["a"], targets=["b"]).target_language == "pt-BR"
