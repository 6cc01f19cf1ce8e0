"""Declared roles and ranges of settings, against lists that were typed separately."""

import dataclasses
import json
import pathlib

import pytest

from tests.core.valid_config import GENERATED, parsed, refusal
from vaswani_jax.core import config

MODEL = {f"model.{field.name}" for field in dataclasses.fields(config.ModelConfig)}
SEARCH = {f"search.{field.name}" for field in dataclasses.fields(config.SearchConfig)}
ROLES = {
    "changeable": {
        *("model.dropout_rate", "model.attention_dropout_rate"),
        *("model.relu_dropout_rate", "model.attention", "model.rematerialize"),
        *("data.tfds_directory", "data.text_directory", "data.directory"),
        *("data.train_source", "data.train_target", "data.valid_source"),
        *("data.valid_target", "data.test_source", "data.test_target"),
        *("data.num_valid", "data.num_test", "data.text_form"),
        *("data.lowercase_scores", "optimizer.learning_rate_scale"),
        *("training.num_steps", "training.accumulate_steps"),
        *("training.log_every_steps", "training.evaluate_every_steps"),
        *("training.checkpoint_every_steps", "training.keep_checkpoints"),
        *("training.average_checkpoints", "training.best_metric"),
        *("training.patience", "training.max_skipped_batches"),
        "training.max_loss_rise",
        *SEARCH,
    },
    "incidental": {
        *("seed", "model.dtype", "model.attention", "model.rematerialize"),
        *("data.tfds_directory", "data.text_directory", "data.directory"),
        *("training.accumulate_steps", "training.log_every_steps"),
        *("training.evaluate_every_steps", "training.keep_checkpoints"),
        "training.max_skipped_batches",
        *("search.max_source_tokens", "search.source_tokens_per_batch"),
    },
    "imported": {*MODEL, "data.vocab_size", "data.subword_model"},
}
AFFECTS = {
    "data": {
        *("data.source", "data.source_locale", "data.target_locale"),
        *("data.num_train", "data.num_valid", "data.num_test"),
        *("data.subword_model", "data.vocab_size", "data.sentencepiece_sample_size"),
        *("data.byte_fallback", "data.normalization", "data.subword_dropout"),
        *("data.subword_samples", "data.max_length"),
    },
    "outputs": {
        *("model.num_heads", "model.activation", "model.layer_norm_epsilon"),
        *("model.layer_norm_position", "model.positional_encoding"),
    },
    "scores": {
        *(SEARCH - {"search.source_tokens_per_batch"}),
        *("data.text_form", "data.lowercase_scores"),
    },
}
COUNTS = [
    *("model.num_layers", "model.d_model", "model.d_ff", "model.num_heads"),
    *("model.d_k", "model.d_v", "model.max_positions", "data.num_buckets"),
    *("data.sentencepiece_sample_size", "data.subword_samples"),
    *("training.log_every_steps", "training.evaluate_every_steps"),
    "training.checkpoint_every_steps",
    *("training.keep_checkpoints", "training.average_checkpoints"),
    *("search.beam_size", "search.max_extra_tokens"),
    "search.source_tokens_per_batch",
]
RATES = [
    *("model.dropout_rate", "model.attention_dropout_rate", "model.relu_dropout_rate"),
    *("training.label_smoothing", "optimizer.beta1", "optimizer.beta2"),
]
CHOICES = {
    "model.layer_norm_position": ["post", "pre"],
    "model.positional_encoding": ["sinusoidal", "learned"],
    "model.dtype": ["float32", "bfloat16"],
    "data.subword_model": ["bpe", "unigram"],
    "data.text_form": ["detokenized", "tokenized"],
    "training.label_smoothing_form": ["uniform", "others", "no_pad"],
}


@pytest.mark.parametrize(("role", "keys"), ROLES.items())
def test_settings_have_exactly_these_roles(role, keys):
    assert {
        key for key, setting in config.SETTINGS.items() if getattr(setting, role)
    } == keys


@pytest.mark.parametrize(("work", "keys"), AFFECTS.items())
def test_settings_affect_exactly_this(work, keys):
    assert {
        key for key, setting in config.SETTINGS.items() if setting.affects == work
    } == keys


def test_every_setting_has_one_line_of_meaning():
    for setting in config.SETTINGS.values():
        assert setting.meaning.endswith(".") and "\n" not in setting.meaning
        assert len(setting.meaning) < 88


def test_the_value_before_a_setting_existed_is_a_valid_one():
    for setting in config.SETTINGS.values():
        if setting.legacy is not None:
            assert setting.parse(setting.legacy) is setting.legacy


def test_a_record_of_the_first_runs_has_every_setting():
    """old_config.json is what `main` recorded when there were the fewest settings."""
    path = pathlib.Path(__file__).with_name("old_config.json")
    flat = config.flatten_record(json.loads(path.read_text()))
    assert flat.keys() == config.SETTINGS.keys()


def test_a_recorded_section_alone_gets_none_of_another():
    flat = config.flatten_record({"search": {"beam_size": 7}})
    assert flat["search.beam_size"] == 7 and flat["search.top_p"] == 1.0
    assert {key.partition(".")[0] for key in flat} == {"search"}


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("value", [0, -3])
def test_counts_are_at_least_one(key, value):
    text = refusal({key: value})
    assert f"config.{key} must be at least 1, got {value}" in text


@pytest.mark.parametrize("key", RATES)
@pytest.mark.parametrize("value", [1.0, -0.01, 2])
def test_rates_are_at_least_zero_and_below_one(key, value):
    text = refusal({key: value})
    assert f"config.{key} must be in [0, 1), got {float(value)}" in text


@pytest.mark.parametrize("key", RATES)
def test_rate_zero_is_accepted(key):
    assert config.to_dict(parsed({key: 0.0}))


@pytest.mark.parametrize(("key", "allowed"), CHOICES.items())
def test_choices_are_refused_with_all_that_is_allowed(key, allowed):
    text = refusal({key: "other"})
    assert f"config.{key} " in text
    assert "'other'" in text
    assert all(choice in text for choice in allowed)


@pytest.mark.parametrize(
    ("key", "choice"),
    [(key, choice) for key, choices in CHOICES.items() for choice in choices],
)
def test_choices_are_accepted(key, choice):
    assert parsed({key: choice} | GENERATED)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("seed", -1, "in [0, 9223372036854775807], got -1"),  # NumPy's generators
        ("seed", 10**20, "in [0, 9223372036854775807], got 1000"),
        ("training.num_steps", 0, "in [1, 2147483647], got 0"),
        ("training.num_steps", 2**31, "in [1, 2147483647], got 2147483648"),
        ("optimizer.warmup_steps", 0, "in [1, 2147483647], got 0"),
        ("optimizer.warmup_steps", 2**31, "in [1, 2147483647], got 2147483648"),
        ("optimizer.epsilon", 0.0, "positive, got 0.0"),
        ("optimizer.learning_rate_scale", -1e-9, "positive, got -1e-09"),
        ("model.init_scale", 0.0, "positive, got 0.0"),
        ("model.layer_norm_epsilon", 0.0, "positive, got 0.0"),
        # A token and the end mark.
        ("data.max_length", 1, "at least 2, got 1"),
        ("data.vocab_size", 4, "at least 5, got 4"),
        ("data.normalization", "foo", "one of identity, nfkc"),
        ("training.r_drop", -1.0, "at least 0, got -1.0"),
        ("training.max_loss_rise", -0.1, "at least 0, got -0.1"),
        ("training.patience", -1, "at least 0, got -1"),
        ("training.max_skipped_batches", -1, "at least 0, got -1"),
        ("search.length_penalty", -0.1, "at least 0, got -0.1"),
        ("search.max_source_tokens", 1, "at least 2, got 1"),
        ("search.max_tokens", -1, "0, or at least search.min_tokens, got -1"),
        ("search.min_tokens", 0, "at least 1, got 0"),
        ("search.temperature", 0.0, "positive, got 0.0"),
        ("search.top_k", -1, "at least 0, got -1"),
        ("search.top_p", 0.0, "in (0, 1], got 0.0"),
        ("search.top_p", 1.5, "in (0, 1], got 1.5"),
        ("search.no_repeat_ngram", -2, "at least 0, got -2"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_rule(key, value, rule):
    assert f"config.{key} must be {rule}" in refusal({key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("seed", 2**63 - 1), ("training.num_steps", 2**31 - 1)),
        *(("data.max_length", 2), ("data.vocab_size", 5)),
        *(("search.max_source_tokens", 2), ("search.top_p", 1.0)),
    ],
)
def test_the_bounds_themselves_are_accepted(key, value):
    nested = config.to_dict(parsed({key: value}))
    assert config.flatten(nested)[key] == value
