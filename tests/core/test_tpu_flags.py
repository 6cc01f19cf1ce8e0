"""Flags for the TPUs' compiler, only where it is known to know them."""

from importlib import metadata

import pytest

from vaswani_jax.core import tpu_flags


@pytest.mark.parametrize(
    ("version", "variables", "expected"),
    [
        ("0.0.42.1", {}, tpu_flags.OVERLAP),
        ("0.0.42.1", {"LIBTPU_INIT_ARGS": "--mine"}, "--mine"),
        ("0.0.42.1", {"LIBTPU_INIT_ARGS": ""}, ""),
        ("0.0.43", {}, None),
        ("0.0.4", {}, None),
    ],
)
def test_only_the_libtpu_that_knows_the_flags_gets_them(
    version: str,
    variables: dict[str, str],
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: version)
    tpu_flags.set_defaults(variables)
    assert variables.get("LIBTPU_INIT_ARGS") == expected


def test_without_libtpu_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    variables: dict[str, str] = {}
    tpu_flags.set_defaults(variables)
    assert variables == {}
