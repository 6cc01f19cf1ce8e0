"""Declared roles and ranges of settings, against lists that were typed separately."""

import collections
import dataclasses
import json
import pathlib

import pytest

from tests import settings
from tests.core.valid_config import refusal
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
        *("data.vocabulary", "data.target_vocabulary", "data.train_trees"),
        *("data.valid_trees", "data.test_trees", "data.silver_trees"),
        *("data.num_valid", "data.num_test", "data.text_form"),
        *("data.lowercase_scores", "optimizer.learning_rate_scale"),
        *("optimizer.schedule", "optimizer.learning_rate"),
        *("optimizer.max_gradient_norm", "training.ema_decay"),
        *("training.num_steps", "training.accumulate_steps"),
        "training.shard_optimizer",
        *("training.log_every_steps", "training.evaluate_every_steps"),
        *("training.checkpoint_every_steps", "training.keep_checkpoints"),
        *("training.average_checkpoints", "training.best_metric"),
        *("training.patience", "training.max_skipped_batches"),
        *("training.max_loss_rise", "training.loggers"),
        *SEARCH,
    },
    "incidental": {
        *("seed", "model.dtype", "model.attention", "model.rematerialize"),
        *("data.tfds_directory", "data.text_directory", "data.directory"),
        *("training.accumulate_steps", "training.log_every_steps"),
        "training.shard_optimizer",
        *("training.evaluate_every_steps", "training.keep_checkpoints"),
        *("training.max_skipped_batches", "training.loggers"),
        *("search.max_source_tokens", "search.source_tokens_per_batch"),
    },
    "imported": {
        *MODEL,
        *("data.vocab_size", "data.target_vocab_size", "data.subword_model"),
        *("data.vocabulary", "data.target_vocabulary", "data.vocabulary_sharing"),
    },
}
AFFECTS = {
    "data": {
        *("data.source", "data.source_locale", "data.target_locale"),
        *("data.num_train", "data.num_valid", "data.num_test"),
        *("data.subword_model", "data.vocab_size", "data.sentencepiece_sample_size"),
        *("data.byte_fallback", "data.normalization", "data.subword_dropout"),
        *("data.subword_samples", "data.max_length", "data.vocabulary_sharing"),
        *("data.target_vocab_size", "data.user_symbols", "data.character_coverage"),
        *("data.split_digits", "data.max_subword_length"),
        *("data.gold_repeats", "data.tree_terminals", "data.corpora"),
        *("data.clean_empty", "data.clean_control_characters"),
        *("data.clean_encodings", "data.clean_max_characters"),
        *("data.clean_equal_sides", "data.clean_max_ratio", "data.clean_min_letters"),
        *("data.clean_min_script", "data.clean_language_odds"),
        "data.clean_duplicates",
    },
    "outputs": {
        "model.deterministic_attention",
        *("model.num_heads", "model.activation", "model.layer_norm_epsilon"),
        *("model.layer_norm_position", "model.positional_encoding"),
    },
    "scores": {
        *(SEARCH - {"search.source_tokens_per_batch"}),
        *("data.text_form", "data.lowercase_scores"),
    },
}
RANGES = {
    "at least 0": {
        *("model.num_encoder_layers", "model.num_decoder_layers"),
        *("training.r_drop", "training.patience", "training.max_skipped_batches"),
        *("training.max_loss_rise", "search.length_penalty", "search.no_repeat_ngram"),
        *("search.top_k", "optimizer.learning_rate", "optimizer.weight_decay"),
        *("optimizer.max_gradient_norm", "data.epoch_pairs"),
        "data.clean_max_characters",
    },
    "at least 0.01": {"data.corpora_temperature"},
    "at least 1": {
        *("model.num_layers", "model.d_model", "model.d_ff", "model.num_heads"),
        *("model.d_k", "model.d_v", "model.max_positions", "data.num_buckets"),
        *("data.sentencepiece_sample_size", "data.subword_samples"),
        "data.gold_repeats",
        *("training.log_every_steps", "training.evaluate_every_steps"),
        *("training.checkpoint_every_steps", "training.keep_checkpoints"),
        *("training.average_checkpoints", "search.beam_size", "search.min_tokens"),
        *("search.max_extra_tokens", "search.source_tokens_per_batch"),
    },
    "at least 1 for cldr, copy, reverse": {
        *("data.num_train", "data.num_valid", "data.num_test"),
    },
    "not empty": {"data.source_locale", "data.target_locale"},
    "not empty for text": {"data.train_source", "data.train_target"},
    "not empty for text, treebank": {"data.text_directory"},
    "not empty for treebank": {"data.train_trees"},
    "one of text, treebank, cldr, copy, reverse, tfds:DATASET/PAIR": {"data.source"},
    "one of tag, word": {"data.tree_terminals"},
    # A token and the end mark.
    "at least 2": {"data.max_length", "search.max_source_tokens"},
    "at least 5": {"data.vocab_size"},
    "in [0, 1)": {
        *("model.dropout_rate", "model.attention_dropout_rate"),
        *("model.relu_dropout_rate", "data.subword_dropout"),
        *("training.label_smoothing", "optimizer.beta1", "optimizer.beta2"),
        "training.ema_decay",
    },
    "in (0, 1]": {"search.top_p"},
    "in [0, 1]": {"data.clean_min_letters", "data.clean_min_script"},
    "in [1, 512]": {"data.max_subword_length"},
    "one of shared, separate": {"data.vocabulary_sharing", "data.bucket_lengths"},
    "in [1, 2147483647]": {"training.num_steps", "optimizer.warmup_steps"},
    "in [0, 9223372036854775807]": {"seed"},  # NumPy's generators
    "positive": {
        *("optimizer.epsilon", "optimizer.learning_rate_scale", "model.init_scale"),
        *("model.layer_norm_epsilon", "search.temperature"),
    },
    "one of post, pre": {"model.layer_norm_position"},
    "one of sinusoidal, learned": {"model.positional_encoding"},
    "one of relu, swish": {"model.activation"},
    "one of xla, cudnn": {"model.attention"},
    "one of float32, bfloat16": {"model.dtype"},
    "one of bpe, unigram": {"data.subword_model"},
    "one of buckets, packed": {"data.batching"},
    "one of identity, nfkc, nfkc_cf, nmt_nfkc, nmt_nfkc_cf": {"data.normalization"},
    "one of detokenized, tokenized": {"data.text_form"},
    "one of uniform, others, no_pad": {"training.label_smoothing_form"},
    "one of bleu, f1, loss": {"training.best_metric"},
    "one of paper, constant, linear, cosine, inverse_sqrt": {"optimizer.schedule"},
    "one of paper, power": {"search.length_penalty_form"},
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


def test_only_learned_positions_limit_a_sentence():
    model = settings.small_settings(**{"model.max_positions": 32}).model
    assert model.position_limit is None
    learned = dataclasses.replace(model, positional_encoding="learned")
    assert learned.position_limit == 32


def test_a_target_may_have_extra_tokens():
    changes = {"search.max_source_tokens": 16, "search.max_extra_tokens": 5}
    assert settings.small_settings(**changes).search.max_target_tokens == 21


def test_a_record_of_the_first_runs_has_every_setting():
    """old_config.json is what `main` recorded when there were the fewest settings."""
    path = pathlib.Path(__file__).with_name("old_config.json")
    flat = config.flatten_record(json.loads(path.read_text()))
    assert flat.keys() == config.SETTINGS.keys()


def test_a_recorded_section_alone_gets_none_of_another():
    flat = config.flatten_record({"search": {"beam_size": 7}})
    assert flat["search.beam_size"] == 7 and flat["search.top_p"] == 1.0
    assert {key.partition(".")[0] for key in flat} == {"search"}


def test_processes_share_all_settings_but_names_of_files():
    [corpus] = settings.TAGGED["data.corpora"]

    def shared(**changes):
        values = {**settings.TAGGED, **changes}
        return config.shared_values(settings.small_settings(**values))

    elsewhere = [corpus | {"source": "/mnt/a.en", "target": "/mnt/a.de"}]
    same = shared(**{"data.corpora": elsewhere, "data.text_directory": "/mnt"})
    assert same == shared()
    for changes in (
        {"data.corpora": [corpus | {"weight": 2.0}]},
        {"search.beam_size": 2},
        {"model.d_ff": 14},
        {"seed": 987},
    ):
        assert shared(**changes) != shared()


def test_settings_have_exactly_these_ranges():
    ranges = collections.defaultdict(set)
    for key, setting in config.SETTINGS.items():
        if setting.range and not setting.values:
            ranges[setting.range].add(key)
    assert ranges == RANGES


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("seed", -1, "in [0, 9223372036854775807], got -1"),
        ("training.num_steps", 2**31, "in [1, 2147483647], got 2147483648"),
        ("optimizer.epsilon", 0.0, "positive, got 0.0"),
        ("model.dropout_rate", 2, "in [0, 1), got 2.0"),
        ("model.num_heads", 0, "at least 1, got 0"),
        ("data.normalization", "foo", "one of identity, nfkc"),
        ("search.max_tokens", -1, "0, or at least search.min_tokens, got -1"),
        ("search.top_p", 1.5, "in (0, 1], got 1.5"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_rule(key, value, rule):
    assert f"config.{key} must be {rule}" in refusal({key: value})
