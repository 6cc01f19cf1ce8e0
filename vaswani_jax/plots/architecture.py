"""Draw figure 1 of a model as it runs: its modules in their order, with their shapes.

The encoder stands on the left, the decoder on the right, as in the paper.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

from vaswani_jax.core import config, types
from vaswani_jax.plots import diagram, traced_calls
from vaswani_jax.plots.diagram import Canvas, Point
from vaswani_jax.plots.traced_calls import Call, Trace

# Modules around a sub-layer, which are no sub-layers.
NORM, DROPOUT = "LayerNorm", "Dropout"
# What the paper calls our modules.
NAMES = {"MultiHeadAttention": "Multi-Head\nAttention", "FeedForward": "Feed\nForward"}
# Inches.
WIDTH = 7.6
COLUMNS = {"encoder": 2.3, "decoder": 5.3}
BOX_WIDTH, BOX_HEIGHT, NORM_HEIGHT = 1.5, 0.52, 0.28
GAP = 0.16
BRANCH = 0.34  # below a sub-layer, where its residual connection begins
REACH = 1.0  # from the middle of a column to its residual connections
FRAME = 1.14  # from there to the frame of a stack
BOTTOM = 0.75
NOTE_HEIGHT = 0.17


@dataclasses.dataclass(frozen=True)
class SubLayer:
    """A sub-layer with its residual connection.

    Attributes:
        path: Where its module lies.
        name: What the paper calls it.
        detail: Its sizes.
        norm: "before" the sub-layer, "after" the sum, or "" without normalisation.
        reads_memory: Whether its keys and values are of the memory.
        is_attention: Whether it has keys and values.
    """

    path: tuple[str, ...]
    name: str
    detail: str
    norm: str
    reads_memory: bool
    is_attention: bool


@dataclasses.dataclass(frozen=True)
class Stack:
    """The encoder or the decoder, with what it reads.

    Attributes:
        name: "encoder" or "decoder".
        reads: Shape of the ids.
        embedding: Path of the module that embeds them.
        table: Shape of its table.
        positions: Shape of the table of positions; None for sinusoids.
        embedded: Shape of the sum of embeddings and positions.
        next_word: Whether the state of the next word is added to it.
        layers: How often the sub-layers are repeated, and they, from the first layer
            on. Layers of equal sub-layers stand together.
        has_final_norm: Whether a normalisation follows the last layer.
        output: Shape of the output.
    """

    name: str
    reads: str
    embedding: tuple[str, ...]
    table: str
    positions: str | None
    embedded: str
    next_word: bool
    layers: tuple[tuple[int, tuple[SubLayer, ...]], ...]
    has_final_norm: bool
    output: str


@dataclasses.dataclass(frozen=True)
class Architecture:
    """The parts of a model that figure 1 shows.

    Attributes:
        encoder: The stack on the left.
        decoder: The stack on the right.
        logits: Shape of the logits.
        logits_table: Path of the module whose table gives them.
        num_params: How many parameters the model has.
    """

    encoder: Stack
    decoder: Stack
    logits: str
    logits_table: tuple[str, ...]
    num_params: int


def read(model: config.ModelConfig, vocab_size: types.VocabSize) -> Architecture:
    """Return what the modules of a model are and do, from a trace of its calls."""
    trace = traced_calls.trace(model, vocab_size)
    [logits] = trace.root.find("Embedding", "logits")
    return Architecture(
        encoder=_read_stack(trace, "encoder"),
        decoder=_read_stack(trace, "decoder"),
        logits=trace.name(logits.output),
        logits_table=logits.path,
        num_params=sum(map(math.prod, trace.params.values())),
    )


def _read_stack(trace: Trace, name: str) -> Stack:
    [stack] = trace.root.find(name.capitalize())
    reader = {"encoder": 0, "decoder": 1}[name]
    embedding = trace.root.find("Embedding")[reader]
    embedded = trace.root.find("Transformer", "_embed")[reader]
    learned_positions = embedded.find("LearnedPositions")
    layers = [_read_layer(trace, call) for call in stack.find(f"{stack.module}Layer")]
    groups = itertools.groupby(layers, _without_paths)
    by_group = [list(group) for _, group in groups]
    return Stack(
        name=name,
        reads=trace.name(embedding.inputs[0]),
        embedding=embedding.path,
        table=_table(trace, embedding),
        positions=_table(trace, learned_positions[0]) if learned_positions else None,
        embedded=trace.name(embedded.output),
        next_word=name == "decoder" and bool(trace.root.find("NextWord")),
        layers=tuple((len(group), group[0]) for group in by_group),
        has_final_norm=any(call.path == (name, "final_norm") for call in stack.walk()),
        output=trace.name(stack.output),
    )


def _table(trace: Trace, call: Call) -> str:
    return trace.name(trace.params["/".join([*call.path, "embedding"])])


def _without_paths(layer: Sequence[SubLayer]) -> list[SubLayer]:
    return [dataclasses.replace(sub_layer, path=()) for sub_layer in layer]


def _read_layer(trace: Trace, layer: Call) -> tuple[SubLayer, ...]:
    sub_layers = []
    for residual in layer.find("Residual"):
        names = [call.module for call in residual.walk()]
        [sub_layer] = [
            call
            for call in residual.calls
            if call.module not in (NORM, DROPOUT) and call.method == "__call__"
        ]
        norm = ""
        if NORM in names:
            is_before = names.index(NORM) < names.index(sub_layer.module)
            norm = "before" if is_before else "after"
        sub_layers.append(_read_sub_layer(trace, layer, sub_layer, norm=norm))
    return tuple(sub_layers)


def _read_sub_layer(trace: Trace, layer: Call, call: Call, *, norm: str) -> SubLayer:
    name = NAMES.get(call.module, call.module)
    is_attention = call.module == "MultiHeadAttention"
    reads_memory, sizes = False, []
    if is_attention:
        [keys_values] = [
            inner
            for inner in layer.find(call.module, "keys_values")
            if inner.path == call.path
        ]
        reads_memory = keys_values.inputs[0] != call.inputs[0]
        key, value = keys_values.outputs
        sizes = [f"{key[-2]} heads", f"d_k {key[-1]}", f"d_v {value[-1]}"]
        # A mask with a row for each query is causal: padding is one row for all.
        if call.named_inputs["mask"][-2] > 1:
            name = f"Masked {name}"
    else:
        widths = [inner.output[-1] for inner in call.find("Dense")]
        sizes = [" → ".join(f"{n:,}" for n in [call.inputs[0][-1], *widths])]
    return SubLayer(
        path=call.path,
        name=name,
        detail=", ".join(sizes),
        norm=norm,
        reads_memory=reads_memory,
        is_attention=is_attention,
    )


def describe_tables(architecture: Architecture) -> str:
    """Return which of the three uses of section 3.4 share a table."""
    source, target = architecture.encoder, architecture.decoder
    if source.embedding == target.embedding == architecture.logits_table:
        return f"one table {source.table} for both embeddings and the last Linear"
    if target.embedding == architecture.logits_table:
        return (
            f"a table {source.table} for the inputs; one table {target.table} for the "
            "outputs' embedding and the last Linear"
        )
    return "each embedding and the last Linear have a table of their own"


def draw(architecture: Architecture, *, title: str) -> Any:
    """Draw figure 1.

    Args:
        architecture: What to draw.
        title: What stands above.

    Returns:
        A figure.
    """
    encoder, decoder = architecture.encoder, architecture.decoder
    top_of = {stack.name: _height(stack) for stack in (encoder, decoder)}
    notes = [
        describe_tables(architecture),
        "B sentences, S source and T target tokens; dropout is not drawn; dashed: no "
        "module, but part of loss and search",
    ]
    height = max(top_of["encoder"] + 0.5, top_of["decoder"] + 1.85)
    text = f"{title}: {architecture.num_params:,} parameters"
    canvas = Canvas.with_title(WIDTH, height, title=text)
    for number, note in enumerate(notes):
        canvas.write((WIDTH / 2, 0.1 + NOTE_HEIGHT * (1 - number)), note, colour="0.35")
    entries = [
        entry for stack in (encoder, decoder) for entry in _draw_stack(canvas, stack)
    ]
    memory = (COLUMNS["encoder"], top_of["encoder"])
    _draw_memory(canvas, memory, entries, shape=encoder.output)
    _draw_output(canvas, (COLUMNS["decoder"], top_of["decoder"]), architecture)
    return canvas.figure


def _bottom_of_layers(stack: Stack) -> float:
    """Return the height at which the first layer's frame begins."""
    return BOTTOM + BOX_HEIGHT + 0.75 + 0.45 * stack.next_word


def _height(stack: Stack) -> float:
    """Return the height at which a stack's output leaves its last box."""
    y = _bottom_of_layers(stack)
    for _, sub_layers in stack.layers:
        y += 0.1 + sum(map(_sub_layer_height, sub_layers)) + 0.3
    return y + (NORM_HEIGHT + GAP) * stack.has_final_norm


def _sub_layer_height(sub_layer: SubLayer) -> float:
    height = BRANCH + BOX_HEIGHT
    if sub_layer.norm == "before":
        height += GAP + NORM_HEIGHT
    if sub_layer.norm == "after":
        return height + 0.08 + NORM_HEIGHT
    return height + GAP + 2 * diagram.PLUS_RADIUS


def _draw_stack(canvas: Canvas, stack: Stack) -> list[Point]:
    """Draw a stack, and return the points where the memory enters it."""
    x = COLUMNS[stack.name]
    side = -1 if stack.name == "encoder" else 1
    y = _draw_input(canvas, stack, x=x, side=side)
    entries = []
    for repeats, sub_layers in stack.layers:
        frame_bottom = y
        y += 0.1
        for sub_layer in sub_layers:
            y, entry = _draw_sub_layer(canvas, sub_layer, (x, y), side=side)
            entries += [entry] if entry else []
        canvas.frame((x - FRAME, frame_bottom + 0.05), (x + FRAME, y + 0.1))
        canvas.write(
            (x + side * (FRAME + 0.12), (frame_bottom + y) / 2),
            f"{repeats}×",
            size=diagram.TITLE_POINTS + 2,
            align="right" if side < 0 else "left",
        )
        canvas.line([(x, y), (x, y + 0.3)])
        y += 0.3
    if stack.has_final_norm:
        y -= 0.1
        canvas.box((x, y), (BOX_WIDTH, NORM_HEIGHT), "Norm", kind="norm")
        canvas.line([(x, y + NORM_HEIGHT), (x, y + NORM_HEIGHT + GAP + 0.1)])
    return entries


def _draw_input(canvas: Canvas, stack: Stack, *, x: float, side: int) -> float:
    """Draw ids, embedding and positions; return the height where layers begin."""
    label = {"encoder": "Inputs", "decoder": "Outputs\n(shifted right)"}[stack.name]
    canvas.write((x, BOTTOM - 0.2), f"{label} {stack.reads}")
    canvas.arrow([(x, BOTTOM - 0.05 + 0.0), (x, BOTTOM + 0.12)])
    name = {"encoder": "Input Embedding", "decoder": "Output Embedding"}[stack.name]
    y = BOTTOM + 0.12
    canvas.box(
        (x, y),
        (BOX_WIDTH, BOX_HEIGHT - 0.12),
        name,
        kind="embedding",
        detail=f"table {stack.table}",
    )
    y = BOTTOM + BOX_HEIGHT
    plus = y + 0.3
    canvas.line([(x, y), (x, plus - diagram.PLUS_RADIUS)])
    canvas.plus((x, plus))
    circle = (x + side * 0.75, plus)
    canvas.line([(x + side * diagram.PLUS_RADIUS, plus), circle])
    canvas.circle(circle, has_wave=stack.positions is None)
    kind = "Positional\nEncoding"
    detail = "sinusoids" if stack.positions is None else f"learned {stack.positions}"
    canvas.write(
        (x + side * 0.98, plus),
        f"{kind}\n({detail})",
        align="right" if side < 0 else "left",
    )
    if stack.next_word:
        canvas.line([(x, plus + diagram.PLUS_RADIUS), (x, plus + 0.45 - 0.09)])
        plus += 0.45
        canvas.plus((x, plus))
        canvas.write(
            (x + 0.4, plus), "state of the next word\n(from the memory)", align="left"
        )
        canvas.line([(x + diagram.PLUS_RADIUS, plus), (x + 0.36, plus)])
    end = _bottom_of_layers(stack)
    canvas.line([(x, plus + diagram.PLUS_RADIUS), (x, end + 0.1)])
    canvas.write(
        (x + 0.08 * -side, (plus + end) / 2 + 0.07),
        stack.embedded,
        align="left" if side < 0 else "right",
        colour=diagram.SHAPE,
    )
    return end


def _draw_sub_layer(
    canvas: Canvas, sub_layer: SubLayer, bottom: Point, *, side: int
) -> tuple[float, Point | None]:
    """Draw a sub-layer with its residual connection.

    Returns:
        The height where it ends, and the point where memory enters it, if it does.
    """
    x, y = bottom
    branch = y + 0.08
    canvas.line([(x, y), (x, branch)])
    is_before = sub_layer.norm == "before"
    box_bottom = y + BRANCH
    if is_before:
        canvas.arrow([(x, branch), (x, branch + GAP)])
        canvas.box((x, branch + GAP), (BOX_WIDTH, NORM_HEIGHT), "Norm", kind="norm")
        box_bottom = branch + GAP + NORM_HEIGHT + BRANCH - 0.08
        start = branch + GAP + NORM_HEIGHT
    else:
        start = branch
    entry = None
    middle = box_bottom - 0.14
    canvas.line([(x, start), (x, middle)])
    if not sub_layer.is_attention:
        canvas.arrow([(x, middle), (x, box_bottom)])
    elif sub_layer.reads_memory:
        # Queries from below; keys and values from the memory, on the left.
        canvas.arrow([(x, middle), (x + 0.45, middle), (x + 0.45, box_bottom)])
        entry = (x - 0.45, middle)
        canvas.arrow([entry, (x - 0.45, box_bottom)])
        canvas.arrow([(x - 0.45, middle), (x - 0.1, middle), (x - 0.1, box_bottom)])
    else:
        for offset in (-0.45, 0.0, 0.45):
            canvas.arrow([(x, middle), (x + offset, middle), (x + offset, box_bottom)])
    kind = "attention" if sub_layer.is_attention else "feed_forward"
    canvas.box(
        (x, box_bottom),
        (BOX_WIDTH, BOX_HEIGHT),
        sub_layer.name,
        kind=kind,
        detail=sub_layer.detail,
    )
    box_top = box_bottom + BOX_HEIGHT
    reach = x + side * REACH
    if sub_layer.norm == "after":
        end = box_top + 0.08
        canvas.line([(x, box_top), (x, end)])
        canvas.box((x, end), (BOX_WIDTH, NORM_HEIGHT), "Add & Norm", kind="norm")
        target = (x + side * BOX_WIDTH / 2, end + NORM_HEIGHT / 2)
        top = end + NORM_HEIGHT
    else:
        end = box_top + GAP
        canvas.line([(x, box_top), (x, end)])
        canvas.plus((x, end + diagram.PLUS_RADIUS))
        target = (x + side * diagram.PLUS_RADIUS, end + diagram.PLUS_RADIUS)
        top = end + 2 * diagram.PLUS_RADIUS
    canvas.arrow([(x, branch), (reach, branch), (reach, target[1]), target])
    return top, entry


def _draw_memory(
    canvas: Canvas, start: Point, entries: Sequence[Point], *, shape: str
) -> None:
    """Draw the arrow from the encoder's output to the decoder's attention."""
    x, y = start
    between = (COLUMNS["encoder"] + COLUMNS["decoder"]) / 2
    canvas.line([(x, y), (x, y + 0.15), (between, y + 0.15)])
    canvas.write((x - 0.08, y + 0.27), f"memory {shape}", colour=diagram.SHAPE)
    for entry in entries:
        canvas.line([(between, y + 0.15), (between, entry[1]), entry])


def _draw_output(canvas: Canvas, start: Point, architecture: Architecture) -> None:
    """Draw what follows the decoder."""
    x, y = start
    canvas.write(
        (x + 0.08, y + 0.12),
        architecture.decoder.output,
        align="left",
        colour=diagram.SHAPE,
    )
    canvas.arrow([(x, y), (x, y + 0.28)])
    y += 0.28
    canvas.box((x, y), (BOX_WIDTH, 0.3), "Linear", kind="linear")
    canvas.arrow([(x, y + 0.3), (x, y + 0.62)])
    canvas.write(
        (x + 0.08, y + 0.44), architecture.logits, align="left", colour=diagram.SHAPE
    )
    y += 0.62
    canvas.box((x, y), (BOX_WIDTH, 0.3), "Softmax", kind="softmax", is_dashed=True)
    canvas.arrow([(x, y + 0.3), (x, y + 0.55)])
    canvas.write((x, y + 0.75), "Output\nprobabilities")
