"""A model in one file is the model of its run, whatever its vocabulary is."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable

import jax
import ml_dtypes
import numpy as np
import pytest

from tests import settings
from tests.checkpoints import damages
from vaswani_jax.checkpoints import average, bundle, compatibility, select, store
from vaswani_jax.checkpoints.bundle import Bundle
from vaswani_jax.core import config, parsing, tensor_file
from vaswani_jax.data.marian_subwords import MarianSubwords
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.word_subwords import WordSubwords


def separate() -> Vocabulary:
    letters = settings.letters_vocabulary().source
    return Vocabulary(letters, letters.extend(["<2de>"]), is_shared=False)


def imported() -> Vocabulary:
    """Two models that segment into ids of one list, as the OPUS models have."""
    letters = settings.letters_vocabulary().source
    spellings = [*letters.spellings, ">>fra<<"]
    models = (letters.model, letters.extend(["x"]).model)
    source, target = (MarianSubwords(model, spellings) for model in models)
    return Vocabulary(source, target, is_shared=True)


def of_trees() -> Vocabulary:
    words = WordSubwords(settings.letters_vocabulary().source.model)
    return Vocabulary(words, TreeSymbols(["NP", "S"], ["DT", "NN"]), is_shared=False)


KINDS = {
    "shared": (settings.letters_vocabulary, {}),
    "separate": (separate, {"data.vocabulary_sharing": "separate"}),
    "imported": (imported, {}),
    "of trees": (of_trees, settings.TREEBANK),
    "several languages": (settings.letters_vocabulary, settings.TWO_TARGETS),
}


@functools.cache
def make(kind: str = "shared", *, seed: int = 1) -> Bundle:
    make_vocabulary, changes = KINDS[kind]
    small = settings.small_settings(**changes)
    vocabulary = make_vocabulary()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=seed)
    record = {
        "vocabulary": vocabulary.fingerprint,
        "config": config.to_dict(small),
        "run": {"id": "02c14a2b", "workdir": "/home/user/runs/demo"},
        "averaged": [600, 700, 800],
        "recent": [1.0],
    }
    checkpoint = store.Checkpoint(800, {"params": params}, record)
    return Bundle(small, vocabulary, checkpoint)


@pytest.fixture(scope="module")
def model() -> Bundle:
    return make()


@pytest.fixture
def path(model: Bundle, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "model.safetensors"
    model.save(path, dtype="float32")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_has_the_model_of_a_run(tmp_path: pathlib.Path, kind: str) -> None:
    written, path = make(kind), tmp_path / "model.safetensors"
    written.save(path, dtype="float32")
    assert parsing.load(path) == written.settings
    vocabulary = bundle.read_vocabulary(path)
    assert vocabulary.fingerprint == written.vocabulary.fingerprint
    assert type(vocabulary.target) is type(written.vocabulary.target)
    assert (vocabulary.source is vocabulary.target) == (
        written.vocabulary.source is written.vocabulary.target
    )
    checkpoint = bundle.read_checkpoint(path)
    compatibility.check_fits(
        checkpoint, settings=written.settings, vocabulary=vocabulary
    )
    params = written.checkpoint.items["params"]
    jax.tree.map(np.testing.assert_array_equal, checkpoint.items["params"], params)
    description = select.describe(path, "averaged", checkpoint=checkpoint)
    assert description == (
        "checkpoint averaged: step 800 (the mean of [600, 700, 800])"
    )


def test_bfloat16_rounds_the_parameters_alone(
    model: Bundle, path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    half = tmp_path / "half.safetensors"
    model.save(half, dtype="bfloat16")
    params = bundle.read_checkpoint(half).items["params"]
    jax.tree.map(
        lambda read, original: np.testing.assert_array_equal(
            read, original.astype(ml_dtypes.bfloat16).astype(np.float32), strict=True
        ),
        params,
        model.checkpoint.items["params"],
    )
    assert parsing.load(half) == model.settings
    fingerprint = bundle.read_vocabulary(half).fingerprint
    assert fingerprint == model.vocabulary.fingerprint
    saved = path.stat().st_size - half.stat().st_size
    leaves = jax.tree.leaves(params)
    # But for the digits of the header's numbers.
    assert abs(saved - 2 * sum(leaf.size for leaf in leaves)) < 300
    for name in ("x.npz", "x"):
        with pytest.raises(ValueError, match=f"{name} must be a file whose name ends"):
            model.save(tmp_path / name, dtype="float32")
    with pytest.raises(ValueError, match="dtype=float16 must be float32 or bfloat16"):
        model.save(half, dtype="float16")


def test_a_file_for_others_names_no_folder_and_no_progress(path: pathlib.Path) -> None:
    record = bundle.read_checkpoint(path).record
    assert record["run"] == {"id": "02c14a2b", "workdir": "demo"}
    assert "recent" not in record
    assert b"/home" not in path.read_bytes()


def test_another_checkpoint_than_that_of_the_file_is_refused(
    path: pathlib.Path,
) -> None:
    assert bundle.read_checkpoint(path, "averaged").step == 800
    with pytest.raises(store.CheckpointError, match="one checkpoint, averaged, got 7"):
        select.select(path, "7")


def test_parts_of_two_runs_make_no_file(model: Bundle, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.safetensors"
    vocabulary = settings.letters_vocabulary().extend(["<2de>"])
    with pytest.raises(store.CheckpointError, match="they belong to different runs"):
        Bundle(model.settings, vocabulary, model.checkpoint).save(path, dtype="float32")
    other = settings.small_settings(**{"model.d_ff": 14})
    with pytest.raises(store.CheckpointError, match="of another model"):
        Bundle(other, model.vocabulary, model.checkpoint).save(path, dtype="float32")
    assert not path.exists()


def test_a_file_is_checked_against_the_settings_that_read_it(
    model: Bundle, path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = bundle.read_checkpoint(path)
    monkeypatch.delattr("vaswani_jax.model.transformer.param_shapes")
    # What the file records saves a trace of the model,
    compatibility.check_fits(
        checkpoint, settings=model.settings, vocabulary=model.vocabulary
    )
    monkeypatch.undo()
    # for these settings alone.
    other = settings.small_settings(**{"model.d_ff": 14})
    with pytest.raises(store.CheckpointError, match=r"model\.d_ff is 14, was 10"):
        compatibility.check_fits(
            checkpoint, settings=other, vocabulary=model.vocabulary
        )


@pytest.fixture
def workdir(model: Bundle, tmp_path: pathlib.Path) -> pathlib.Path:
    """A workdir whose average has a copy in one file."""
    save_average(tmp_path, model)
    return tmp_path


def save_average(workdir: pathlib.Path, model: Bundle) -> None:
    average.save_average(
        workdir,
        model.checkpoint,
        settings=model.settings,
        vocabulary=model.vocabulary,
    )


def test_the_copy_beside_an_average_is_read_instead(
    model: Bundle, workdir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = workdir / "averaged/800.safetensors"
    assert sorted((workdir / "averaged").iterdir()) == [workdir / "averaged/800", copy]
    monkeypatch.delattr(store, "restore_for_decoding")
    selected = select.select(workdir, "averaged")
    params = model.checkpoint.items["params"]
    jax.tree.map(np.testing.assert_array_equal, selected.items["params"], params)
    assert selected.record["run"]["workdir"] == "/home/user/runs/demo"
    assert selected.record["averaged"] == [600, 700, 800]


def lose(copy: pathlib.Path) -> None:
    copy.unlink()


def flip(copy: pathlib.Path) -> None:
    content = bytearray(copy.read_bytes())
    header_length = int.from_bytes(content[:8], "little")
    content[8 + header_length] ^= 1  # of the first array, of parameters
    copy.write_bytes(content)


def cut_off(copy: pathlib.Path) -> None:
    copy.write_bytes(copy.read_bytes()[:-1])


def replace_by_another(copy: pathlib.Path) -> None:
    make(seed=2).save(copy, dtype="float32")


def replace_by_that_of_another_average(copy: pathlib.Path) -> None:
    save_average(copy.parents[2] / "other", make(seed=2))
    (copy.parents[2] / "other/averaged/800.safetensors").replace(copy)


@pytest.mark.parametrize(
    ("change", "warns"),
    [
        (lose, False),
        (flip, True),
        (cut_off, True),
        (replace_by_another, False),
        (replace_by_that_of_another_average, False),
    ],
)
def test_a_copy_that_is_damaged_or_of_another_average_is_not_read(
    model: Bundle,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[pathlib.Path], None],
    warns: bool,
) -> None:
    workdir = tmp_path / "run"
    save_average(workdir, model)
    change(workdir / "averaged/800.safetensors")
    selected = select.select(workdir, "averaged")
    params = model.checkpoint.items["params"]
    jax.tree.map(np.testing.assert_array_equal, selected.items["params"], params)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == warns
    if warns:
        assert f"{workdir / 'averaged/800'} is read instead" in warnings[0].message


def test_a_checkpoint_that_changes_is_read_in_the_place_of_its_copy(
    workdir: pathlib.Path,
) -> None:
    # An average that is written without a copy of its own.
    other = make(seed=2).checkpoint
    average.save_average(workdir / "other", other)
    (workdir / "averaged/800").rename(workdir / "old")
    (workdir / "other/averaged/800").rename(workdir / "averaged/800")
    selected = select.select(workdir, "averaged")
    params = other.items["params"]
    jax.tree.map(np.testing.assert_array_equal, selected.items["params"], params)
    # Without a copy that belongs to it, damage is told as ever.
    damages.flip(workdir / "averaged/800")
    with pytest.raises(store.CheckpointError, match="is damaged"):
        select.select(workdir, "averaged")


def test_an_average_is_written_even_if_its_copy_cannot_be(
    model: Bundle,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full_disk(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensor_file, "write", full_disk)
    save_average(tmp_path, model)
    assert [file.name for file in (tmp_path / "averaged").iterdir()] == ["800"]
    assert "averaged/800.safetensors, a copy, is not written: [Errno 28]" in caplog.text
    monkeypatch.undo()
    # Nor if the run's settings are of another model.
    other = settings.small_settings(**{"model.d_ff": 14})
    save_average(tmp_path, dataclasses.replace(model, settings=other))
    assert [file.name for file in (tmp_path / "averaged").iterdir()] == ["800"]
