"""A new run starts from the parameters and the vocabulary of another one."""

import pathlib

import jax
import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints import average, run_record, store
from vaswani_jax.checkpoints.bundle import Bundle
from vaswani_jax.core import config
from vaswani_jax.data import manifest
from vaswani_jax.training import initial_model

NAMES = ("run", "model.safetensors")


@pytest.fixture(scope="module")
def model() -> Bundle:
    """A model that has learned nothing."""
    small = settings.small_settings()
    vocabulary = settings.letters_vocabulary()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=1)
    record = {"vocabulary": vocabulary.fingerprint, "config": config.to_dict(small)}
    return Bundle(small, vocabulary, store.Checkpoint(8, {"params": params}, record))


@pytest.fixture(scope="module")
def folder(model: Bundle, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The model as the average of a run, and in one file."""
    folder = tmp_path_factory.mktemp("models")
    data = folder / "run/data"
    data.mkdir(parents=True)
    model.vocabulary.save(data)
    manifest.Manifest(
        settings=manifest.recorded_settings(model.settings.data),
        text={},
        vocabulary=model.vocabulary.fingerprint,
        counts={},
    ).write(data)
    average.save_average(folder / "run", model.checkpoint)
    run_record.record_start(folder / "run", model.settings, step=0, changes=[])
    model.save(folder / "model.safetensors", dtype="float32")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_run_and_its_model_in_one_file_give_the_same(
    model: Bundle, folder: pathlib.Path, name: str
) -> None:
    for checkpoint in ("", "averaged"):
        initial = initial_model.load(
            model.settings, path=folder / name, name=checkpoint
        )
        params = model.checkpoint.items["params"]
        jax.tree.map(np.testing.assert_array_equal, initial.params, params)
        assert initial.vocabulary.fingerprint == model.vocabulary.fingerprint


def test_new_symbols_come_after_the_subwords_of_the_model(
    model: Bundle, folder: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    changes = {"data.user_symbols": "<2de>", "optimizer.frozen": "embedding/*"}
    extended = settings.small_settings(**changes)
    initial = initial_model.load(extended, path=folder / "run", name="")
    old, new = model.vocabulary.source, initial.vocabulary.source
    assert list(new.spellings[: old.size]) == list(old.spellings)
    added = new.spellings[old.size :]
    # The symbol after a space, and alone.
    assert sorted(added) == ["<2de>", "\u2581<2de>"]
    assert (
        f"2 new subwords, whose embeddings begin at random: {', '.join(added)}"
        in log_lines.messages
    )
    assert (
        "config.optimizer.frozen=embedding/* freezes embedding/embedding: the "
        "embeddings of new subwords stay random"
    ) in log_lines.messages


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_other_shapes_is_refused(folder: pathlib.Path, name: str) -> None:
    wider = settings.small_settings(**{"model.d_ff": 14})
    with pytest.raises(store.CheckpointError, match=r"model\.d_ff is 14, was 10"):
        initial_model.load(wider, path=folder / name, name="")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "^--init_from: there is no directory .*/none"),
        ("none.safetensors", "^there is no file .*/none.safetensors$"),
    ],
)
def test_what_does_not_exist_is_named(
    model: Bundle, tmp_path: pathlib.Path, name: str, message: str
) -> None:
    with pytest.raises((ValueError, OSError), match=message):
        initial_model.load(model.settings, path=tmp_path / name, name="")
