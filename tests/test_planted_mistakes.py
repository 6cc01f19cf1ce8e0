"""`tests.benchmarks.planted_mistakes` finds the places of its mistakes."""

import pathlib
import shutil

import pytest

from tests.benchmarks import planted_mistakes

ROOT = planted_mistakes.ROOT


def test_at_least_42_mistakes_have_different_names():
    names = {mistake.name for mistake in planted_mistakes.MISTAKES}
    assert len(names) == len(planted_mistakes.MISTAKES) >= 42


@pytest.mark.parametrize(
    "mistake", planted_mistakes.MISTAKES, ids=lambda mistake: mistake.name
)
def test_a_mistake_has_its_place_and_a_proof(mistake):
    path, start, end = planted_mistakes.find_location(mistake.location, ROOT)
    pattern = planted_mistakes.pattern_of(mistake.sound)
    assert len(list(pattern.finditer(path.read_text(), start, end))) == 1
    assert mistake.sound != mistake.mistaken
    file, _, test = mistake.proof.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text() or not test


def test_a_renamed_variable_and_another_line_break_hide_no_place():
    pattern = planted_mistakes.pattern_of("$a = ($b + 1) / $a")
    assert pattern.search("x = (\n    total.y[0] + 1\n) / x")
    assert not pattern.search("x = (y + 1) / z")


@pytest.fixture
def repository(tmp_path: pathlib.Path) -> pathlib.Path:
    """Copy what the doctest of the schedule needs of the repository."""
    shutil.copytree(
        ROOT / "vaswani_jax",
        tmp_path / "vaswani_jax",
        ignore=lambda directory, names: [
            n for n in names if pathlib.Path(n).suffix not in ("", ".py")
        ],
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_a_planted_mistake_is_told_from_none(repository):
    proof = "vaswani_jax/training/optimizer.py"
    [mistake] = [m for m in planted_mistakes.MISTAKES if m.proof == proof]
    planted_mistakes.plant(mistake, repository)
    failed = planted_mistakes.red(proof, repository)
    assert failed is not None and failed.startswith(proof)
    # What cannot be planted, or cannot run, is no proof.
    with pytest.raises(ValueError, match="0 times"):
        planted_mistakes.plant(mistake, repository)
    with pytest.raises(RuntimeError, match=r"nothing\.py"):
        planted_mistakes.red("tests/nothing.py", repository)
