"""One short run that tests of several programs look at."""

import pathlib

import pytest

from tests.programs import runs


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir after a short run on the copy task."""
    workdir = tmp_path_factory.mktemp("run") / "copy"
    result = runs.vaswani("main", workdir)
    assert result.returncode == 0, result.stderr.decode()
    assert b"step 8 of 8" in result.stderr
    # In the end the average is scored.
    assert b"valid: 10 lines in" in result.stdout
    assert b"test: 10 lines in" in result.stdout
    return workdir
