"""Every setting a run has, checked once (sections 3, 5 and 6.1; table 3's symbols).

The classes hold fields and types and no default: `configs/*.py` has the values.
"""

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import ml_collections

Section = TypeVar("Section")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The architecture, section 3 and table 3."""

    num_layers: int  # N
    d_model: int
    d_ff: int
    num_heads: int  # h
    d_k: int
    d_v: int
    dropout_rate: float  # P_drop, section 5.4
    attention_dropout_rate: float  # 0 in the paper
    relu_dropout_rate: float  # 0 in the paper
    layer_norm_position: str  # "post" as section 3.1, or "pre"
    positional_encoding: str  # "sinusoidal", or "learned" (table 3 row E)
    max_positions: int  # rows of the learned table; the sinusoids have no limit
    dtype: str  # of the matrix products: "float32" or "bfloat16"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Text, vocabulary and batches, section 5.1."""

    source: str  # "text", "cldr", "copy" or "reverse"
    source_locale: str  # language of each side, as a locale: en, de, pt_BR
    target_locale: str
    text_directory: str  # where the files below lie, for "text"
    train_source: str
    train_target: str
    valid_source: str
    valid_target: str
    test_source: str
    test_target: str
    num_train: int  # pairs to generate, for "cldr", "copy" and "reverse"
    num_valid: int
    num_test: int
    directory: str  # prepared data; "" means WORKDIR/data
    subword_model: str  # "bpe" or "unigram"
    vocab_size: int
    sentencepiece_sample_size: int  # lines it learns from, spread over the corpus
    byte_fallback: bool  # unknown characters as bytes; otherwise as one unknown id
    normalization: str  # SentencePiece rule: "identity", "nfkc", "nmt_nfkc", ...
    max_length: int  # tokens of a training sentence, its end mark counted
    source_tokens_per_batch: int  # padded tokens of the GLOBAL batch
    target_tokens_per_batch: int
    num_buckets: int  # padded shapes, hence compilations, at most
    text_form: str  # "detokenized" or "tokenized": how scores treat the text
    lowercase_scores: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Adam and its schedule, section 5.3."""

    beta1: float
    beta2: float
    epsilon: float
    warmup_steps: int
    learning_rate_scale: float  # 1 in the paper


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The run, sections 5.2 to 5.4."""

    num_steps: int
    accumulate_steps: int  # the batch is computed in so many parts
    label_smoothing: float  # eps_ls
    log_every_steps: int
    evaluate_every_steps: int
    checkpoint_every_steps: int
    keep_checkpoints: int
    average_checkpoints: int  # section 6.1: the last 5 (base) or 20 (big)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search, section 6.1."""

    beam_size: int
    length_penalty: float  # alpha
    max_extra_tokens: int  # output length at most input length + this
    max_source_tokens: int  # a longer line is translated in pieces
    source_tokens_per_batch: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """All of a run."""

    model: ModelConfig
    data: DataConfig
    optimizer: OptimizerConfig
    training: TrainingConfig
    search: SearchConfig
    seed: int


def parse(config: ml_collections.ConfigDict) -> Config:
    """The checked, frozen form of what a config file and its overrides say.

    Raises:
        ValueError: A key is unknown or missing, a value has the wrong type or is out
            of range, or two values exclude each other. The message has the key, the
            value and the rule.
    """
    parsed = _section(Config, config.to_dict(), "config")
    _check_model(parsed.model)
    _check_data(parsed.data)
    _check_training(parsed)
    return parsed


def to_dict(config: Config) -> dict[str, Any]:
    """The plain nested dictionary that `parse` accepts, for records."""
    return dataclasses.asdict(config)


def _section(cls: type[Section], values: Mapping[str, Any], path: str) -> Section:
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in hints:
            close = difflib.get_close_matches(key, hints, n=1)
            hint = f"; did you mean {path}.{close[0]}?" if close else ""
            raise ValueError(
                f"unknown key {path}.{key}{hint} (known: {', '.join(hints)})"
            )
    arguments: dict[str, Any] = {}
    for key, kind in hints.items():
        if key not in values:
            raise ValueError(f"missing key {path}.{key}: give it a value")
        value = values[key]
        if dataclasses.is_dataclass(kind):
            if not isinstance(value, Mapping):
                raise ValueError(f"{path}.{key} must be a section, got {value!r}")
            arguments[key] = _section(typing.cast(type, kind), value, f"{path}.{key}")
        else:
            arguments[key] = _typed(value, kind, f"{path}.{key}")
    return cls(**arguments)


def _typed(value: Any, kind: type, path: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{path} must be of type {kind.__name__}, got {value!r}")
    return value


def _one_of(path: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{path} must be one of {', '.join(allowed)}; got {value!r}")


def _at_least(path: str, section: Any, minimum: int, keys: str) -> None:
    for key in keys.split():
        value = getattr(section, key)
        if value < minimum:
            raise ValueError(f"{path}.{key} must be at least {minimum}, got {value}")


def _rate(path: str, section: Any, keys: str) -> None:
    for key in keys.split():
        value = getattr(section, key)
        if not 0 <= value < 1:
            raise ValueError(f"{path}.{key} must be in [0, 1), got {value}")


def _check_model(model: ModelConfig) -> None:
    path = "config.model"
    counts = "num_layers d_model d_ff num_heads d_k d_v max_positions"
    _at_least(path, model, 1, counts)
    _rate(path, model, "dropout_rate attention_dropout_rate relu_dropout_rate")
    _one_of(f"{path}.layer_norm_position", model.layer_norm_position, ("post", "pre"))
    encodings = ("sinusoidal", "learned")
    _one_of(f"{path}.positional_encoding", model.positional_encoding, encodings)
    _one_of(f"{path}.dtype", model.dtype, ("float32", "bfloat16"))
    if model.positional_encoding == "sinusoidal" and model.d_model % 2:
        raise ValueError(f"{path}.d_model must be a multiple of 2, got {model.d_model}")


def _check_data(data: DataConfig) -> None:
    path = "config.data"
    _one_of(f"{path}.source", data.source, ("text", "cldr", "copy", "reverse"))
    _one_of(f"{path}.subword_model", data.subword_model, ("bpe", "unigram"))
    _one_of(f"{path}.text_form", data.text_form, ("detokenized", "tokenized"))
    _at_least(path, data, 2, "max_length")
    counts = "sentencepiece_sample_size num_buckets vocab_size"
    _at_least(path, data, 1, counts)
    if data.source == "text":
        keys = "train_source train_target valid_source valid_target"
    else:
        keys = ""
        _at_least(path, data, 1, "num_train num_valid num_test")
    for key in ["source_locale", "target_locale", *keys.split()]:
        if not getattr(data, key):
            raise ValueError(f"{path}.{key} must not be empty: the direction is yours")
    if bool(data.test_source) != bool(data.test_target):
        raise ValueError(
            f"{path}.test_source and {path}.test_target go together, got "
            f"{data.test_source!r} and {data.test_target!r}"
        )
    for side in ("source", "target"):
        key = f"{side}_tokens_per_batch"
        budget = getattr(data, key)
        if budget < data.max_length:
            raise ValueError(
                f"{path}.{key} must be at least {path}.max_length "
                f"({data.max_length}), got {budget}"
            )


def _check_training(config: Config) -> None:
    path = "config.training"
    counts = (
        "num_steps accumulate_steps log_every_steps evaluate_every_steps "
        "checkpoint_every_steps keep_checkpoints average_checkpoints"
    )
    _at_least(path, config.training, 1, counts)
    _rate(path, config.training, "label_smoothing")
    _at_least("config.optimizer", config.optimizer, 1, "warmup_steps")
    _rate("config.optimizer", config.optimizer, "beta1 beta2")
    for key in ("epsilon", "learning_rate_scale"):
        value = getattr(config.optimizer, key)
        if not value > 0:
            raise ValueError(f"config.optimizer.{key} must be positive, got {value}")
    search = "beam_size max_extra_tokens source_tokens_per_batch"
    _at_least("config.search", config.search, 1, search)
    _at_least("config.search", config.search, 2, "max_source_tokens")
    _at_least("config", config, 0, "seed")
    if not config.search.length_penalty >= 0:
        raise ValueError(
            "config.search.length_penalty must not be negative, got "
            f"{config.search.length_penalty}"
        )
    if config.training.average_checkpoints > config.training.keep_checkpoints:
        raise ValueError(
            f"{path}.average_checkpoints must be at most {path}.keep_checkpoints "
            f"({config.training.keep_checkpoints}), got "
            f"{config.training.average_checkpoints}"
        )
    longest = max(
        config.data.max_length,
        config.search.max_source_tokens + config.search.max_extra_tokens,
    )
    model = config.model
    if model.positional_encoding == "learned" and model.max_positions < longest:
        raise ValueError(
            f"config.model.max_positions must be at least {longest} (the longest of "
            "data.max_length and search.max_source_tokens + search.max_extra_tokens), "
            f"got {model.max_positions}"
        )
