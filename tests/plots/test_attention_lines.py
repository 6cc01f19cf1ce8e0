"""Figures 3 to 5 have the weights of the right layer and heads, and the right words."""

import functools
import itertools
import pathlib
from typing import Any

import numpy as np
import pytest
from matplotlib import colors
from matplotlib.collections import LineCollection, PatchCollection

from tests import settings
from tests.plots import figures
from vaswani_jax.inference.translator import Attention, Translator
from vaswani_jax.plots import attention_lines
from vaswani_jax.plots.attention_lines import Layer

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")

N, H = 3, 4
SOURCE = ("▁The", "▁L", "aw", ",", "▁its", "▁app", "li", "cation", ".", "</s>")
WORDS = ("The", "Law", ",", "its", "application", ".", "</s>")
PARTS = ((0,), (1, 2), (3,), (4,), (5, 6, 7), (8,), (9,))


def make_attention(*, source: tuple[str, ...] = SOURCE) -> Attention:
    """Return weights all of which differ; no head or layer is like another."""
    S = len(source)
    weights = np.random.default_rng(0).dirichlet(np.ones(S), (N, H, S))
    return Attention(
        source=source,
        target_in=("<s>",),
        target_out=("</s>",),
        encoder=weights,
        decoder=weights[..., :1, :1],
        memory=weights[..., :1, :],
    )


def read(layer: int, *, by_word: bool = True) -> Layer:
    return attention_lines.read_layer(make_attention(), layer, by_word=by_word)


def lines_of(axes: Any) -> list[LineCollection]:
    return [shown for shown in axes.collections if isinstance(shown, LineCollection)]


def columns_of(axes: Any, tokens: tuple[str, ...]) -> list[float]:
    """Return the x of each token, from the texts of one row."""
    upright = [text for text in axes.texts if text.get_rotation() == 90]
    xs = sorted({text.get_position()[0] for text in upright})
    for x, token in zip(xs, tokens, strict=True):
        texts = {text.get_text() for text in upright if text.get_position()[0] == x}
        assert texts == {token}
    return xs


def weights_of(lines: LineCollection, xs: list[float]) -> np.ndarray:
    """Return the opacity of the line from each token below to each above."""
    opacities = np.zeros((len(xs), len(xs)))
    for (start, end), colour in zip(
        lines.get_segments(), lines.get_colors(), strict=True
    ):
        assert start[1] < end[1], "those that look stand below"
        opacities[xs.index(start[0]), xs.index(end[0])] = colour[3]
    return opacities


def assert_shown(opacities: np.ndarray, weights: np.ndarray) -> None:
    """Compare opacities with weights; lines that no display shows are not there."""
    visible = np.where(weights >= 1 / 255, weights, 0)
    np.testing.assert_allclose(opacities, visible, rtol=1e-12)


def colour_of(lines: LineCollection) -> str:
    [colour] = {colors.to_hex(rgba[:3]) for rgba in lines.get_colors()}
    return colour


@pytest.mark.parametrize("layer", range(N))
def test_subwords_have_the_weights_of_their_layer(layer: int) -> None:
    attention = make_attention()
    shown = attention_lines.read_layer(attention, layer, by_word=False)
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
    assert attention_lines.spell_words(source) == (*words.split(), "</s>")


def test_figure_3_shows_all_heads_from_one_word() -> None:
    layer = read(1)
    figure = attention_lines.draw_figure(3, layer, word="its", title="runs/a")
    figures.check_nothing_is_clipped(figure)
    [axes] = figure.axes
    xs = columns_of(axes, WORDS)
    query, palette = 3, attention_lines.head_colours(H)
    heads = lines_of(axes)
    assert [lines.get_label() for lines in heads] == [f"head {n + 1}" for n in range(H)]
    for head, lines in enumerate(heads):
        expected = np.zeros_like(layer.weights[head])
        expected[query] = layer.weights[head, query]
        assert_shown(weights_of(lines, xs), expected)
        assert colour_of(lines) == palette[head]
    texts = [text.get_text() for text in axes.texts]
    assert "runs/a: encoder self-attention, layer 2 of 3" in texts
    assert "from “its”: all heads" in texts


def test_the_tokens_looked_at_have_a_cell_a_head() -> None:
    layer = read(2)
    figure = attention_lines.draw_figure(3, layer, word="Law", heads=[4, 2])
    [axes] = figure.axes
    xs = columns_of(axes, WORDS)
    cells = [shown for shown in axes.collections if isinstance(shown, PatchCollection)]
    bottoms = []
    for head, row in zip((4, 2), cells, strict=True):
        rgba = row.get_facecolor()
        np.testing.assert_allclose(rgba[:, 3], layer.weights[head - 1, 1], rtol=1e-12)
        [colour] = {colors.to_hex(value[:3]) for value in rgba}
        assert colour == attention_lines.head_colours(H)[head - 1]
        boxes = [path.get_extents() for path in row.get_paths()]
        for x, box in zip(xs, boxes, strict=True):
            assert box.x0 < x < box.x1
        [bottom] = {round(float(box.y0), 6) for box in boxes}
        bottoms.append(bottom)
    # They lie above the lines, the first head next to them.
    top = max(lines.get_segments()[0][1][1] for lines in lines_of(axes))
    assert top <= bottoms[0] + 1e-6 < bottoms[1]


def test_figure_4_shows_a_head_whole_and_two_from_a_word() -> None:
    layer = read(0)
    figure = attention_lines.draw_figure(4, layer, word="its")
    figures.check_nothing_is_clipped(figure)
    first, second = attention_lines.sharpest_heads(layer, 3)
    [axes] = figure.axes
    xs = columns_of(axes, WORDS)
    whole, *from_word = lines_of(axes)
    assert_shown(weights_of(whole, xs), layer.weights[first - 1])
    for head, lines in zip((first, second), from_word, strict=True):
        assert_shown(weights_of(lines, xs)[3], layer.weights[head - 1, 3])
        assert colour_of(lines) == attention_lines.head_colours(H)[head - 1]
    caption = " ".join(text.get_text() for text in axes.texts)
    assert f"from “its”: heads {first} and {second}, those with the largest" in caption


def test_figure_5_shows_two_heads_in_green_and_red() -> None:
    layer = read(2)
    figure = attention_lines.draw_figure(5, layer, heads=[3, 1])
    figures.check_nothing_is_clipped(figure)
    [axes] = figure.axes
    xs = columns_of(axes, WORDS)
    panels = lines_of(axes)
    for head, lines in zip((3, 1), panels, strict=True):
        assert_shown(weights_of(lines, xs), layer.weights[head - 1])
    colours = [attention_lines.GREEN, attention_lines.RED]
    assert [colour_of(lines) for lines in panels] == colours


def test_the_sharpest_heads_look_at_another_word() -> None:
    weights = np.full((4, 3, 3), 1 / 3)
    weights[0, 0] = 0.9, 0.0, 0.1  # at itself
    weights[1, 0] = 0.1, 0.2, 0.7  # at the end mark
    weights[2, 0] = 0.3, 0.6, 0.1
    weights[3, 0] = 0.2, 0.5, 0.3
    layer = Layer(("a", "b", "</s>"), weights, number=1, depth=1)
    assert attention_lines.sharpest_heads(layer, 0) == (3, 4)
    np.testing.assert_allclose(
        attention_lines.largest_weights(layer, 0), [0.0, 0.2, 0.6, 0.5]
    )


def test_the_heads_that_differ_most_look_at_different_words() -> None:
    def look(*keys: int) -> np.ndarray:
        return np.eye(4)[list(keys)]

    # The second rests on the end mark, which does not count.
    heads = np.stack([look(1, 2, 2, 3), look(3, 3, 3, 3), look(1, 2, 0, 3)])
    heads = np.concatenate([heads, look(0, 0, 0, 3)[None]])
    layer = Layer(("a", "b", "c", "</s>"), heads, number=1, depth=1)
    distances = attention_lines.differences(layer)
    np.testing.assert_allclose(distances[0], [0, 1 / 2, 1 / 3, 1])
    np.testing.assert_allclose(distances, distances.T)
    assert attention_lines.most_different_heads(layer) == (1, 4)


def test_a_word_is_found_where_it_first_stands() -> None:
    layer = read(0)
    find = functools.partial(attention_lines.find_token, layer)
    assert (find("its"), find("law"), find("LAW")) == (3, 1, 1)
    subwords = read(0, by_word=False)
    assert attention_lines.find_token(subwords, "its") == 4
    with pytest.raises(
        ValueError, match=r"no --word=the Law: it has The, Law, ,, its, application, \."
    ):
        find("the Law")


@pytest.mark.parametrize(
    ("number", "heads", "error"),
    [
        (3, [5], "--heads=5 must be different numbers from 1 to 4"),
        (3, [0], "--heads=0 must be different numbers from 1 to 4"),
        (3, [1, 1], "--heads=1,1 must be different numbers from 1 to 4"),
        (3, [], "--heads= must be different numbers from 1 to 4"),
        (4, [1], "--heads=1 must be two heads for figure 4"),
        (5, [1, 2, 3], "--heads=1,2,3 must be two heads for figure 5"),
    ],
)
def test_heads_that_a_figure_cannot_show_are_refused(
    number: int, heads: list[int], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        attention_lines.draw_figure(number, read(0), word="its", heads=heads)


def test_a_model_of_one_head_has_no_figure_of_two() -> None:
    attention_lines.check_heads(1, figure=3, heads=None)
    with pytest.raises(ValueError, match="figure 5 shows two heads, the model has one"):
        attention_lines.check_heads(1, figure=5, heads=None)


def test_the_longest_picture_is_readable_and_a_longer_one_refused() -> None:
    most = attention_lines.MOST_TOKENS

    def read_long(length: int) -> Layer:
        source = ("▁$a_b$\U0001d49c",) * (length - 1) + ("</s>",)
        attention = make_attention(source=source)
        return attention_lines.read_layer(attention, 0, by_word=True)

    figure = attention_lines.draw_figure(3, read_long(most), word="</s>")
    figures.check_nothing_is_clipped(figure)
    upright = [text for text in figure.axes[0].texts if text.get_rotation() == 90]
    first, second = upright[0], upright[2]
    assert not first.get_window_extent().overlaps(second.get_window_extent())
    with pytest.raises(ValueError, match=f"room for {most} tokens, .* {most + 1}"):
        attention_lines.draw_figure(3, read_long(most + 1), word="</s>")


def test_no_text_of_a_picture_overlaps_another() -> None:
    figure = attention_lines.draw_figure(4, read(0), word="its", title="W" * 90)
    figures.check_nothing_is_clipped(figure)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)


def translator_of(text: str, **data: str) -> Translator:
    """Return a translator without a model, whose vocabulary has a text's letters."""
    configured = settings.small_settings(**{"data.vocab_size": 60, **data})
    vocabulary = settings.learn_vocabulary([text] * 20, configured.data)
    return Translator(configured, vocabulary, members=[])


def test_the_papers_sentences_have_the_form_of_the_models_text() -> None:
    sentence = attention_lines.paper_sentence
    both = f"{attention_lines.SPIRIT} {attention_lines.LAW}"
    tokenized = translator_of(both, **{"data.text_form": "tokenized"})
    assert sentence(3, tokenized) == attention_lines.SPIRIT
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
    attention_lines.check_reads_english(data)
    data = settings.small_settings(**{"data.source_locale": "de"}).data
    with pytest.raises(ValueError, match=r"--sentence is missing: .*=de$"):
        attention_lines.check_reads_english(data)


def test_a_picture_is_written_as_png_and_svg(tmp_path: pathlib.Path) -> None:
    figure = attention_lines.draw_figure(3, read(0), word="its")
    attention_lines.canvas.save(figure, tmp_path / "a.png")
    attention_lines.canvas.save(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.png").read_bytes().startswith(figures.PNG)
    assert "<!-- application -->" in (tmp_path / "a.svg").read_text()
