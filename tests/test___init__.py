"""The names that the package makes public are there, and cost nothing until used."""

import pathlib
import typing

import pytest

import vaswani_jax
from tests import interpreter

ROOT = pathlib.Path(__file__).parents[1]


def test_public_names_are_there_and_documented() -> None:
    assert set(vaswani_jax.__all__) <= set(dir(vaswani_jax))
    for name in set(vaswani_jax.__all__) - {"__version__"}:
        assert getattr(vaswani_jax, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        vaswani_jax.lode  # noqa: B018


@pytest.mark.parametrize(
    "owner", ["TrainingResult", "Evaluation", "Member", "Checkpoint", "Hypothesis"]
)
def test_the_types_that_public_fields_have_are_public(owner: str) -> None:
    public = {getattr(vaswani_jax, name) for name in vaswani_jax.__all__}
    for field, kind in typing.get_type_hints(getattr(vaswani_jax, owner)).items():
        for part in (kind, *typing.get_args(kind)):
            module = getattr(part, "__module__", "")
            # The sections of a configuration are in the reference of settings.
            is_ours = module.startswith("vaswani_jax") and "config" not in module
            assert part in public or not is_ours, f"{owner}.{field} is a {part}"


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    for name in set(vaswani_jax.__all__) - {"__version__"}:
        assert f":: vaswani_jax.{name}\n" in page


def test_importing_the_package_loads_no_jax() -> None:
    program = "import vaswani_jax, sys; print('jax' in sys.modules)"
    assert interpreter.output_of(program) == "False"
