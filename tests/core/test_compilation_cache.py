"""Compiled programs are kept on disk, and read from there."""

import jax
import pytest

from tests import interpreter
from vaswani_jax.core import compilation_cache

PROGRAM = """
import pathlib, sys
import jax, jax.numpy as jnp
from vaswani_jax.core import compilation_cache, parallel
assert compilation_cache.directory() is None
compilation_cache.enable(pathlib.Path(sys.argv[1]))
assert compilation_cache.directory() == pathlib.Path(sys.argv[1])
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


def test_a_kept_program_is_found_and_may_be_deleted(tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")

    def sum_and_cache_hit():
        return interpreter.output_of(PROGRAM, str(tmp_path / "compiled")).split()

    assert sum_and_cache_hit() == ["24.0", "False"]
    assert sum_and_cache_hit() == ["24.0", "True"]
    for path in (tmp_path / "compiled").iterdir():
        path.write_bytes(b"damaged")
    assert sum_and_cache_hit()[0] == "24.0"


def test_a_directory_for_all_runs_takes_precedence(tmp_path, monkeypatch):
    directory = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "all"))
    try:
        compilation_cache.enable(tmp_path / "run")
        assert compilation_cache.directory() == tmp_path / "all"
    finally:
        jax.config.update("jax_compilation_cache_dir", directory)


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
