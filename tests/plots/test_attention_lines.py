"""Figures 3 to 5 have the weights of the right layer and heads, and the right words."""

import itertools
import pathlib
from typing import Any

import numpy as np
import pytest
from matplotlib import colors
from matplotlib.collections import LineCollection, PatchCollection

from tests.plots import figures
from tests.plots.encoder_attention import WORDS, H, make_attention, read
from vaswani_jax.plots import attention_layer, attention_lines
from vaswani_jax.plots.attention_lines import Layer

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")


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
    first, second = attention_layer.sharpest_heads(layer, 3)
    [axes] = figure.axes
    xs = columns_of(axes, WORDS)
    whole, *from_word = lines_of(axes)
    assert_shown(weights_of(whole, xs), layer.weights[first - 1])
    for head, lines in zip((first, second), from_word, strict=True):
        assert_shown(weights_of(lines, xs)[3], layer.weights[head - 1, 3])
        assert colour_of(lines) == attention_lines.head_colours(H)[head - 1]
    caption = " ".join(text.get_text() for text in axes.texts)
    assert f"from “its”: heads {first} and {second}, those with the largest" in caption


@pytest.mark.parametrize("source", [("▁Hi", "</s>"), ("▁Hi", "▁Jo", "</s>")])
def test_figure_4_names_no_rule_where_no_other_word_is(source: tuple[str, ...]) -> None:
    attention = make_attention(source=source)
    layer = attention_layer.read_layer(attention, 0, by_word=True)
    figure = attention_lines.draw_figure(4, layer, word="Hi")
    caption = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert ("those with the largest weights" in caption) == (len(source) > 2)
    assert "from “Hi”: heads " in caption


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


def test_the_longest_picture_is_readable_and_a_longer_one_refused() -> None:
    most = attention_lines.MOST_TOKENS

    def read_long(length: int) -> Layer:
        source = ("▁$a_b$\U0001d49c",) * (length - 1) + ("</s>",)
        attention = make_attention(source=source)
        return attention_layer.read_layer(attention, 0, by_word=True)

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


def test_a_picture_is_written_as_png_and_svg(tmp_path: pathlib.Path) -> None:
    figure = attention_lines.draw_figure(3, read(0), word="its")
    attention_lines.canvas.save(figure, tmp_path / "a.png")
    attention_lines.canvas.save(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.png").read_bytes().startswith(figures.PNG)
    assert "<!-- application -->" in (tmp_path / "a.svg").read_text()
