"""A checkpoint is of the model and the vocabulary that the settings describe."""

import pathlib
from typing import Any

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.checkpoints import compatibility, store
from vaswani_jax.core import config
from vaswani_jax.data import vocabulary
from vaswani_jax.training import step as training_step


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
    subwords = vocabulary.learn_vocabulary(
        [words] * 9, small_text.settings_of(tmp_path).data
    )
    trained = training_step.create_state(small, vocab_size=subwords.size)
    record = {"vocabulary": subwords.fingerprint, "config": config.to_dict(small)}
    checkpoint = store.Checkpoint(8, {"params": trained.params}, record)
    compatibility.check_fits(checkpoint, small, subwords)
    # How it is trained and computed may differ.
    harmless = {
        f"model.{key}": was,
        "model.dropout_rate": 0.3,
        "model.dtype": "bfloat16",
    }
    compatibility.check_fits(checkpoint, settings.small_settings(**harmless), subwords)
    changed = settings.small_settings(**{f"model.{key}": now})
    with pytest.raises(store.CheckpointError, match=f"{key} is {now!r}, was "):
        compatibility.check_fits(checkpoint, changed, subwords)
