"""A short and a long run that tests of several programs look at."""

import pathlib

import pytest

from tests import workers
from tests.programs import long_runs, runs


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir after a short run on the copy task."""

    def train(workdir: pathlib.Path) -> None:
        messages = runs.finish(workdir)
        assert "step 8 of 8" in messages
        # In the end the average is scored.
        assert "valid: 10 lines in" in messages
        assert "test: 10 lines in" in messages

    return workers.copy_once(tmp_path_factory, "run/copy", train)


@pytest.fixture(scope="session")
def uninterrupted_run(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The workdir of a long run that nothing happened to."""
    return workers.copy_once(tmp_path_factory, "run/whole", long_runs.finish)


@pytest.fixture(scope="session")
def uninterrupted_end(uninterrupted_run: pathlib.Path) -> long_runs.Ended:
    """Return the end of that run."""
    return long_runs.ended(uninterrupted_run)
