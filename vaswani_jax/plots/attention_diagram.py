"""Draw figure 2 of a model as it runs: what its attention computes, in which order.

Scaled dot-product attention stands on the left, multi-head attention on the right: that
of a decoder layer over the memory, where queries and keys are of different sentences.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from vaswani_jax.core import config, types
from vaswani_jax.plots import diagram, traced_calls
from vaswani_jax.plots.diagram import Canvas, Point
from vaswani_jax.plots.traced_calls import Operation, Shape

# Inches.
WIDTH, HEIGHT = 8.4, 5.4
LEFT, RIGHT = 2.15, 6.1  # the middles of the two parts
COLUMNS = {"Q": 1.1, "K": 2.1, "V": 3.3}
INPUTS = {"V": 5.0, "K": 6.1, "Q": 7.2}
BOTTOM = 0.95
BOX_HEIGHT = 0.3
SCALE_HEIGHT = 0.42
STEP = 0.6  # from one operation to the next
COPIES = 3
FILLS = {"MatMul": "matmul", "Scale": "scale", "Mask": "mask", "SoftMax": "softmax"}


@dataclasses.dataclass(frozen=True)
class Projection:
    """A Linear of multi-head attention.

    Attributes:
        input: The shape of what it reads.
        output: The shape of what it returns.
    """

    input: Shape
    output: Shape


@dataclasses.dataclass(frozen=True)
class AttentionDiagram:
    """The parts of a model that figure 2 shows.

    Attributes:
        operations: The steps of scaled dot-product attention.
        projections: The Linears, by "Q", "K", "V" and "output".
        axes: The letter of each axis by its length in the shapes.
        d_k: The size of a query and of a key.
    """

    operations: tuple[Operation, ...]
    projections: Mapping[str, Projection]
    axes: Mapping[int, str]
    d_k: int

    @property
    def num_heads(self) -> int:
        """The number of heads, h."""
        return self.projections["Q"].output[-2]

    def name(self, shape: Shape) -> str:
        """Return a shape with the letters of its axes."""
        return traced_calls.name_shape(shape, self.axes)


def read(model: config.ModelConfig, vocab_size: types.VocabSize) -> AttentionDiagram:
    """Return what the attention of a model computes, from traces of its module."""
    trace = traced_calls.trace(model, vocab_size)
    [decoder] = trace.root.find("Decoder")
    layer = decoder.find("DecoderLayer")[0]
    attention = layer.find("MultiHeadAttention")[-1]
    calls = {
        call.path[-1]: call
        for call in layer.find("DenseGeneral")
        if call.path[:-1] == attention.path
    }
    names = {"query": "Q", "key": "K", "value": "V", "output": "output"}
    projections = {
        name: Projection(calls[path].inputs[0], calls[path].output)
        for path, name in names.items()
    }
    B, S, T = trace.axes
    return AttentionDiagram(
        operations=tuple(traced_calls.trace_attention(model, B=B, S=S, T=T)),
        projections=projections,
        axes=trace.axes,
        d_k=projections["K"].output[-1],
    )


def draw(parts: AttentionDiagram, *, title: str) -> Any:
    """Draw figure 2.

    Args:
        parts: What to draw.
        title: What stands above.

    Returns:
        A figure.
    """
    canvas = Canvas.with_title(WIDTH, HEIGHT, title=title)
    for x, name in (
        (LEFT, "Scaled Dot-Product Attention"),
        (RIGHT, "Multi-Head Attention"),
    ):
        canvas.write((x, HEIGHT - 0.2), name, size=diagram.TITLE_POINTS)
    _draw_dot_product(canvas, parts)
    _draw_heads(canvas, parts)
    output = parts.projections["output"]
    h, d_v = output.input[-2:]
    note = (
        f"h = {h}, d_k = {parts.d_k}, d_v = {d_v}, d_model = {output.output[-1]}; "
        "over the memory: B sentences, S keys, T queries"
    )
    canvas.write((WIDTH / 2, 0.15), note, colour="0.35")
    return canvas.figure


def _draw_dot_product(canvas: Canvas, parts: AttentionDiagram) -> None:
    tops = {}
    for name, x in COLUMNS.items():
        canvas.write((x, BOTTOM - 0.3), name, size=diagram.LABEL_POINTS)
        shape = parts.name(parts.projections[name].output)
        canvas.write((x, BOTTOM - 0.48), shape, colour=diagram.SHAPE)
        tops[name] = (x, BOTTOM - 0.18)
    first = next(n for n, o in enumerate(parts.operations) if o.name == "MatMul")
    y = BOTTOM + 0.1
    for operation in parts.operations[:first]:
        # Before the product: an operation on one of its sides.
        [side] = operation.origins
        canvas.arrow([tops[side], (COLUMNS[side], y)])
        _draw_operation(canvas, operation, (COLUMNS[side], y), parts, width=0.75)
        tops[side] = (COLUMNS[side], y + SCALE_HEIGHT)
        y += STEP + 0.1
    middle = (COLUMNS["Q"] + COLUMNS["K"]) / 2
    top: Point = (middle, y)
    for number, operation in enumerate(parts.operations[first:]):
        is_last = operation is parts.operations[-1]
        if number == 0:
            for side in ("Q", "K"):
                canvas.arrow([tops[side], (COLUMNS[side], y)])
        else:
            canvas.arrow([top, (middle, y)])
            canvas.write(
                (middle + 0.08, (top[1] + y) / 2),
                shape,
                align="left",
                colour=diagram.SHAPE,
            )
        x, width = middle, COLUMNS["K"] - COLUMNS["Q"] + 0.5
        if is_last:
            canvas.arrow([tops["V"], (COLUMNS["V"], y)])
            x = (COLUMNS["Q"] + COLUMNS["V"]) / 2
            width = COLUMNS["V"] - COLUMNS["Q"] + 0.5
        _draw_operation(canvas, operation, (x, y), parts, width=width)
        shape = parts.name(operation.shape)
        top = (middle, y + BOX_HEIGHT)
        y += STEP
    x = (COLUMNS["Q"] + COLUMNS["V"]) / 2
    canvas.arrow([(x, top[1]), (x, top[1] + 0.3)])
    shape = parts.name(parts.projections["output"].input)
    canvas.write((x, top[1] + 0.4), shape, colour=diagram.SHAPE)


def _draw_operation(
    canvas: Canvas,
    operation: Operation,
    bottom: Point,
    parts: AttentionDiagram,
    *,
    width: float,
) -> None:
    label, height = operation.name, BOX_HEIGHT
    if label == "Scale":
        label, height = f"Scale\n1 / √{parts.d_k}", SCALE_HEIGHT
    canvas.box(bottom, (width, height), label, kind=FILLS[operation.name])


def _draw_heads(canvas: Canvas, parts: AttentionDiagram) -> None:
    wide = INPUTS["Q"] - INPUTS["V"] + 0.9
    middle = (INPUTS["V"] + INPUTS["Q"]) / 2
    y = BOTTOM + 0.35
    attention = y + 1.15
    for name, x in INPUTS.items():
        projection = parts.projections[name]
        canvas.write((x, BOTTOM - 0.3), name, size=diagram.LABEL_POINTS)
        canvas.write(
            (x, BOTTOM - 0.48), parts.name(projection.input), colour=diagram.SHAPE
        )
        canvas.arrow([(x, BOTTOM - 0.18), (x, y)])
        h, size = projection.output[-2:]
        canvas.box(
            (x, y),
            (0.9, 0.45),
            "Linear",
            kind="linear",
            detail=f"{projection.input[-1]} → {h}·{size}",
            copies=COPIES,
        )
        canvas.arrow([(x, y + 0.45), (x, attention)])
        canvas.write(
            (x + 0.07, y + 0.85),
            parts.name(projection.output),
            align="left",
            colour=diagram.SHAPE,
            size=diagram.DETAIL_POINTS,
        )
    canvas.box(
        (middle, attention),
        (wide, 0.42),
        "Scaled Dot-Product Attention",
        kind="matmul",
        copies=COPIES,
    )
    canvas.write(
        (middle + wide / 2 + 0.2, attention + 0.28),
        f"h = {parts.num_heads}",
        align="left",
    )
    output = parts.projections["output"]
    concat = attention + 1.0
    _rise(canvas, (middle, attention + 0.42), concat, parts.name(output.input))
    canvas.box((middle, concat), (wide, BOX_HEIGHT), "Concat", kind="concat")
    h, d_v = output.input[-2:]
    concatenation = (*output.input[:-2], h * d_v)
    linear = concat + 0.7
    _rise(canvas, (middle, concat + BOX_HEIGHT), linear, parts.name(concatenation))
    canvas.box((middle, linear), (1.1, BOX_HEIGHT), "Linear", kind="linear")
    canvas.arrow([(middle, linear + BOX_HEIGHT), (middle, linear + 0.58)])
    canvas.write(
        (middle, linear + 0.68), parts.name(output.output), colour=diagram.SHAPE
    )


def _rise(canvas: Canvas, start: Point, end: float, shape: str) -> None:
    """Draw an arrow upwards with a shape beside it."""
    x, y = start
    canvas.arrow([start, (x, end)])
    canvas.write(
        (x + 0.08, (y + end) / 2 + 0.03), shape, align="left", colour=diagram.SHAPE
    )
