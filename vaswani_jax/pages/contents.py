"""Hold the contents of a page, and turn them into the JSON that its script reads."""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from vaswani_jax.inference.results import Attention

# The form of the JSON; `page.js` refuses another.
VERSION = 1
# Weights are whole numbers of a byte: an error of at most 1 / 510.
LEVELS = 255
# Significant digits of all other numbers.
DIGITS = 6
KINDS = ("encoder", "decoder", "memory")


@dataclasses.dataclass(frozen=True)
class Model:
    """One of the models whose attention is shown: a checkpoint, or several averaged.

    Attributes:
        name: As `--checkpoint` takes it: "averaged", "newest", "5000".
        step: Updates of training; None for a model without a count, as an imported one.
    """

    name: str
    step: int | None


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An extension of a live hypothesis by one token, considered at a position.

    Attributes:
        token: As the vocabulary spells it.
        parent: Which live hypothesis it extends, from 0, the best of the position.
        log_prob: Of the whole hypothesis, in nats.
        score: `log_prob` over the length penalty of its length.
        fate: "live" if it is extended at the next position, "finished" if it ends and
            is among the best finished ones of the position, "dropped" otherwise.
        live: Its place among the next position's live hypotheses; None if it is none.
    """

    token: str
    parent: int
    log_prob: float
    score: float
    fate: str
    live: int | None


@dataclasses.dataclass(frozen=True)
class Finished:
    """A hypothesis with an end mark, or a live one if none has ended.

    Attributes:
        tokens: As the vocabulary spells them, with the end mark if there is one.
        text: What they say.
        log_prob: In nats.
        penalty: The length penalty that `log_prob` is divided by.
        score: The quotient.
        candidates: The place in each position of the candidate that it went through.
    """

    tokens: tuple[str, ...]
    text: str
    log_prob: float
    penalty: float
    score: float
    candidates: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Search:
    """A beam search as a tree: what was considered, and why the winner won.

    Attributes:
        beam_size: W.
        alpha: Exponent of the length penalty.
        penalty_form: "paper" or "power".
        positions: The 2W best candidates of each position, best first.
        finished: The hypotheses that were kept, best first.
        stopped: Why the search ended, a sentence without a full stop.
    """

    beam_size: int
    alpha: float
    penalty_form: str
    positions: tuple[tuple[Candidate, ...], ...]
    finished: tuple[Finished, ...]
    stopped: str


@dataclasses.dataclass(frozen=True)
class View:
    """A model's translation of a sentence, with its attention and its search.

    Attributes:
        text: The translation.
        attention: Its weights, and the subwords of both sides.
        target_words: The word of each subword of `attention.target_out`, from 0; -1 for
            the end mark.
        log_probs: log P(y_t | y_<t, X) of each of them, in nats.
        search: How the translation was found; None for a given one.
    """

    text: str
    attention: Attention
    target_words: tuple[int, ...]
    log_probs: tuple[float, ...]
    search: Search | None


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A line of the input.

    Attributes:
        line: Its number, from 1.
        text: The line as it was given.
        source_words: The word of each subword of the source, from 0; -1 for the end
            mark.
        views: One for each model of the page, in their order.
    """

    line: int
    text: str
    source_words: tuple[int, ...]
    views: tuple[View, ...]


@dataclasses.dataclass(frozen=True)
class Head:
    """The measures of one head over a text.

    Attributes:
        kind: "encoder", "decoder" or "memory".
        layer: From 1, the lowest.
        head: From 1.
        measures: By the name of a measure, its value and that of chance; None where a
            measure has no chance level or the text gives it nothing to measure.
        roles: What the head does, in words; empty for a head without a clear role.
        importance: Loss in nats a token with the head switched off, minus the loss.
    """

    kind: str
    layer: int
    head: int
    measures: Mapping[str, tuple[float | None, float | None]]
    roles: tuple[str, ...]
    importance: float | None


@dataclasses.dataclass(frozen=True)
class Heads:
    """The heads of a model over a text.

    Attributes:
        text: What text it is, in words.
        num_lines: How many of its lines were read.
        loss: Of that text, in nats a token, with all heads.
        descriptions: A sentence for each measure, by its name.
        thresholds: When a head has a role, in words, by the measure that decides.
        heads: All of them: encoder, decoder, memory; by layer, then by head.
    """

    text: str
    num_lines: int
    loss: float
    descriptions: Mapping[str, str]
    thresholds: Mapping[str, str]
    heads: tuple[Head, ...]


@dataclasses.dataclass(frozen=True)
class Page:
    """All that a page shows.

    Attributes:
        title: The name of the run.
        facts: What is known of the run, by its label, in the order shown.
        command: What makes the page.
        source_language: A code such as "en", for the `lang` of the text; "" if unknown.
        target_language: The same of the translations.
        models: One, or the checkpoints of a slider by their number of updates.
        sentences: The lines, in their order.
        heads: What the heads of the last model do; None if no text was given.
    """

    title: str
    facts: Mapping[str, str]
    command: str
    source_language: str
    target_language: str
    models: tuple[Model, ...]
    sentences: tuple[Sentence, ...]
    heads: Heads | None


def to_json(page: Page) -> dict[str, Any]:
    """Return what `json.dumps` takes: fields by name, tuples as lists.

    An `Attention` has `source`, `target_in` and `target_out`. For each of `KINDS` it
    has the weights in the order of `[L, H, Q, K]`: base64 of one byte each,
    `round(255 w)`.
    `shapes` has these four sizes by kind. Other numbers have `DIGITS` digits.
    """
    return {"version": VERSION, "levels": LEVELS, **_plain(page)}


def quantize(weights: Float[np.ndarray, "L H Q K"]) -> str:
    """Return weights from 0 to 1 as base64 of a byte each.

    >>> quantize(np.array([[[[0.0, 1.0, 0.5]]]]))
    'AP+A'

    Raises:
        ValueError: A weight is no number from 0 to 1.
    """
    # A sum of rounded exponentials may be a little more than 1.
    if not (np.isfinite(weights).all() and (weights >= -1e-6).all()):
        raise ValueError("attention weights must be finite and not negative")
    if (weights > 1 + 1e-3).any():
        raise ValueError(f"attention weights must be at most 1, got {weights.max()}")
    levels = np.rint(np.clip(weights, 0, 1) * LEVELS).astype(np.uint8)
    return base64.b64encode(levels.tobytes()).decode("ascii")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Attention):
        sides = ("source", "target_in", "target_out")
        return {
            **{side: list(getattr(value, side)) for side in sides},
            **{kind: quantize(getattr(value, kind)) for kind in KINDS},
            "shapes": {kind: list(getattr(value, kind).shape) for kind in KINDS},
        }
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
