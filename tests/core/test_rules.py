"""Rules between settings: refused with the key, the value and the rule."""

import pytest

from tests import settings
from tests.core.valid_config import GENERATED, parsed, refusal
from vaswani_jax.benchmarks import training_speed


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
def test_parts_of_a_batch_are_auto_or_a_positive_number(value):
    key = "training.accumulate_steps"
    assert f"config.{key} must be auto or a positive number, got {value!r}" in refusal(
        {key: value}
    )


def test_loggers_are_names_that_exist():
    assert parsed({"training.loggers": "wandb, trackio"})
    text = refusal({"training.loggers": "wandb,mflow"})
    assert "config.training.loggers must be names, separated by commas" in text
    assert text.endswith("got 'wandb,mflow'; did you mean mlflow?")


def test_a_logger_is_named_once():
    assert "has 'wandb' twice" in refusal({"training.loggers": "wandb,wandb"})


def test_r_drop_needs_dropout():
    assert parsed({"training.r_drop": 5.0, "model.relu_dropout_rate": 0.1})
    text = refusal({"training.r_drop": 5.0, "model.dropout_rate": 0.0})
    assert "config.training.r_drop" in text and "above 0, got 5.0" in text
    for rate in ("dropout_rate", "attention_dropout_rate", "relu_dropout_rate"):
        assert f"config.model.{rate}" in text
    assert parsed({"training.r_drop": 0.0, "model.dropout_rate": 0.0})


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("no_repeat_ngram", 3, "config.search.no_repeat_ngram=0, got 3"),
        ("min_tokens", 5, "config.search.min_tokens=1, got 5"),
        ("max_tokens", 9, "config.search.max_tokens=0, got 9"),
        ("max_extra_tokens", 1, "config.search.max_extra_tokens of at least 2, got 1"),
    ],
)
def test_a_search_for_trees_has_room_and_repeats_symbols(key, value, rule):
    changes = {**settings.TREEBANK, f"search.{key}": value}
    assert refusal(changes).endswith(f"config.search.legal_trees=True needs {rule}")
    assert parsed({**changes, "search.legal_trees": False})
    assert parsed({f"search.{key}": value})


def test_equation_3_has_no_other_rate():
    text = refusal({"optimizer.learning_rate": 1e-3})
    assert "config.optimizer.learning_rate must be 0 with" in text
    assert "schedule=paper" in text and "got 0.001" in text


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "inverse_sqrt"])
def test_another_schedule_needs_its_rate_and_no_factor_of_equation_3(schedule):
    changes = {"optimizer.schedule": schedule, "training.num_steps": 5}
    text = refusal(changes)
    assert f"schedule={schedule} needs config.optimizer.learning_rate above 0" in text
    changes["optimizer.learning_rate"] = 1e-3
    assert parsed(changes).optimizer.learning_rate == 1e-3
    text = refusal({**changes, "optimizer.learning_rate_scale": 0.5})
    assert "config.optimizer.learning_rate_scale" in text and "1, got 0.5" in text


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_rate_that_falls_needs_steps_after_the_warm_up(schedule):
    changes = {"optimizer.schedule": schedule, "optimizer.learning_rate": 1e-3}
    text = refusal({**changes, "training.num_steps": 4})
    assert "warmup_steps below config.training.num_steps (4), got 4" in text


def test_an_output_cannot_be_shorter_at_most_than_at_least():
    changes = {"search.min_tokens": 5, "search.max_tokens": 4}
    text = refusal(changes)
    assert "at least config.search.min_tokens (5), got 4" in text


@pytest.mark.parametrize(
    ("key", "value"), [("top_k", 5), ("temperature", 0.5), ("top_p", 0.5)]
)
def test_what_chooses_samples_needs_sampling(key, value):
    text = refusal({f"search.{key}": value})
    assert f"config.search.{key}={value} needs config.search.sampling=True" in text
    changes = {f"search.{key}": value, "search.sampling": True}
    assert parsed(changes).search.sampling


def test_sinusoids_need_an_even_width():
    assert "config.model.d_model must be a multiple of 2, got 33" in refusal(
        {"model.d_model": 33}
    )
    learned = {"model.positional_encoding": "learned", "model.d_model": 33}
    assert parsed(learned).model.d_model == 33


def test_no_more_checkpoints_are_averaged_than_kept():
    text = refusal({"training.average_checkpoints": 4})
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
    text = refusal({**learned, "model.max_positions": longest - 1})
    assert f"config.model.max_positions must be at least {longest} " in text
    assert f"got {longest - 1}" in text
    assert parsed({**learned, "model.max_positions": longest})
    # The sinusoids have no limit.
    assert parsed({**overrides, "model.max_positions": 1})


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
    assert f"needs an even config.data.{key}" in refusal(FUSED | changes)


def test_fused_attention_refuses_odd_lengths_of_random_work():
    model = settings.small_settings(**FUSED).model
    training_speed.same_batch("2x4x6", model, vocab_size=9)
    for shape, odd in (("2x3x4", 3), ("2x4x5", 5)):
        message = f"needs an even --shape={shape}, got {odd}"
        with pytest.raises(ValueError, match=message):
            training_speed.same_batch(shape, model, vocab_size=9)


def test_patience_needs_a_validation_set():
    none = {"data.valid_source": "", "data.valid_target": ""}
    text = refusal(none | {"training.patience": 3})
    assert "config.training.patience=3 needs a validation set: name config.data" in text
    # Generated text has one.
    generated = none | {"data.source": "copy"} | GENERATED
    assert parsed(generated | {"training.patience": 3}).training.patience == 3
