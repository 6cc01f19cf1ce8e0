"""Compiled programs are kept on disk, and read from there."""

import os

import jax
import pytest

from tests import interpreter
from vaswani_jax.core import compilation_cache, kept_programs

# Prints a sum over devices, and whether its program was found. With --damage, a fork
# without a backend does so first; then all that is kept is damaged.
PROGRAM = """
import os, pathlib, sys
import jax, jax.numpy as jnp
from vaswani_jax.core import compilation_cache, parallel
home = pathlib.Path(sys.argv[1])
if "--damage" in sys.argv:
    if process := os.fork():
        assert os.waitpid(process, 0)[1] == 0
        entries = list(home.glob("compiled/*-cache"))
        assert entries
        for path in entries:
            path.write_bytes(b"damaged")
assert compilation_cache.directory() is compilation_cache.home() is None
compilation_cache.enable()
assert compilation_cache.home() == home
assert compilation_cache.directory() == home / "compiled"
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None
)
run = parallel.over_devices(
    lambda state, rows: state + parallel.sum_over_devices(rows.sum()),
    donate_state=True,
)
rows = parallel.split_rows(jnp.ones((8, 3)), num_microbatches=1)
print(float(run(parallel.replicate(jnp.zeros(())), rows)), bool(hits))
"""


def test_a_kept_program_is_found_and_may_be_damaged(tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")

    def sums_and_cache_hits(*flags):
        cache = str(tmp_path / "cache")
        output = interpreter.output_of(PROGRAM, cache, *flags, VASWANI_JAX_CACHE=cache)
        return output.split()

    assert sums_and_cache_hits() == ["24.0", "False"]
    # Another interpreter, whose hashes differ.
    assert sums_and_cache_hits("--damage")[:3] == ["24.0", "True", "24.0"]


@pytest.fixture
def enable(monkeypatch):
    """Enable the cache of an environment, and that of the tests again afterwards."""
    monkeypatch.setattr(compilation_cache, "_refused", set())
    names = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size")
    before = {name: getattr(jax.config, name) for name in names}

    def in_environment(**variables):
        for name, value in variables.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, str(value))
        compilation_cache.enable()
        return compilation_cache.home()

    yield in_environment
    monkeypatch.undo()
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.enable()


def mode(path):
    return path.stat().st_mode & 0o777


def test_the_users_directory_is_that_of_the_environment(tmp_path, enable):
    where = {"HOME": tmp_path, "JAX_COMPILATION_CACHE_DIR": None}
    home = enable(**where, XDG_CACHE_HOME=None, VASWANI_JAX_CACHE=None)
    assert home == tmp_path / ".cache" / "vaswani_jax"
    assert mode(home) == mode(home / "programs") == mode(home / "compiled") == 0o700
    assert compilation_cache.directory() == home / "compiled"
    limit = jax.config.jax_compilation_cache_max_size
    assert limit == compilation_cache.LIMIT_BYTES
    home = enable(XDG_CACHE_HOME=tmp_path / "xdg")
    assert home == tmp_path / "xdg" / "vaswani_jax"
    assert enable(VASWANI_JAX_CACHE="~/chosen") == tmp_path / "chosen"


def test_nothing_is_kept_where_others_can_write_which_is_said_once(
    tmp_path, enable, caplog
):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for _ in range(2):
        assert enable(VASWANI_JAX_CACHE=open_to_all) is None
    assert kept_programs.directory() is None
    assert not list(open_to_all.iterdir())
    [message] = caplog.messages
    assert f"{open_to_all}: other users can write it" in message
    file = tmp_path / "file"
    file.write_text("")
    assert enable(VASWANI_JAX_CACHE=file) is None
    assert f"kept in {file}: " in caplog.messages[1]
    assert "File exists" in caplog.messages[1]


def test_nothing_is_kept_in_the_directory_of_another_user(
    tmp_path, enable, caplog, monkeypatch
):
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert enable(VASWANI_JAX_CACHE=tmp_path) is None
    assert "it belongs to another user" in caplog.text


def test_a_system_without_numbers_of_users_has_a_cache(tmp_path, enable, monkeypatch):
    monkeypatch.delattr(os, "getuid")
    assert enable(VASWANI_JAX_CACHE=tmp_path) == tmp_path


def test_whole_entries_stay_that_were_used_last(tmp_path, enable, monkeypatch):
    monkeypatch.setattr(compilation_cache, "MAX_ENTRIES", 2)
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    for number, name in enumerate("bacd"):
        for suffix in ("cache", "atime"):
            path = compiled / f"{name}-{suffix}"
            path.write_bytes(b"")
            os.utime(path, (number, number))
    # As a program leaves it that is killed while it writes.
    (compiled / "e-cache").write_bytes(b"")
    enable(VASWANI_JAX_CACHE=tmp_path, JAX_COMPILATION_CACHE_DIR=None)
    assert {path.name[0] for path in compiled.glob("*-*")} == {"c", "d"}


def test_a_directory_for_all_runs_takes_precedence(tmp_path, enable):
    home = enable(
        JAX_COMPILATION_CACHE_DIR=tmp_path / "all", VASWANI_JAX_CACHE=tmp_path
    )
    assert compilation_cache.directory() == tmp_path / "all"
    assert home == tmp_path
    # It has the limit that JAX's own option gives it.
    assert jax.config.jax_compilation_cache_max_size == -1


def test_an_option_that_the_caller_has_set_stays(tmp_path, enable):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    variables = {"JAX_COMPILATION_CACHE_DIR": None, "VASWANI_JAX_CACHE": tmp_path}
    assert enable(**variables) == tmp_path
    assert compilation_cache.directory() == tmp_path / "own"
    jax.config.update("jax_compilation_cache_dir", None)
    enable(**variables)
    assert compilation_cache.directory() == tmp_path / "compiled"


def test_a_url_for_all_runs_is_no_directory(tmp_path, enable, monkeypatch):
    monkeypatch.chdir(tmp_path)
    enable(JAX_COMPILATION_CACHE_DIR="gs://bucket/all", VASWANI_JAX_CACHE=tmp_path)
    assert compilation_cache.directory() is None
    measured = compilation_cache.remember("test", "a", lambda: {"a": 1}, keep=True)
    assert measured == {"a": 1}
    assert not (tmp_path / "gs:").exists()


def test_what_was_measured_is_kept_and_measured_again_when_damaged(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(compilation_cache, "directory", lambda: tmp_path / "new")
    calls = []

    def remember(key, *, keep=True):
        def measure():
            calls.append(key)
            return {"bytes": len(calls)}

        return compilation_cache.remember("test", key, measure, keep=keep)

    assert remember("a", keep=False) == {"bytes": 1}
    assert remember("a") == {"bytes": 2}
    assert remember("a") == {"bytes": 2}
    assert remember("b") == {"bytes": 3}
    compilation_cache.entry("test", "a").write_text("{")
    assert remember("a") == {"bytes": 4}
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    assert remember("a") == {"bytes": 5}
    assert compilation_cache.entry("test", "a") is None


@pytest.mark.parametrize("name", ["XLA_FLAGS", "LIBTPU_INIT_ARGS"])
def test_other_flags_are_another_compiler(name, monkeypatch):
    before = compilation_cache.compiler()
    monkeypatch.setenv(name, "--xla_a_flag_of_this_test=1")
    assert compilation_cache.compiler() != before


def test_another_source_of_the_package_is_another_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "directory", lambda: tmp_path)
    before = compilation_cache.entry("test", "a")
    package = tmp_path / "package" / "core"
    package.mkdir(parents=True)
    (package / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(compilation_cache, "__file__", str(package / "module.py"))
    changed = compilation_cache.entry("test", "a")
    (package / "module.py").write_text("x = 2\n")
    assert len({before, changed, compilation_cache.entry("test", "a")}) == 3
