"""A checkpoint is compared with the settings and the model of the run that reads it."""

import pathlib
from typing import Any

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.checkpoints import compatibility, store
from vaswani_jax.core import config
from vaswani_jax.training import step as training_step


def test_a_model_of_other_shapes_is_refused_with_the_settings_that_differ(
    tmp_path: pathlib.Path,
) -> None:
    was = {"model.d_model": 6, "model.init_scale": 1.0, "model.dropout_rate": 0.1}
    now = {"model.d_model": 8, "model.init_scale": 0.5, "model.dropout_rate": 0.3}
    small = settings.small_settings(**was)
    changed = settings.small_settings(**now)
    words = " ".join(small_text.WORDS)
    subwords = settings.learn_vocabulary(
        [words] * 9, small_text.settings_of(tmp_path).data
    )
    trained = training_step.create_state(small, vocab_size=subwords.size)
    record = {"vocabulary": subwords.fingerprint, "config": config.to_dict(small)}
    for recorded, reason in (
        (record, "config.model.d_model is 8, was 6; restore the config"),
        (record | {"config": {}}, "decoder/layers_0/.* has shape"),
    ):
        checkpoint = store.Checkpoint(8, {"params": trained.params}, recorded)
        with pytest.raises(
            store.CheckpointError, match=f"step 8 is of another model: {reason}"
        ):
            compatibility.check_fits(checkpoint, settings=changed, vocabulary=subwords)


@pytest.mark.parametrize(
    ("key", "was", "now"),
    [
        ("activation", "relu", "swish"),
        ("layer_norm_epsilon", 1e-6, 1e-5),
        ("layer_norm_position", "pre", "post"),
    ],
)
def test_a_model_of_other_functions_and_the_same_shapes_is_refused(
    tmp_path: pathlib.Path, key: str, was: Any, now: Any
) -> None:
    small = settings.small_settings(**{f"model.{key}": was})
    words = " ".join(small_text.WORDS)
    subwords = settings.learn_vocabulary(
        [words] * 9, small_text.settings_of(tmp_path).data
    )
    trained = training_step.create_state(small, vocab_size=subwords.size)
    record = {"vocabulary": subwords.fingerprint, "config": config.to_dict(small)}
    checkpoint = store.Checkpoint(8, {"params": trained.params}, record)
    compatibility.check_fits(checkpoint, settings=small, vocabulary=subwords)
    # How it is trained and computed may differ.
    harmless = {
        f"model.{key}": was,
        "model.dropout_rate": 0.3,
        "model.dtype": "bfloat16",
    }
    compatibility.check_fits(
        checkpoint, settings=settings.small_settings(**harmless), vocabulary=subwords
    )
    changed = settings.small_settings(**{f"model.{key}": now})
    with pytest.raises(store.CheckpointError, match=f"{key} is {now!r}, was "):
        compatibility.check_fits(checkpoint, settings=changed, vocabulary=subwords)


@pytest.mark.parametrize(
    ("key", "is_decisive"),
    [
        ("optimizer.beta2", True),
        ("training.ema_decay", True),
        # Each start applies these, though it makes no update.
        ("training.num_steps", False),
        ("training.average_checkpoints", False),
        ("search.length_penalty", False),
        ("data.lowercase_scores", False),
        ("data.test_source", False),
        # They decide how a run computes, and which repetition of it this is.
        ("training.keep_checkpoints", False),
        ("seed", False),
    ],
)
def test_a_finished_run_keeps_the_settings_of_its_updates(
    key: str, is_decisive: bool
) -> None:
    assert compatibility.decides_updates(key) == is_decisive
