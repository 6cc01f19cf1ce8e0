"""The stages of a mixture of corpora: `data.stages`.

Users give stages as a text, "0: crawl=4 news=1; 20000: news=1", or as a list. A run
records the text, equal for equal stages.
"""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core.corpora import CORPORA, Corpus, is_list

STAGES = "config.data.stages"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """The weights of corpora from a batch on, until the next stage.

    Attributes:
        batch: The number of batches before it, skipped ones included.
        weights: The weight of each corpus that it names; the others have none.
    """

    batch: int
    weights: tuple[tuple[str, float], ...]


def stages_text(value: Any) -> Any:
    """Return the canonical text of stages; "" if there are none.

    Args:
        value: A text as "0: crawl=4 news=1; 20000: news=1", or a list of dictionaries
            as {"batch": 0, "weights": {"crawl": 4, "news": 1}}. A value of another type
            comes back as it is.

    >>> stages_text([{"batch": 0, "weights": {"crawl": 4, "news": 1.5}}])
    '0: crawl=4 news=1.5'

    Raises:
        ValueError: The message has the stage, the value and the rule.
    """
    if isinstance(value, str):
        parts = [part for part in value.split(";") if part.strip()]
        stages = [_stage_of_text(part.strip()) for part in parts]
    elif is_list(value):
        stages = [_stage_of_record(record) for record in value]
    else:
        return value
    for previous, stage in itertools.pairwise(stages):
        if stage.batch <= previous.batch:
            raise ValueError(
                f"{STAGES}: the batches of stages must rise, got {stage.batch} after "
                f"{previous.batch}"
            )
    return "; ".join(map(_describe_stage, stages))


@functools.lru_cache(maxsize=8)
def parse_stages(text: str) -> tuple[Stage, ...]:
    """Return the stages of a canonical text.

    >>> parse_stages("5: news=1")
    (Stage(batch=5, weights=(('news', 1.0),)),)
    """
    return tuple(_stage_of_text(part.strip()) for part in text.split(";") if part)


def check_stages(stages: Sequence[Stage], corpora: Sequence[Corpus]) -> None:
    """Refuse stages that name an unknown corpus.

    Raises:
        ValueError: The message has the stage and the names that there are.
    """
    names = [corpus.name for corpus in corpora]
    for stage in stages:
        for name, _ in stage.weights:
            if name not in names:
                raise ValueError(
                    f"{STAGES}: the stage of batch {stage.batch} names the corpus "
                    f"{name!r}, but {CORPORA} has {', '.join(names)}"
                )


def may_replace_stages(old: str, new: str, num_batches: int) -> bool:
    """Return whether stages are the same as far as a run has used them.

    >>> may_replace_stages("0: a=1; 20: b=1", "0: a=1; 90: b=1", 20)
    True
    """
    old_stages, new_stages = (
        [stage for stage in parse_stages(text) if stage.batch < num_batches]
        for text in (old, new)
    )
    return old_stages == new_stages


def _stage_of_text(text: str) -> Stage:
    batch, colon, parts = text.partition(":")
    if not colon:
        raise ValueError(
            f"{STAGES}: a stage must be like 20000: news=1 crawl=2, got {text!r}"
        )
    weights = {}
    for part in parts.split():
        name, equals, weight = part.partition("=")
        if not (name and equals and weight) or name in weights:
            rule = "once" if name in weights else "as NAME=WEIGHT"
            raise ValueError(
                f"{STAGES}: a stage must name each corpus {rule}, got {text!r}"
            )
        weights[name] = weight
    return _stage(batch.strip(), weights, title=repr(text))


def _stage_of_record(record: Any) -> Stage:
    is_record = isinstance(record, Mapping) and record.keys() == {"batch", "weights"}
    if not is_record or not isinstance(record["weights"], Mapping):
        raise ValueError(
            f"{STAGES}: a stage must have a batch and weights by corpus, got {record!r}"
        )
    return _stage(record["batch"], record["weights"], title=repr(dict(record)))


def _stage(batch: Any, weights: Mapping[str, Any], *, title: str) -> Stage:
    """Return a stage after checking its values, which are texts or numbers."""
    if not re.fullmatch(r"[0-9]+", str(batch)):
        raise ValueError(
            f"{STAGES}: the batch of a stage must be a whole number from 0, got {title}"
        )
    values = []
    for name, weight in weights.items():
        try:
            value = float(weight)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        is_number = str(weight).isascii() and not isinstance(weight, bool)
        if not (is_number and math.isfinite(value) and value >= 0):
            raise ValueError(
                f"{STAGES}: the weight of {name!r} must be a number from 0, got {title}"
            )
        values.append((str(name), value))
    if not any(value for _, value in values):
        raise ValueError(f"{STAGES}: a stage must have a weight above 0, got {title}")
    return Stage(batch=int(batch), weights=tuple(values))


def _describe_stage(stage: Stage) -> str:
    weights = (f"{name}={_weight_text(weight)}" for name, weight in stage.weights)
    return f"{stage.batch}: {' '.join(weights)}"


def _weight_text(weight: float) -> str:
    """Return a weight as it stands in a text: 4 or 0.5."""
    return str(int(weight)) if weight.is_integer() else repr(weight)
