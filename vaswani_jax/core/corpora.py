"""The corpora that training text is mixed from: `data.corpora`.

Users give corpora as a TOML file or as a list of dictionaries. A run records them as a
canonical text, JSON that is equal for equal corpora.
"""

import dataclasses
import functools
import json
import pathlib
import re
import sys
import tomllib
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import paths

# Names are used in `data.stages`, in logs and in the manifest.
NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
PROBABILITIES = ("noise_upper", "noise_title", "noise_typos", "noise_punctuation")
CORPORA = "config.data.corpora"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus:
    """A parallel text that training mixes with others.

    Attributes:
        name: Its name in stages, logs and the manifest.
        source: The source side, named as `data.train_source` names one.
        target: The target side.
        weight: Its share of the pairs of an epoch, relative to the other weights. None
            for a share by its size, see `data.corpora_temperature`.
        tag: A user symbol before each of its source lines; "" for none.
        noise_upper: Probability that a pair is written in capitals.
        noise_title: Probability that each word of a pair begins with a capital, among
            the pairs that are not in capitals.
        noise_typos: Probability that a source line has typing errors.
        noise_punctuation: Probability that a pair loses its full stops, or other marks
            that end both sides.
        noise_copies: How often its text is written, each time with other noise.
    """

    name: str
    source: str
    target: str
    weight: float | None = None
    tag: str = ""
    noise_upper: float = 0.0
    noise_title: float = 0.0
    noise_typos: float = 0.0
    noise_punctuation: float = 0.0
    noise_copies: int = 1

    @property
    def is_noisy(self) -> bool:
        """True if its pairs are written with noise."""
        return any(getattr(self, name) for name in PROBABILITIES)


FIELDS = tuple(field.name for field in dataclasses.fields(Corpus))
TYPES = typing.get_type_hints(Corpus)
# Text is compared by its content, and prepared data does not depend on weights.
NOT_PREPARED = ("source", "target", "weight")


def corpora_text(value: Any) -> Any:
    """Return the canonical text of corpora; "" if there are none.

    Args:
        value: The path of a TOML file, a canonical text, or a list of dictionaries. A
            value of another type comes back as it is.

    >>> corpora_text([{"name": "news", "source": "n.en", "target": "n.de"}])
    '[{"name": "news", "source": "n.en", "target": "n.de"}]'

    Raises:
        ValueError: The message has the corpus, the field, the value and the rule.
    """
    if isinstance(value, str):
        if not value.strip():
            return ""
        value = _from_json(value) if value.lstrip()[0] == "[" else _from_toml(value)
    if not is_list(value):
        return value
    corpora = [_corpus(fields, number) for number, fields in enumerate(value, start=1)]
    _check_names([corpus.name for corpus in corpora])
    _check_weights(corpora)
    records = [_record(corpus) for corpus in corpora]
    return json.dumps(records, ensure_ascii=False) if records else ""


@functools.lru_cache(maxsize=8)
def parse_corpora(text: str) -> tuple[Corpus, ...]:
    """Return the corpora of a canonical text.

    >>> [corpus.name for corpus in parse_corpora(
    ...     '[{"name": "news", "source": "n.en", "target": "n.de"}]')]
    ['news']
    """
    return tuple(Corpus(**record) for record in json.loads(text or "[]"))


def check_tags(corpora: Sequence[Corpus], symbols: Sequence[str]) -> None:
    """Refuse tags that are not user symbols.

    Raises:
        ValueError: The message has the corpus and its tag.
    """
    for corpus in corpora:
        if corpus.tag and corpus.tag not in symbols:
            raise ValueError(
                f"{CORPORA}, corpus {corpus.name!r}: tag {corpus.tag!r} must be among "
                f"config.data.user_symbols, got {','.join(symbols)!r}"
            )


def may_replace_corpora(old: str, new: str, _: int) -> bool:
    """Return whether corpora differ in nothing but the names of their files.

    Whether the text is the same is checked by its content.
    """
    old_corpora, new_corpora = (
        [_without_files(corpus) for corpus in parse_corpora(text)]
        for text in (old, new)
    )
    return old_corpora == new_corpora


def describe_corpora_change(old: str, new: str) -> str:
    """Return in words what differs between corpora.

    >>> news = {"name": "news", "source": "n.en", "target": "n.de"}
    >>> describe_corpora_change(
    ...     corpora_text([{**news, "weight": 1}]), corpora_text([{**news, "weight": 2}])
    ... )
    "the weight of 'news' is 2.0, was 1.0"
    """
    old_corpora, new_corpora = (
        {corpus.name: corpus for corpus in parse_corpora(text)} for text in (old, new)
    )
    parts = [f"{name!r} is new" for name in new_corpora if name not in old_corpora]
    parts += [f"{name!r} is missing" for name in old_corpora if name not in new_corpora]
    if set(old_corpora) == set(new_corpora) and list(old_corpora) != list(new_corpora):
        parts.append(
            f"their order is {', '.join(new_corpora)}, was {', '.join(old_corpora)}"
        )
    for name, corpus in new_corpora.items():
        for field in FIELDS if name in old_corpora else ():
            value, old_value = getattr(corpus, field), getattr(old_corpora[name], field)
            if value != old_value:
                parts.append(f"the {field} of {name!r} is {value!r}, was {old_value!r}")
    return "; ".join(parts)


def prepared_part(text: str) -> str:
    """Return the text of corpora without what prepared data does not depend on.

    >>> prepared_part(
    ...     '[{"name": "news", "source": "n.en", "target": "n.de", "weight": 2.0}]')
    '[{"name": "news"}]'
    """
    records = [
        {field: value for field, value in record.items() if field not in NOT_PREPARED}
        for record in json.loads(text or "[]")
    ]
    return json.dumps(records, ensure_ascii=False) if records else ""


def is_list(value: Any) -> bool:
    """Return whether a value is a sequence of values, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _without_files(corpus: Corpus) -> Corpus:
    return dataclasses.replace(corpus, source="", target="")


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{CORPORA} is not a JSON list: {error}") from None


def _from_toml(name: str) -> Any:
    try:
        path = pathlib.Path(paths.expand_home(name))
    except ValueError as error:
        raise ValueError(f"{CORPORA}: {error}") from None
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"{CORPORA}={name} cannot be read: {error.strerror}; it must be a TOML "
            "file of [[corpora]]"
        ) from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{CORPORA}={name} is not a TOML file: {error}") from None
    if unknown := values.keys() - {"corpora"}:
        raise ValueError(
            f"{CORPORA}={name} must have [[corpora]] alone, got {min(unknown)!r}"
        )
    corpora = values.get("corpora")
    if not isinstance(corpora, list) or not corpora:
        raise ValueError(f"{CORPORA}={name} must have one [[corpora]] or several")
    return corpora


def _corpus(fields: Any, number: int) -> Corpus:
    """Return a corpus after checking each of its fields.

    Args:
        fields: Its values by name.
        number: Its place in the list, from 1; for errors of a corpus without a name.
    """
    if isinstance(fields, Corpus):
        fields = dataclasses.asdict(fields)
    if not isinstance(fields, Mapping):
        raise ValueError(
            f"{CORPORA}, corpus {number} must have fields ({', '.join(FIELDS)}), got "
            f"{fields!r}"
        )
    title = f"{CORPORA}, corpus {fields.get('name', number)!r}:"
    for field in fields:
        if field not in FIELDS:
            raise ValueError(
                f"{title} unknown field {field!r} (known: {', '.join(FIELDS)})"
            )
    for field in ("name", "source", "target"):
        if not fields.get(field):
            raise ValueError(f"{title} {field} must not be empty")
    values = {
        field: _typed(value, title=title, field=field)
        for field, value in fields.items()
        if value is not None
    }
    corpus = Corpus(**values)
    if not NAME.fullmatch(corpus.name):
        raise ValueError(
            f"{title} name must be letters, digits, '_', '-' and '.', and begin with a "
            f"letter or a digit, got {corpus.name!r}"
        )
    if corpus.weight is not None and corpus.weight < 0:
        raise ValueError(f"{title} weight must be at least 0, got {corpus.weight:g}")
    for field in PROBABILITIES:
        if not 0 <= getattr(corpus, field) <= 1:
            value = getattr(corpus, field)
            raise ValueError(f"{title} {field} must be in [0, 1], got {value:g}")
    if corpus.noise_copies < 1:
        raise ValueError(
            f"{title} noise_copies must be at least 1, got {corpus.noise_copies}"
        )
    if corpus.noise_copies > 1 and not corpus.is_noisy:
        raise ValueError(
            f"{title} noise_copies={corpus.noise_copies} needs one of "
            f"{', '.join(PROBABILITIES)} above 0"
        )
    return corpus


def _typed(value: Any, *, title: str, field: str) -> Any:
    """Return a value in the type of its field, a path without ~."""
    kind = TYPES[field]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # False for nan, too; exact for integers of any size.
    is_number = is_number and abs(value) <= sys.float_info.max
    if kind is str:
        if not isinstance(value, str):
            raise ValueError(f"{title} {field} must be a string, got {value!r}")
        if field not in ("source", "target"):
            return value
        if value.partition("#")[0] == "-":
            raise ValueError(
                f"{title} {field} must be files, not standard input, got {value!r}"
            )
        try:
            return paths.expand_home(value)
        except ValueError as error:
            raise ValueError(f"{title} {field}: {error}") from None
    if kind is int:
        if not is_number or value != int(value):
            raise ValueError(f"{title} {field} must be a whole number, got {value!r}")
        return int(value)
    if not is_number:
        raise ValueError(f"{title} {field} must be a number, got {value!r}")
    return float(value)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{CORPORA} has the corpus {name!r} twice")


def _check_weights(corpora: Sequence[Corpus]) -> None:
    """Refuse weights for some of the corpora only, and weights that are all zero."""
    without = [corpus.name for corpus in corpora if corpus.weight is None]
    if without and len(without) < len(corpora):
        raise ValueError(
            f"{CORPORA}: either all corpora have a weight or none has, but "
            f"{', '.join(map(repr, without))} has none"
        )
    if corpora and all(corpus.weight == 0 for corpus in corpora):
        raise ValueError(f"{CORPORA}: one weight must be above 0, got 0 for all")


def _record(corpus: Corpus) -> dict[str, Any]:
    """Return the fields that differ from their defaults, in their order."""
    return {
        field.name: getattr(corpus, field.name)
        for field in dataclasses.fields(Corpus)
        if getattr(corpus, field.name) != field.default
    }
