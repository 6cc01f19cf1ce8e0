"""Draw the attention of a sentence: a heat map for each head of a layer (figure 1)."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from vaswani_jax.core import config
from vaswani_jax.inference import alignment, scoring
from vaswani_jax.inference.results import Attention
from vaswani_jax.plots import canvas

FONT_POINTS = 9
# The sides of a cell, in inches: large for few subwords, never smaller than a label.
SMALLEST_CELL, LARGEST_CELL = 0.18, 0.45
HEAD_INCHES = 1.6
MOST_COLUMNS = 4
MOST_SUBWORDS = 64


@dataclasses.dataclass(frozen=True)
class Kind:
    """One of the three attentions of figure 1, and how its picture is labelled.

    Attributes:
        title: What it is called.
        queries: The field of `Attention` with the subwords that look.
        query_label: What those are.
        keys: The field of `Attention` with the subwords that are looked at.
        key_label: What those are.
    """

    title: str
    queries: str
    query_label: str
    keys: str
    key_label: str


KINDS = {
    "encoder": Kind(
        title="Encoder self-attention",
        queries="source",
        query_label="source subword",
        keys="source",
        key_label="source subword it looks at",
    ),
    "decoder": Kind(
        title="Decoder self-attention",
        queries="target_in",
        query_label="target subword read",
        keys="target_in",
        key_label="target subword it looks at",
    ),
    "memory": Kind(
        title="Attention of the decoder over the encoder's memory",
        queries="target_out",
        query_label="target subword predicted",
        keys="source",
        key_label="source subword looked at",
    ),
}


def choose_layers(
    model: config.ModelConfig, kinds: Sequence[str], *, number: int | None
) -> dict[str, int]:
    """Return the layer to draw of each kind of attention, the lowest being 0.

    Args:
        model: The architecture.
        kinds: Of `KINDS`.
        number: That of --layer, the lowest being 1; None for each kind's default.

    Raises:
        ValueError: A kind has no such layer.
    """
    depths = {kind: scoring.depth(model, kind) for kind in kinds}
    if number is None:
        return {kind: alignment.default_layer(depth) for kind, depth in depths.items()}
    fewest = min(depths.values())
    if 1 <= number <= fewest:
        return dict.fromkeys(kinds, number - 1)
    rule = f"--layer={number} must be from 1 to {fewest}"
    if max(depths.values()) > fewest:
        rule += (
            f" for both {model.encoder_layers} encoder and {model.decoder_layers} "
            "decoder layers: choose with --kind"
        )
    raise ValueError(rule)


def describe_layers(model: config.ModelConfig, layers: Mapping[str, int]) -> str:
    """Return the caption of the layers of `choose_layers`: "layer 5 of 6"."""
    numbers = {
        scoring.KINDS[kind][0]: f"layer {layer + 1} of {scoring.depth(model, kind)}"
        for kind, layer in layers.items()
    }
    if len(set(numbers.values())) == 1:
        return next(iter(numbers.values()))
    return ", ".join(f"{stack} {number}" for stack, number in numbers.items())


def draw(attention: Attention, *, layers: Mapping[str, int], title: str) -> Any:
    """Draw every head of a layer for each kind of attention.

    Args:
        attention: The weights of a sentence and its translation.
        layers: Which of `KINDS` to draw, from the top, and the layer of each, the
            lowest being 0.
        title: The first line of the picture.

    Returns:
        A figure with a part for each kind.

    Raises:
        ValueError: There are more subwords than a picture has room for.
    """
    longest = max(len(attention.source), len(attention.target_in))
    if longest > MOST_SUBWORDS:
        raise ValueError(
            f"a picture has room for {MOST_SUBWORDS} subwords, the sentence or its "
            f"translation has {longest} with its end mark: choose a shorter one"
        )
    parts = [KINDS[kind] for kind in layers]
    weights = [
        np.asarray(getattr(attention, kind)[layer]) for kind, layer in layers.items()
    ]
    subwords = {*attention.source, *attention.target_in, *attention.target_out}
    font = {
        "family": canvas.font_families("".join(subwords)),
        "size": FONT_POINTS,
        "parse_math": False,
    }
    label_inches = max(canvas.text_inches(subword, font) for subword in subwords)
    sizes = [_size(heads, label_inches) for heads in weights]
    width = max(width for width, _ in sizes)
    caption = canvas.wrap(title, int(10 * width))
    caption_inches = 0.2 + 0.17 * (caption.count("\n") + 1)
    figure = canvas.new_figure(
        width, caption_inches + sum(height for _, height in sizes)
    )
    figure.suptitle(caption, fontsize="medium", parse_math=False)
    areas = figure.subfigures(
        len(parts), height_ratios=[height for _, height in sizes], squeeze=False
    )
    for area, part, heads in zip(areas[:, 0], parts, weights, strict=True):
        _draw_heads(
            area,
            heads,
            part,
            queries=getattr(attention, part.queries),
            keys=getattr(attention, part.keys),
            font=font,
        )
    return figure


def _columns(num_heads: int) -> int:
    """Return in how many columns the heads stand, in rows of equal length if possible.

    >>> [_columns(heads) for heads in (1, 4, 6, 8, 16)]
    [1, 4, 3, 4, 4]
    """
    return math.ceil(num_heads / math.ceil(num_heads / MOST_COLUMNS))


def _size(
    heads: Float[np.ndarray, "H Q K"], label_inches: float
) -> tuple[float, float]:
    """Return width and height of the maps of all heads, with their labels."""
    H, Q, K = heads.shape
    columns = _columns(H)
    cell = min(max(HEAD_INCHES / max(Q, K), SMALLEST_CELL), LARGEST_CELL)
    # Beside the maps: labels, the name of the axis, the bar with its name.
    width = columns * (K * cell + 0.25) + label_inches + 1.6
    # Above and below them: the title, labels, the name of the axis.
    height = math.ceil(H / columns) * (Q * cell + 0.4) + label_inches + 0.9
    return width, height


def _draw_heads(
    area: Any,
    heads: Float[np.ndarray, "H Q K"],
    kind: Kind,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    font: Mapping[str, Any],
) -> None:
    """Draw a map for each head, with subwords at the outer ones."""
    H = len(heads)
    columns = _columns(H)
    grid = area.subplots(math.ceil(H / columns), columns, squeeze=False).ravel()
    for head, axes in enumerate(grid):
        if head >= H:
            axes.remove()
            continue
        image = axes.imshow(
            heads[head], cmap="Blues", vmin=0, vmax=1, interpolation="nearest"
        )
        axes.set_title(f"head {head + 1}", fontsize=FONT_POINTS)
        axes.tick_params(length=0)
        is_outer = head % columns == 0, head + columns >= H
        axes.set_yticks(range(len(queries)), queries if is_outer[0] else [], **font)
        axes.set_xticks(
            range(len(keys)), keys if is_outer[1] else [], rotation=90, **font
        )
    area.suptitle(kind.title, fontsize="medium")
    area.supylabel(kind.query_label, fontsize=FONT_POINTS)
    area.supxlabel(kind.key_label, fontsize=FONT_POINTS)
    area.colorbar(image, ax=list(grid[:H]), label="attention weight", shrink=0.9)
