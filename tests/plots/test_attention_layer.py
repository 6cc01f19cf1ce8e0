"""A layer has the right weights over words, and its heads are chosen as told."""

import functools
import itertools

import numpy as np
import pytest

from tests import settings
from tests.plots.encoder_attention import SOURCE, WORDS, H, N, make_attention, read
from vaswani_jax.inference.translator import Translator
from vaswani_jax.plots import attention_layer
from vaswani_jax.plots.attention_layer import Layer

PARTS = ((0,), (1, 2), (3,), (4,), (5, 6, 7), (8,), (9,))


@pytest.mark.parametrize("layer", range(N))
def test_subwords_have_the_weights_of_their_layer(layer: int) -> None:
    attention = make_attention()
    shown = attention_layer.read_layer(attention, layer, by_word=False)
    assert shown.tokens == SOURCE
    np.testing.assert_array_equal(shown.weights, attention.encoder[layer])
    assert shown.name == f"layer {layer + 1} of {N}"


def test_words_sum_what_is_looked_at_and_average_what_looks() -> None:
    attention, shown = make_attention(), read(1)
    assert shown.tokens == WORDS
    for head, query, key in itertools.product(
        range(H), range(len(WORDS)), range(len(WORDS))
    ):
        rows = attention.encoder[1, head][list(PARTS[query])]
        expected = np.mean([sum(row[key] for key in PARTS[key]) for row in rows])
        np.testing.assert_allclose(shown.weights[head, query, key], expected)
    np.testing.assert_allclose(shown.weights.sum(axis=-1), 1)
    np.testing.assert_allclose(shown.uniform, [len(part) / 10 for part in PARTS])


@pytest.mark.parametrize(
    ("subwords", "words"),
    [
        ("▁( it ▁is n ' t ) .", "( it isn't ) ."),
        ("▁a . . ▁... ▁b", "a . . ... b"),
        ("▁ a ▁ ( b", "a ( b"),
        ("<0xE2> <0x82> <0xAC> ▁5", "€ 5"),
        ("<0xE2> ▁x", "� x"),
        ("", ""),
    ],
)
def test_words_are_what_a_reader_calls_so(subwords: str, words: str) -> None:
    source = [*subwords.split(), "</s>"]
    assert attention_layer.spell_words(source) == (*words.split(), "</s>")


def test_the_sharpest_heads_look_at_another_word() -> None:
    weights = np.full((4, 3, 3), 1 / 3)
    weights[0, 0] = 0.9, 0.0, 0.1  # at itself
    weights[1, 0] = 0.1, 0.2, 0.7  # at the end mark
    weights[2, 0] = 0.3, 0.6, 0.1
    weights[3, 0] = 0.2, 0.5, 0.3
    uniform = np.full(3, 1 / 3)
    layer = Layer(("a", "b", "</s>"), weights, uniform, number=1, depth=1)
    assert attention_layer.sharpest_heads(layer, 0) == (3, 4)
    np.testing.assert_allclose(
        attention_layer.largest_weights(layer, 0), [0.0, 0.2, 0.6, 0.5]
    )


def test_the_heads_that_differ_most_look_at_different_words() -> None:
    def look(*keys: int) -> np.ndarray:
        return np.eye(4)[list(keys)]

    # The second rests on the end mark, which does not count.
    heads = np.stack([look(1, 2, 2, 3), look(3, 3, 3, 3), look(1, 2, 0, 3)])
    heads = np.concatenate([heads, look(0, 0, 0, 3)[None]])
    uniform = np.full(4, 1 / 4)
    layer = Layer(("a", "b", "c", "</s>"), heads, uniform, number=1, depth=1)
    distances = attention_layer.differences(layer)
    np.testing.assert_allclose(distances[0], [0, 1 / 2, 1 / 3, 1])
    np.testing.assert_allclose(distances, distances.T)
    assert attention_layer.most_different_heads(layer) == (1, 4)


def test_a_word_is_found_where_it_first_stands() -> None:
    layer = read(0)
    find = functools.partial(attention_layer.find_token, layer)
    assert (find("its"), find("law"), find("LAW")) == (3, 1, 1)
    subwords = read(0, by_word=False)
    assert attention_layer.find_token(subwords, "its") == 4
    with pytest.raises(
        ValueError, match=r"no --word=the Law: it has The, Law, ,, its, application, \."
    ):
        find("the Law")


def test_a_model_of_one_head_has_no_figure_of_two() -> None:
    attention_layer.check_heads(1, figure=3, heads=None)
    with pytest.raises(ValueError, match="figure 5 shows two heads, the model has one"):
        attention_layer.check_heads(1, figure=5, heads=None)


def translator_of(text: str, **data: str) -> Translator:
    """Return a translator without a model, whose vocabulary has a text's letters."""
    configured = settings.small_settings(**{"data.vocab_size": 60, **data})
    vocabulary = settings.learn_vocabulary([text] * 20, configured.data)
    return Translator(configured, vocabulary, members=[])


def test_the_papers_sentences_have_the_form_of_the_models_text() -> None:
    sentence = attention_layer.paper_sentence
    both = f"{attention_layer.SPIRIT} {attention_layer.LAW}"
    tokenized = translator_of(both, **{"data.text_form": "tokenized"})
    assert sentence(3, tokenized) == attention_layer.SPIRIT
    raw = translator_of(both, **{"data.text_form": "detokenized"})
    assert sentence(4, raw) == (
        "The Law will never be perfect, but its application should be just - this is "
        "what we are missing, in my opinion."
    )
    lower = translator_of(both.lower())
    assert sentence(5, lower).startswith("the law will never be perfect")
    several = Translator(
        settings.small_settings(**settings.TWO_TARGETS), raw.vocabulary, members=[]
    )
    assert sentence(3, several).startswith("<2de> It is in this spirit")


def test_the_papers_sentences_need_a_model_that_reads_english() -> None:
    data = settings.small_settings(**{"data.source_locale": "en_GB"}).data
    attention_layer.check_reads_english(data)
    data = settings.small_settings(**{"data.source_locale": "de"}).data
    with pytest.raises(ValueError, match=r"--sentence is missing: .*=de$"):
        attention_layer.check_reads_english(data)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"data.source_locale": "de"}, True),
        ({"data.source_locale": "zh"}, False),
        ({"data.source_locale": "th_TH"}, False),
        ({"data.source_locale": "zh", "data.text_form": "tokenized"}, True),
        ({"data.source_locale": "zh", **settings.TREEBANK}, True),
    ],
    ids=str,
)
def test_text_without_spaces_has_no_words_to_show(
    changes: dict[str, str], expected: bool
) -> None:
    plain = {"data.text_form": "detokenized"}
    data = settings.small_settings(**plain | changes).data
    assert attention_layer.has_words(data) == expected
