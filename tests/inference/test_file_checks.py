"""Files with a fault in their second block, and names that are no files."""

import dataclasses
import pathlib
import sys
from unittest import mock

import pytest

from tests import settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.inference import file_checks, line_io
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator

# Of a line in the second block.
NUMBER = line_io.BLOCK_LINES + 2


@pytest.fixture
def translator() -> Translator:
    """A model without parameters: whatever computes by it fails."""
    small = settings.small_settings()
    member = Member(small.model, Checkpoint(0, {}, {}))
    return Translator(small, settings.letters_vocabulary(), members=[member])


def write(path: pathlib.Path, line: str, last_line: str) -> str:
    path.write_text(f"{line}\n" * (NUMBER - 1) + f"{last_line}\n")
    return str(path)


def test_a_line_without_its_tag_is_found(tmp_path: pathlib.Path) -> None:
    several = settings.small_settings(**settings.TWO_TARGETS).data
    file = write(tmp_path / "lines", "<2de> a", "b")
    with pytest.raises(ValueError, match=rf"^line {NUMBER} must begin with a tag"):
        file_checks.check_tags(file, several)
    file_checks.check_tags(file, settings.small_settings().data)
    file_checks.check_tags("-", several)


def test_a_target_that_is_no_tree_is_found(tmp_path: pathlib.Path) -> None:
    source = write(tmp_path / "lines", "a", "a")
    target = write(tmp_path / "trees", "(S (X a))", "(S (X b))")
    data = settings.small_settings().data
    file_checks.check_trees(source, target, data)
    treebank = dataclasses.replace(data, source="treebank")
    with pytest.raises(ValueError, match=f"target, line {NUMBER}: word 1"):
        file_checks.check_trees(source, target, treebank)
    file_checks.check_trees("-", target, treebank)


def test_a_pair_that_is_too_long_is_found(
    tmp_path: pathlib.Path, translator: Translator
) -> None:
    # With the end mark, 16 tokens of a source and 21 of a target are allowed.
    short = write(tmp_path / "short", "a", "b " * 15)
    long_source = write(tmp_path / "source", "a", "b " * 16)
    long_target = write(tmp_path / "target", "a", "b " * 21)
    file_checks.check_lengths(short, long_source, translator)
    with pytest.raises(
        ValueError, match=f"^source, line {NUMBER}: 17 tokens are more than"
    ):
        file_checks.check_lengths(long_source, short, translator)
    with pytest.raises(
        ValueError, match=f"^target, line {NUMBER}: 22 tokens are more than"
    ):
        file_checks.check_lengths(short, long_target, translator)
    file_checks.check_lengths("-", long_target, translator)


def test_a_prefix_that_is_too_long_is_found(
    tmp_path: pathlib.Path, translator: Translator
) -> None:
    file = write(tmp_path / "prefixes", "a", "b " * 17)
    with pytest.raises(
        ValueError, match=rf"prefix, line {NUMBER}: 17 tokens are more than"
    ):
        file_checks.check_prefixes(file, translator)
    file_checks.check_prefixes(write(tmp_path / "short", "a", "b " * 16), translator)
    file_checks.check_prefixes("-", translator)


def test_a_constraint_that_cannot_be_met_is_found(
    tmp_path: pathlib.Path, translator: Translator
) -> None:
    lines = write(tmp_path / "lines", "a", "a")
    terms = write(tmp_path / "terms", "b\tc d", "\ta" * 9)
    with pytest.raises(ValueError, match=f"constraints, line {NUMBER}: .* tokens more"):
        file_checks.check_constraints(lines, terms, translator)
    few = write(tmp_path / "few", "b\tc d", "b")
    file_checks.check_constraints(lines, few, translator)
    file_checks.check_constraints("-", terms, translator)


def test_standard_input_is_not_read_although_a_file_has_its_name(
    tmp_path: pathlib.Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "-", "a", "b " * 30)
    monkeypatch.setattr(sys, "stdin", mock.Mock(spec=[]))
    several = settings.small_settings(**settings.TWO_TARGETS).data
    treebank = dataclasses.replace(several, source="treebank")
    file_checks.check_tags("-", several)
    file_checks.check_trees("-", "-", treebank)
    file_checks.check_lengths("-", "-", translator)
    file_checks.check_prefixes("-", translator)
    file_checks.check_constraints("-", "-", translator)
