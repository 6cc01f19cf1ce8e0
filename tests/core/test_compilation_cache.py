"""Where compiled programs are kept."""

import subprocess
import sys

import jax

from vaswani_jax.core import compilation_cache

PROGRAM = """
import pathlib, sys
import jax, jax.numpy as jnp
from vaswani_jax.core import compiled, parallel
assert compiled.directory() is None
compiled.keep(pathlib.Path(sys.argv[1]))
assert compiled.directory() == pathlib.Path(sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None
)
run = parallel.over_devices(
    lambda state, rows: state + parallel.sum_over_devices(rows.sum()),
    donate_state=True,
)
rows = parallel.split_rows(jnp.ones((8, 3)), multiple=1)
print(float(run(parallel.replicate(jnp.zeros(())), rows)), bool(hits))
"""


def test_a_kept_program_is_found_and_may_be_deleted(tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")

    def result():
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "compiled")]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        return found.stdout.split()

    assert result() == ["24.0", "False"]
    assert result() == ["24.0", "True"]
    for path in (tmp_path / "compiled").iterdir():
        path.write_bytes(b"damaged")
    assert result()[0] == "24.0"


def test_a_place_for_all_runs_comes_first(tmp_path, monkeypatch):
    everywhere = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "all"))
    try:
        compilation_cache.keep(tmp_path / "one")
        assert compilation_cache.directory() == tmp_path / "all"
    finally:
        jax.config.update("jax_compilation_cache_dir", everywhere)
