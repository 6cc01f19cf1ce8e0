"""The names that the package makes public are there, and cost nothing until used."""

import pytest

import vaswani_jax
from tests import interpreter


def test_public_names_are_there_and_documented() -> None:
    assert set(vaswani_jax.__all__) <= set(dir(vaswani_jax))
    for name in set(vaswani_jax.__all__) - {"__version__"}:
        assert getattr(vaswani_jax, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        vaswani_jax.lode  # noqa: B018


def test_importing_the_package_loads_no_jax() -> None:
    program = "import vaswani_jax, sys; print('jax' in sys.modules)"
    assert interpreter.output_of(program) == "False"
