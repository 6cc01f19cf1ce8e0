"""Find the runs of one directory that differ in their seeds alone.

`vaswani train --seeds=3 --workdir=W` trains in W/seed-1, W/seed-2 and W/seed-3.
"""

import pathlib
import re

NAME = re.compile(r"seed-(\d+)")
# The files that distinguish a run from a directory of several runs.
RECORDS = ("config.json", "seed-*/config.json")
# `--seeds` is a number of seeds; a larger one is a seed by mistake.
MAX_SEEDS = 100
MAX_SEED = 2**32 - 1  # JAX's keys lose the rest.
MAX_NAMES = 5


def folder_name(seed: int) -> str:
    """Return the name of a seed's directory.

    >>> folder_name(2)
    'seed-2'
    """
    return f"seed-{seed}"


def check_range(*, seed: int, num_seeds: int) -> None:
    """Check that a number of seeds, and the last of them, are in range.

    Raises:
        ValueError: The number or the last seed is out of range.
    """
    if not 1 <= num_seeds <= MAX_SEEDS:
        raise ValueError(
            f"the number of seeds must be from 1 to {MAX_SEEDS}, got {num_seeds}; "
            "config.seed is the first of them"
        )
    if seed > (maximum := MAX_SEED - num_seeds + 1):
        raise ValueError(
            f"config.seed must be at most {maximum}, so that every seed fits into 32 "
            f"bits; got {seed}"
        )


def find_runs(directory: pathlib.Path) -> dict[int, pathlib.Path]:
    """Return the runs of a directory of seeds by their seeds; none for a run."""
    if not directory.is_dir() or (directory / "config.json").exists():
        return {}
    runs = {
        int(match[1]): path
        for path in directory.iterdir()
        if (match := NAME.fullmatch(path.name)) and (path / "config.json").is_file()
    }
    return dict(sorted(runs.items()))


def refuse_seeds_directory(directory: pathlib.Path) -> None:
    """Refuse a directory of seeds where one run is needed.

    Raises:
        ValueError: The directory holds runs of seeds. The message names them.
    """
    if reason := why_no_run(directory):
        raise ValueError(reason)


def why_no_run(directory: pathlib.Path) -> str:
    """Return why a directory of seeds is no run; "" for any other directory."""
    runs = list(map(str, find_runs(directory).values()))
    if not runs:
        return ""
    more = [f"one of {len(runs) - MAX_NAMES} more"] * (len(runs) > MAX_NAMES)
    *most, last = [*runs[:MAX_NAMES], *more]
    names = f"{', '.join(most)} or {last}" if most else last
    hint = ""
    if len(runs) > 1:
        hint = f"; or translate by an ensemble: {runs[0]} --ensemble={runs[1]},..."
    return (
        f"{directory} holds a run for each seed, but one run is needed: name {names}"
        f"{hint} (train --seeds and compare take all of them)"
    )
