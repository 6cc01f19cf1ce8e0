"""Runs of seeds are found by their names, and refused where one run is needed."""

import pathlib

import pytest

from vaswani_jax.core import seeds


def leave(directory: pathlib.Path, *names: str) -> pathlib.Path:
    """Make runs of these names in a directory."""
    for name in names:
        (directory / name).mkdir(parents=True)
        (directory / name / "config.json").write_text("{}")
    return directory


def test_runs_are_found_by_their_seeds_in_order(tmp_path: pathlib.Path) -> None:
    leave(tmp_path, "seed-10", "seed-9", "seed-x", "other", "my-seed-3")
    (tmp_path / "seed-2").mkdir()  # It has not begun.
    (tmp_path / "seed-4").write_text("")
    assert seeds.find_runs(tmp_path) == {
        9: tmp_path / "seed-9",
        10: tmp_path / "seed-10",
    }
    assert seeds.find_runs(tmp_path / "none") == {}


def test_a_single_run_holds_no_runs_of_seeds(tmp_path: pathlib.Path) -> None:
    leave(tmp_path, "seed-1", "seed-2")
    (tmp_path / "config.json").write_text("{}")
    assert seeds.find_runs(tmp_path) == {}
    seeds.refuse_seeds_directory(tmp_path)


def test_runs_of_seeds_are_refused_where_one_is_needed(
    tmp_path: pathlib.Path,
) -> None:
    leave(tmp_path, "seed-1", "seed-2")
    with pytest.raises(
        ValueError,
        match=f"^{tmp_path} holds a run for each seed, but one run is needed: name "
        f"{tmp_path}/seed-1 or {tmp_path}/seed-2; or translate by an ensemble: "
        f"{tmp_path}/seed-1 --ensemble={tmp_path}/seed-2,",
    ):
        seeds.refuse_seeds_directory(tmp_path)
    leave(tmp_path, *(f"seed-{number}" for number in range(3, 9)))
    with pytest.raises(ValueError, match=r"seed-5 or one of 3 more; or"):
        seeds.refuse_seeds_directory(tmp_path)
    single = leave(tmp_path / "one", "seed-7")
    with pytest.raises(ValueError, match=r"seed-7 \(train --seeds and compare"):
        seeds.refuse_seeds_directory(single)


def test_a_number_of_seeds_out_of_range_is_refused() -> None:
    seeds.check_range(seed=1, num_seeds=seeds.MAX_SEEDS)
    seeds.check_range(seed=seeds.MAX_SEED, num_seeds=1)
    for number in (0, -1, seeds.MAX_SEEDS + 1):
        with pytest.raises(ValueError, match=f"from 1 to 100, got {number}; "):
            seeds.check_range(seed=1, num_seeds=number)
    with pytest.raises(ValueError, match=r"at most 4294967294, .* got 4294967295"):
        seeds.check_range(seed=seeds.MAX_SEED, num_seeds=2)
