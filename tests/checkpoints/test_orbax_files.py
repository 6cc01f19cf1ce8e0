"""Orbax's files have trees of arrays and records, each read by its name."""

import pathlib

import numpy as np

from vaswani_jax.checkpoints import orbax_files


def test_only_what_is_named_is_read(tmp_path: pathlib.Path) -> None:
    trees = {name: {"x": np.float32([n])} for n, name in enumerate("ab")}
    orbax_files.write(tmp_path / "1", trees=trees, records={"record": {"step": 1}})
    content = orbax_files.read(tmp_path / "1", trees=["b"], records=["record"])
    assert content.keys() == {"b", "record"}
    assert content["record"] == {"step": 1}
    np.testing.assert_array_equal(content["b"]["x"], trees["b"]["x"])
