"""Every rule of a configuration: refused with the key, the value and the rule."""

import math

import pytest

from tests import settings
from tests.core import given
from vaswani_jax.benchmarks import training_speed
from vaswani_jax.core import config

COUNTS = [
    *("model.num_layers", "model.d_model", "model.d_ff", "model.num_heads"),
    *("model.d_k", "model.d_v", "model.max_positions", "data.num_buckets"),
    *("data.sentencepiece_sample_size", "optimizer.warmup_steps"),
    *("training.num_steps", "data.subword_samples", "training.log_every_steps"),
    *("training.evaluate_every_steps", "training.checkpoint_every_steps"),
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
    "data.source": ["text", "cldr", "copy", "reverse"],
    "data.subword_model": ["bpe", "unigram"],
    "data.text_form": ["detokenized", "tokenized"],
    "training.label_smoothing_form": ["uniform", "others", "no_pad"],
}


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("value", [0, -3])
def test_counts_are_at_least_one(key, value):
    # Averaging no checkpoint is refused as a count, before it is compared.
    assert f"config.{key} must be at least 1, got {value}" in given.message(
        {key: value}
    )


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
def test_parts_of_a_batch_are_auto_or_a_positive_number(value):
    key = "training.accumulate_steps"
    assert (
        f"config.{key} must be auto or a positive number, got {value!r}"
        in given.message({key: value})
    )


def test_r_drop_needs_dropout():
    assert given.parse(
        given.values({"training.r_drop": 5.0, "model.relu_dropout_rate": 0.1})
    )
    text = given.message({"training.r_drop": 5.0, "model.dropout_rate": 0.0})
    assert "config.training.r_drop" in text and "above 0, got 5.0" in text
    assert "at least 0, got -1.0" in given.message({"training.r_drop": -1.0})


@pytest.mark.parametrize("key", RATES)
@pytest.mark.parametrize("value", [1.0, -0.01, 2])
def test_rates_are_at_least_zero_and_below_one(key, value):
    text = given.message({key: value})
    assert f"config.{key} must be in [0, 1), got {float(value)}" in text


@pytest.mark.parametrize("key", RATES)
def test_rate_zero_is_accepted(key):
    assert config.to_dict(given.parse(given.values({key: 0.0})))


@pytest.mark.parametrize(("key", "allowed"), CHOICES.items())
def test_choices_are_refused_with_all_that_is_allowed(key, allowed):
    text = given.message({key: "other"})
    assert f"config.{key} " in text
    assert "'other'" in text
    assert all(choice in text for choice in allowed)


@pytest.mark.parametrize(
    ("key", "choice"), [(key, one) for key, all_ in CHOICES.items() for one in all_]
)
def test_choices_are_accepted(key, choice):
    assert given.parse(given.values({key: choice} | given.GENERATED))


@pytest.mark.parametrize(
    "key", ["optimizer.epsilon", "optimizer.learning_rate_scale", "model.init_scale"]
)
@pytest.mark.parametrize("value", [0.0, -1e-9])
def test_epsilon_and_scale_are_positive(key, value):
    assert f"config.{key} must be positive, got {value}" in given.message({key: value})


@pytest.mark.parametrize("value", [-0.1])
def test_length_penalty_is_not_negative(value):
    text = given.message({"search.length_penalty": value})
    assert "config.search.length_penalty must be at least 0, got -0.1" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"min_tokens": 0}, "min_tokens must be at least 1, got 0"),
        ({"min_tokens": 5, "max_tokens": 4}, "at least config.search.min_tokens (5)"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"top_k": -1}, "top_k must be at least 0, got -1"),
        ({"top_p": 0.0}, "top_p must be over 0, at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be over 0, at most 1, got 1.5"),
        ({"no_repeat_ngram": -2}, "no_repeat_ngram must be at least 0, got -2"),
    ],
)
def test_what_a_search_cannot_mean_is_refused(changes, said):
    text = given.message({f"search.{key}": value for key, value in changes.items()})
    assert said in text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", [*RATES, "optimizer.epsilon", "search.length_penalty"])
def test_numbers_are_finite(key, value):
    assert f"config.{key} must be finite, got {value}" in given.message({key: value})


def test_seed_is_not_negative():
    # NumPy's generators, which shuffle the batches, take no negative seed.
    text = given.message({"seed": -1})
    assert "config.seed must be at least 0, got -1" in text


def test_sinusoids_need_an_even_width():
    assert "config.model.d_model must be a multiple of 2, got 33" in given.message(
        {"model.d_model": 33}
    )
    learned = {"model.positional_encoding": "learned", "model.d_model": 33}
    assert given.parse(given.values(learned)).model.d_model == 33


def test_no_more_checkpoints_are_averaged_than_kept():
    text = given.message({"training.average_checkpoints": 4})
    assert "config.training.average_checkpoints must be at most" in text
    assert "config.training.keep_checkpoints (3), got 4" in text


@pytest.mark.parametrize(
    ("overrides", "longest"),
    [
        ({}, 18 + 12),
        ({"data.max_length": 31}, 31),
        ({"search.max_extra_tokens": 15}, 33),
        ({"search.min_tokens": 35}, 35),
    ],
)
def test_learned_positions_reach_the_longest_sentence(overrides, longest):
    learned = {"model.positional_encoding": "learned", **overrides}
    text = given.message({**learned, "model.max_positions": longest - 1})
    assert f"config.model.max_positions must be at least {longest} " in text
    assert f"got {longest - 1}" in text
    assert given.parse(given.values({**learned, "model.max_positions": longest}))
    # The sinusoids have no limit.
    assert given.parse(given.values({**overrides, "model.max_positions": 1}))


FUSED = {
    "model.attention": "cudnn",
    "model.dtype": "bfloat16",
    "model.d_k": 8,
    "model.d_v": 8,
}


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("max_length", {"data.max_length": 15}),
        ("packed_length", {"data.packed_length": 21, "data.batching": "packed"}),
    ],
)
def test_fused_attention_needs_even_lengths(key, changes):
    assert f"needs an even config.data.{key}" in given.message(FUSED | changes)


def test_fused_attention_refuses_odd_lengths_of_random_work():
    model = settings.small_settings(**FUSED).model
    training_speed.same_batch("2x4x6", model, vocab_size=9)
    for shape, odd in (("2x3x4", 3), ("2x4x5", 5)):
        said = f"needs an even --shape={shape}, got {odd}"
        with pytest.raises(ValueError, match=said):
            training_speed.same_batch(shape, model, vocab_size=9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 10**20}, "config.seed must be at most"),
        ({"training.num_steps": 10**20}, "config.training.num_steps must be at most"),
        ({"optimizer.warmup_steps": 2**31}, "warmup_steps must be at most"),
        ({"data.normalization": "foo"}, "config.data.normalization must be one of"),
        ({"data.vocab_size": 4}, "config.data.vocab_size must be at least 5"),
        ({"search.top_k": 5}, "config.search.top_k=5 is of config.search.sampling"),
        ({"search.temperature": 0.5}, "config.search.temperature=0.5 is of config"),
    ],
)
def test_what_would_be_refused_later_or_never_is_refused_at_once(changes, said):
    with pytest.raises(ValueError, match=said):
        settings.small_settings(**changes)
