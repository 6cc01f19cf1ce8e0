"""Files from others: nothing in them is executed, nothing is written elsewhere."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from configs import of_run
from tests import settings
from tests.programs import runs
from tests.training.small_runs import train
from vaswani_jax.checkpoints import average, bundle, select, store
from vaswani_jax.core import compilation_cache
from vaswani_jax.data import prepared, vocabulary
from vaswani_jax.training import metrics_log


class Payload:
    """An object that executes a command when it is unpickled."""

    def __init__(self, mark: pathlib.Path) -> None:
        self._mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._mark}",)


@pytest.fixture(scope="module")
def full_workdir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir with every kind of file."""
    workdir = tmp_path_factory.mktemp("run") / "made"
    small = settings.small_settings()
    train(small, workdir)
    average.save_average(
        workdir,
        select.select(workdir, "average:2"),
        settings=small,
        vocabulary=vocabulary.load(workdir / "data"),
    )
    return workdir


def read_all(workdir: pathlib.Path) -> None:
    """Everything that a program reads of a workdir."""
    of_run.get_config(str(workdir))
    data = prepared.open_matching(
        settings.small_settings(), workdir / "data", compare_text=True
    )
    data.text("valid")
    for name in ("newest", "best", "averaged"):
        select.select(workdir, name)
    for file in (workdir / "averaged").glob("*.safetensors"):
        bundle.read_vocabulary(file)
    directory = workdir / "checkpoints"
    store.restore(directory, store.steps(directory)[0], names=["params", "optimizer"])
    log = metrics_log.MetricsLog(workdir, first_step=2, num_steps=4, is_active=True)
    log.open(2)
    log.close()
    data.token_pairs("train").source.rows(np.arange(2), length=9)


def names(workdir: pathlib.Path) -> list[str]:
    """One file of each kind."""
    kinds: dict[tuple[str, ...], str] = {}
    for path in sorted(p for p in workdir.rglob("*") if p.is_file()):
        name = path.relative_to(workdir)
        plain = tuple("N" if part.isdecimal() else part for part in name.parts)
        inside = len(plain) > 4 or "tensorboard" in plain or "lock" in plain
        kinds.setdefault(plain[:3] if inside else plain, str(name))
    return list(kinds.values())


def test_no_file_of_a_workdir_is_executed(
    full_workdir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    mark = tmp_path / "executed"
    payload = pickle.dumps(Payload(mark))
    pickle.loads(payload)
    assert mark.exists(), "the payload works"
    mark.unlink()
    read_all(full_workdir)
    files = names(full_workdir)
    assert len(files) > 15, files
    refused = []
    for number, name in enumerate(files):
        workdir = tmp_path / str(number)
        shutil.copytree(full_workdir, workdir)
        (workdir / name).write_bytes(payload)
        try:
            read_all(workdir)
        except (ValueError, OSError, KeyError, TypeError) as error:
            refused.append(name)
            assert "executed" not in str(error)
        assert not mark.exists(), name
    for kind in ("config.json", "data/vocabulary.model", "data/manifest.json"):
        assert kind in refused
    assert "averaged/4.safetensors" in refused
    assert any(name.startswith("checkpoints/") for name in refused)


AUDITED = """
import os, runpy, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def hook(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and args[2] & WRITES:
        os.write(log, f"write {os.path.abspath(os.fsdecode(args[0]))}\\n".encode())
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link"):
        os.write(log, f"write {os.path.abspath(os.fsdecode(args[-3]))}\\n".encode())
    elif event in ("pickle.find_class", "os.system", "os.exec", "subprocess.Popen"):
        os.write(log, f"{event} {args}\\n".encode())
sys.addaudithook(hook)
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def test_decoding_writes_nowhere_but_in_the_workdir_and_the_users_cache(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    audited = tmp_path / "log"
    command = runs.command("decode", trained)
    arguments = [command[2], *command[3:], f"--output={tmp_path / 'output'}"]
    result = subprocess.run(
        [sys.executable, "-c", AUDITED, str(audited), *arguments],
        input=b"a b c\n",
        capture_output=True,
        cwd=runs.ROOT,
        env={**runs.environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    events = audited.read_text().splitlines()
    written = {line.removeprefix("write ") for line in events if line[:6] == "write "}
    caches = [
        os.environ[name]
        for name in ("JAX_COMPILATION_CACHE_DIR", compilation_cache.VARIABLE)
    ]
    allowed = (str(trained), str(tmp_path / "output"), *caches, "/dev/null", "/proc/")
    assert any(path.startswith(str(tmp_path / "output")) for path in written)
    assert not [path for path in written if not path.startswith(allowed)]
    # Python and its libraries look at the machine; nothing comes from a pickle.
    assert not [line for line in events if line.startswith("pickle")]
