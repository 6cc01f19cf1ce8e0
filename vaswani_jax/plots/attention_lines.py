"""Draw figures 3, 4 and 5: lines from the tokens that look to those looked at.

Two rows show the same sentence. A line's colour is a head, its opacity the weight.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from vaswani_jax.data.tokenizer import WORD_START
from vaswani_jax.plots import attention_layer, canvas
from vaswani_jax.plots.attention_layer import Layer

MOST_TOKENS = 64
FONT_POINTS = 9
CAPTION_POINTS = 9
# Matplotlib's ten colours, as the paper's figures have them; twenty for more heads.
HEADS_OF_TEN_COLOURS = 10
# Of figure 5, among those ten.
GREEN, RED = "#2ca02c", "#d62728"
QUERY_COLOUR = "0.82"
# A fainter line than a display of 256 levels shows is left out.
FAINTEST = 1 / 255
LINE_POINTS = 1.4
# Inches.
MARGIN = 0.15
COLUMN = 0.21  # of a token
LINES_HEIGHT = 1.5  # of the lines between the rows
LABEL_GAP = 0.05  # from a token's text to the edge of its cell
CAPTION_HEIGHT = 0.2  # of a line
CHARACTER_WIDTH = 0.06  # of a caption, on average at least
LEGEND_WIDTH = 0.62  # of a head
NOTE_HEIGHT = 0.2
PANEL_GAP = 0.25
SMALLEST_WIDTH = 5.0
DIRECTION = "below: the tokens that look; above: the tokens looked at"


@dataclasses.dataclass(frozen=True)
class Panel:
    """Two rows of tokens, and lines between them.

    Attributes:
        heads: The numbers of the heads, from 1.
        colours: One for each of them.
        queries: The positions of the tokens whose lines are drawn.
        caption: What stands above.
    """

    heads: tuple[int, ...]
    colours: tuple[str, ...]
    queries: tuple[int, ...]
    caption: str


def head_colours(num_heads: int) -> tuple[str, ...]:
    """Return a colour for each head of a layer.

    >>> head_colours(8)[:2]
    ('#1f77b4', '#ff7f0e')
    """
    import matplotlib
    from matplotlib import colors

    name = "tab10" if num_heads <= HEADS_OF_TEN_COLOURS else "tab20"
    palette = [colors.to_hex(rgb) for rgb in matplotlib.colormaps[name].colors]  # type: ignore[attr-defined]
    return tuple(palette[head % len(palette)] for head in range(num_heads))


def draw_figure(
    number: int,
    layer: Layer,
    *,
    word: str | None = None,
    heads: Sequence[int] | None = None,
    title: str = "",
) -> Any:
    """Draw one of the paper's figures of attention.

    Figure 3 shows where heads look from one word. Figure 4 shows one head over the
    whole sentence, and below two heads from one word. Figure 5 shows two heads over the
    whole sentence, in green and red.

    Args:
        number: 3, 4 or 5.
        layer: The weights.
        word: The token that looks in figures 3 and 4, where it first stands; the
            paper's by default.
        heads: The heads' numbers, from 1. By default figure 3 shows all, figure 4
            `sharpest_heads`, figure 5 `most_different_heads`.
        title: What stands above.

    Returns:
        A figure.

    Raises:
        ValueError: The sentence lacks the word or is too long, or a head is out of
            range.
    """
    attention_layer.check_heads(len(layer.weights), figure=number, heads=heads)
    if number == 5:
        panels = _panels_of_figure5(layer, heads)
    else:
        token = attention_layer.find_token(layer, word or attention_layer.WORDS[number])
        make_panels = {3: _panels_of_figure3, 4: _panels_of_figure4}[number]
        panels = make_panels(layer, token, heads)
    return draw(layer, panels, title=title)


def _panels_of_figure3(
    layer: Layer, token: int, heads: Sequence[int] | None
) -> list[Panel]:
    H = len(layer.weights)
    heads = tuple(heads or range(1, H + 1))
    name = "all heads" if len(heads) == H else _name_heads(heads)
    caption = f"from “{_show(layer.tokens[token])}”: {name}"
    return [_panel(layer, heads, (token,), caption)]


def _panels_of_figure4(
    layer: Layer, token: int, heads: Sequence[int] | None
) -> list[Panel]:
    panel_heads = tuple(heads or attention_layer.sharpest_heads(layer, token))
    shown_token = _show(layer.tokens[token])
    caption = f"from “{shown_token}”: {_name_heads(panel_heads)}"
    # Beside a single token stands the end mark alone: no head looks at another word.
    if not heads and len(layer.tokens) > 2:
        caption += (
            f", those with the largest weights from “{shown_token}” on another word, "
            "end mark left out"
        )
    return [
        _panel(
            layer, panel_heads[:1], _all_tokens(layer), f"all of head {panel_heads[0]}"
        ),
        _panel(layer, panel_heads, (token,), caption),
    ]


def _panels_of_figure5(layer: Layer, heads: Sequence[int] | None) -> list[Panel]:
    panel_heads = tuple(heads or attention_layer.most_different_heads(layer))
    captions = [f"all of head {head}" for head in panel_heads]
    if not heads:
        captions[0] += (
            f"; {_name_heads(panel_heads)} differ most in this layer, end mark left out"
        )
    return [
        Panel((head,), (colour,), _all_tokens(layer), caption)
        for head, colour, caption in zip(
            panel_heads, (GREEN, RED), captions, strict=True
        )
    ]


def _all_tokens(layer: Layer) -> tuple[int, ...]:
    return tuple(range(len(layer.tokens)))


def _panel(
    layer: Layer, heads: tuple[int, ...], queries: tuple[int, ...], caption: str
) -> Panel:
    colours = head_colours(len(layer.weights))
    return Panel(heads, tuple(colours[head - 1] for head in heads), queries, caption)


def _name_heads(heads: Sequence[int]) -> str:
    *first, last = map(str, heads)
    return f"heads {', '.join(first)} and {last}" if first else f"head {last}"


def _show(token: str) -> str:
    return token.replace(WORD_START, " ").strip() or token


def draw(layer: Layer, panels: Sequence[Panel], *, title: str) -> Any:
    """Draw panels one below the other, in the layout of the paper's figures.

    The tokens that look stand below, the tokens looked at above, as in the paper. A
    panel of one looking token shades the others with a cell a head, as opaque as its
    weight.

    Raises:
        ValueError: There are more tokens than a picture has room for.
    """
    S = len(layer.tokens)
    if S > MOST_TOKENS:
        raise ValueError(
            f"a picture has room for {MOST_TOKENS} tokens, the sentence has {S}: "
            "choose a shorter one"
        )
    font = _font("".join(layer.tokens), FONT_POINTS)
    text_width = functools.partial(canvas.text_inches, font=font)
    label_height = max(map(text_width, layer.tokens)) + 2 * LABEL_GAP
    width = max(S * COLUMN, SMALLEST_WIDTH) + 2 * MARGIN
    captions = [_wrap(panel.caption, width) for panel in panels]
    titles = _wrap(
        ": ".join(filter(None, [title, _describe(layer)])), width, weight="bold"
    )
    legends = [_legend_rows(panel, width) for panel in panels]
    heights = [
        (len(lines) + rows) * CAPTION_HEIGHT + 2 * label_height + LINES_HEIGHT
        for lines, rows in zip(captions, legends, strict=True)
    ]
    height = (
        2 * MARGIN
        + (len(titles) + 0.4) * CAPTION_HEIGHT
        + sum(heights)
        + PANEL_GAP * (len(panels) - 1)
        + NOTE_HEIGHT
    )
    axes = canvas.new_axes((0.0, width), (0.0, height))
    top = height - MARGIN
    _write_lines(axes, titles, top=top, weight="bold")
    top -= (len(titles) + 0.4) * CAPTION_HEIGHT
    left = (width - S * COLUMN) / 2
    for panel, lines, rows, panel_height in zip(
        panels, captions, legends, heights, strict=True
    ):
        _write_lines(axes, lines, top=top)
        legend_top = top - len(lines) * CAPTION_HEIGHT
        _draw_legend(axes, panel, top=legend_top, width=width)
        upper = legend_top - rows * CAPTION_HEIGHT - label_height
        _draw_panel(
            axes,
            layer,
            panel,
            corner=(left, upper),
            label_height=label_height,
            font=font,
        )
        top -= panel_height + PANEL_GAP
    axes.text(
        *(MARGIN, MARGIN, DIRECTION),
        **{"ha": "left", "va": "bottom", "color": "0.35", "size": CAPTION_POINTS - 2},
    )
    return axes.figure


def _describe(layer: Layer) -> str:
    return f"encoder self-attention, {layer.name}"


def _font(text: str, points: int) -> dict[str, Any]:
    family = canvas.font_families(text)
    return {"family": family, "size": points, "parse_math": False}


def _wrap(text: str, width: float, *, weight: str = "normal") -> list[str]:
    """Break a caption into lines that fit the width of a picture, in inches."""
    font = _font(text, CAPTION_POINTS) | {"weight": weight}
    room = width - 2 * MARGIN
    for characters in range(int(room / CHARACTER_WIDTH), 1, -1):
        lines = canvas.wrap(text, characters).splitlines()
        longest = sorted(lines, key=len)[-2:]
        if all(canvas.text_inches(line, font) <= room for line in longest):
            break
    return lines


def _legend_rows(panel: Panel, width: float) -> int:
    """Return how many rows name the heads; the caption names a single one."""
    if len(panel.heads) == 1:
        return 0
    per_row = max(1, int((width - 2 * MARGIN) / LEGEND_WIDTH))
    return -(-len(panel.heads) // per_row)


def _write_lines(
    axes: Any, lines: Sequence[str], *, top: float, weight: str = "normal"
) -> None:
    for number, line in enumerate(lines):
        axes.text(
            *(MARGIN, top - number * CAPTION_HEIGHT, line),
            ha="left",
            va="top",
            weight=weight,
            **_font(line, CAPTION_POINTS),
        )


def _draw_legend(axes: Any, panel: Panel, *, top: float, width: float) -> None:
    """Draw a square in the colour of each head, and its number."""
    from matplotlib.patches import Rectangle

    if len(panel.heads) == 1:
        return
    per_row = max(1, int((width - 2 * MARGIN) / LEGEND_WIDTH))
    for n, (head, colour) in enumerate(zip(panel.heads, panel.colours, strict=True)):
        row, column = divmod(n, per_row)
        x = MARGIN + column * LEGEND_WIDTH
        y = top - (row + 0.5) * CAPTION_HEIGHT
        axes.add_patch(Rectangle((x, y - 0.05), 0.1, 0.1, color=colour, linewidth=0))
        axes.text(x + 0.13, y, f"head {head}", va="center", size=CAPTION_POINTS - 1)


def _draw_panel(
    axes: Any,
    layer: Layer,
    panel: Panel,
    *,
    corner: tuple[float, float],
    label_height: float,
    font: dict[str, Any],
) -> None:
    """Draw two rows of tokens with lines between them.

    Args:
        axes: Their units are inches.
        layer: The weights.
        panel: What to draw of them.
        corner: The left end of the line above which the upper row stands.
        label_height: Of a row.
        font: Of the tokens.
    """
    left, upper = corner
    lower = upper - LINES_HEIGHT
    xs = left + COLUMN * (np.arange(len(layer.tokens)) + 0.5)
    heads = [head - 1 for head in panel.heads]
    weights = layer.weights[heads][:, list(panel.queries)]
    if len(panel.queries) == 1:
        [query] = panel.queries
        _draw_cells(
            axes,
            weights[:, 0],
            panel.colours,
            corner=(left, upper),
            label_height=label_height,
        )
        _draw_query(
            axes,
            corner=(xs[query] - COLUMN / 2, lower - label_height),
            label_height=label_height,
        )
    _draw_lines(axes, weights, panel, xs=xs, heights=(lower, upper))
    for x, token in zip(xs, layer.tokens, strict=True):
        for y, alignment in ((upper + LABEL_GAP, "bottom"), (lower - LABEL_GAP, "top")):
            axes.text(x, y, token, rotation=90, ha="center", va=alignment, **font)


def _draw_lines(
    axes: Any,
    weights: Float[np.ndarray, "H Q S"],
    panel: Panel,
    *,
    xs: Float[np.ndarray, "S"],
    heights: tuple[float, float],
) -> None:
    """Draw a line for each weight, from its query below to its key above."""
    from matplotlib.collections import LineCollection

    lower, upper = heights
    for head, colour, rows in zip(panel.heads, panel.colours, weights, strict=True):
        queries, keys = np.nonzero(rows >= FAINTEST)
        starts = xs[list(panel.queries)][queries]
        lines = LineCollection(
            [
                ((start, lower), (end, upper))
                for start, end in zip(starts, xs[keys], strict=True)
            ],
            colors=colour,
            alpha=np.clip(rows[queries, keys], 0, 1),
            linewidths=LINE_POINTS,
            label=f"head {head}",
        )
        axes.add_collection(lines)


def _draw_cells(
    axes: Any,
    weights: Float[np.ndarray, "H S"],
    colours: Sequence[str],
    *,
    corner: tuple[float, float],
    label_height: float,
) -> None:
    """Shade the upper row: a cell for each token and head, the first head below."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    left, bottom = corner
    height = label_height / len(weights)
    for head, (row, colour) in enumerate(zip(weights, colours, strict=True)):
        cells = [
            Rectangle(
                (left + token * COLUMN, bottom + head * height), 0.94 * COLUMN, height
            )
            for token in range(len(row))
        ]
        axes.add_collection(
            PatchCollection(
                cells, facecolor=colour, alpha=np.clip(row, 0, 1), linewidths=0
            )
        )


def _draw_query(axes: Any, *, corner: tuple[float, float], label_height: float) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(corner, 0.94 * COLUMN, label_height, color=QUERY_COLOUR, linewidth=0)
    )
