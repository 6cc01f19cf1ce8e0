"""The models that translate together are those of the named checkpoints."""

import dataclasses
import json
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints import store
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config
from vaswani_jax.inference import ensemble


@pytest.fixture
def small() -> config.Config:
    return settings.small_settings()


def leave(
    workdir: pathlib.Path, run: config.Config, *steps: int, vocabulary: str = ""
) -> dict[int, Any]:
    """Write a run with checkpoints of some steps; return their parameters."""
    subwords = settings.letters_vocabulary()
    workdir.mkdir()
    (workdir / "config.json").write_text(json.dumps(config.to_dict(run)))
    params = {}
    for step in steps:
        params[step] = settings.random_params(
            run.model, vocab_size=subwords.size, seed=step
        )
        record = {
            "vocabulary": vocabulary or subwords.fingerprint,
            "config": config.to_dict(run),
        }
        checkpoint = Checkpoint(step, {"params": params[step]}, record)
        store.save(workdir / "checkpoints", checkpoint, keep=9)
    return params


def load(
    workdir: pathlib.Path,
    run: config.Config,
    checkpoints: str,
    *others: tuple[pathlib.Path, str],
) -> list[ensemble.Member]:
    return ensemble.load_members(
        run,
        workdir,
        vocabulary=settings.letters_vocabulary(),
        checkpoints=checkpoints,
        ensemble=others,
    )


def test_checkpoints_of_one_run_and_of_others_are_loaded_in_order(
    tmp_path: pathlib.Path, small: config.Config, caplog: pytest.LogCaptureFixture
) -> None:
    other = settings.small_settings(**{"model.d_ff": 14, "model.num_layers": 2})
    params = leave(tmp_path / "a", small, 2, 4)
    other_params = leave(tmp_path / "b", other, 8)
    caplog.set_level("INFO", "vaswani_jax")
    members = load(tmp_path / "a", small, "newest,2", (tmp_path / "b", "8"))
    expected = [
        (small.model, 4, params[4]),
        (small.model, 2, params[2]),
        (other.model, 8, other_params[8]),
    ]
    for member, (model, step, tree) in zip(members, expected, strict=True):
        assert (member.model, member.checkpoint.step) == (model, step)
        jax.tree.map(np.testing.assert_array_equal, member.params, tree)
    assert caplog.messages == [
        "checkpoint newest: step 4",
        "checkpoint 2: step 2",
        "checkpoint 8: step 8",
    ]


def test_a_member_of_another_vocabulary_is_refused_with_its_directory(
    tmp_path: pathlib.Path, small: config.Config
) -> None:
    leave(tmp_path / "a", small, 2)
    leave(tmp_path / "b", small, 2, vocabulary="cafe")
    with pytest.raises(CheckpointError, match=f"^{tmp_path / 'b'}: .*vocabulary cafe"):
        load(tmp_path / "a", small, "2", (tmp_path / "b", "2"))


@pytest.mark.parametrize(
    ("source", "target", "is_refused"),
    [("de", "en", True), ("en", "fr", True), ("en_GB", "de,fr", False)],
)
def test_a_member_of_another_direction_is_refused(
    tmp_path: pathlib.Path, source: str, target: str, is_refused: bool
) -> None:
    values = {"data.source_locale": "en", "data.target_locale": "de"}
    run = settings.small_settings(**values)
    data = dataclasses.replace(
        run.data,
        source="cldr",
        user_symbols="<2de>,<2fr>",
        source_locale=source,
        target_locale=target,
    )
    leave(tmp_path / "a", run, 2)
    leave(tmp_path / "b", dataclasses.replace(run, data=data), 2)
    others = (tmp_path / "b", "2")
    if not is_refused:
        assert len(load(tmp_path / "a", run, "2", others)) == 2
        return
    with pytest.raises(
        ValueError,
        match=f"^--ensemble={others[0]} translates {source} to {target}; name a run "
        "that translates en to de$",
    ):
        load(tmp_path / "a", run, "2", others)


def test_a_missing_checkpoint_is_refused_with_what_to_name_instead(
    tmp_path: pathlib.Path, small: config.Config
) -> None:
    leave(tmp_path / "a", small, 2)
    leave(tmp_path / "b", small, 2)
    with pytest.raises(CheckpointError, match=r"/a/averaged; pass RUN@newest$"):
        load(tmp_path / "a", small, "averaged")
    with pytest.raises(CheckpointError, match=r"/b/averaged; pass RUN@newest$"):
        load(tmp_path / "a", small, "2", (tmp_path / "b", "averaged"))


def test_a_member_needs_positions_for_the_search(
    tmp_path: pathlib.Path, small: config.Config
) -> None:
    learned = {"model.positional_encoding": "learned", "model.max_positions": 21}
    leave(tmp_path / "a", small, 2)
    leave(tmp_path / "b", settings.small_settings(**learned), 2)
    load(tmp_path / "a", small, "2", (tmp_path / "b", "2"))
    longer = settings.small_settings(**{"search.max_extra_tokens": 6})
    with pytest.raises(
        ValueError, match=f"^--ensemble={tmp_path / 'b'}: .*at least 22"
    ):
        load(tmp_path / "a", longer, "2", (tmp_path / "b", "2"))


def test_a_directory_without_a_run_is_refused(
    tmp_path: pathlib.Path, small: config.Config
) -> None:
    leave(tmp_path / "a", small, 2)
    with pytest.raises(ValueError, match=r"nothing holds no run"):
        load(tmp_path / "a", small, "2", (tmp_path / "nothing", "2"))
