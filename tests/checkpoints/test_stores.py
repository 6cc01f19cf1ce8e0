"""Runs whose workdir lies on a store, when the store fails or is another's."""

import pathlib
from typing import Any

import fsspec
import pytest

from tests import settings
from tests.training.test_loop import OVERRIDES, run
from vaswani_jax.checkpoints import store as store_
from vaswani_jax.core import remote

pytestmark = pytest.mark.usefixtures("steps_once")


@pytest.fixture
def on_a_store(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """fsspec's memory, whose run/ is mirrored in a workdir."""
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    store = fsspec.filesystem("memory")
    yield store, remote.here("memory://bucket/run")
    store.store.clear()


def test_a_store_that_fails_costs_no_update_and_has_all_later(
    on_a_store: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, workdir = on_a_store
    small = settings.small_settings(**OVERRIDES)

    def fails(names: list[str], *rest: Any) -> None:
        if any("checkpoints" in name for name in names):
            raise RuntimeError("no quota")
        put(names, *rest)

    put = store.put
    monkeypatch.setattr(type(store), "put", staticmethod(fails))
    # Training goes on without the first one; the last one must be there.
    with pytest.raises(store_.NotWrittenError, match=r"memory:.*: no quota"):
        run(small, workdir)
    told = capsys.readouterr().err
    assert "warning: memory://bucket/run: no quota; training goes on" in told
    assert store_.Checkpoints(workdir / "checkpoints", keep=9).steps() == [2, 4]
    assert not store.find("/bucket/run/checkpoints")
    monkeypatch.undo()
    run(small, workdir)
    assert store.exists("/bucket/run/checkpoints/4/files.json")


def test_a_run_ends_when_another_has_begun_on_its_store(
    on_a_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, workdir = on_a_store
    save = store_.Checkpoints.save

    def saved(*args: Any, **kwargs: Any) -> None:
        save(*args, **kwargs)
        begun = store.cat_file("/bucket/run/starts.jsonl")
        store.pipe_file("/bucket/run/starts.jsonl", begun + b"another\n")

    monkeypatch.setattr(store_.Checkpoints, "save", saved)
    with pytest.raises(remote.SupersededError, match="another run has begun"):
        run(settings.small_settings(**OVERRIDES), workdir)
    assert store_.Checkpoints(workdir / "checkpoints", keep=9).steps() == [2]
    assert not store.find("/bucket/run/checkpoints/2")
