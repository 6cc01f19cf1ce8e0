"""Find the runs of one directory that differ in their seeds alone.

`vaswani train --seeds=3 --workdir=W` trains in W/seed-1, W/seed-2 and W/seed-3.
"""

import pathlib
import re

NAME = re.compile(r"seed-(\d+)")
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


def check(*, seed: int, num_seeds: int) -> None:
    """Refuse a number of seeds that is out of range.

    Raises:
        ValueError: It is, or the last seed is.
    """
    if not 1 <= num_seeds <= MAX_SEEDS:
        raise ValueError(
            f"the number of seeds must be from 1 to {MAX_SEEDS}, got {num_seeds}; "
            "config.seed is the first of them"
        )
    if (last := seed + num_seeds - 1) > MAX_SEED:
        raise ValueError(f"config.seed must be at most {MAX_SEED}, the last is {last}")


def find(directory: pathlib.Path) -> dict[int, pathlib.Path]:
    """Return the runs of a directory of seeds by their seeds; none for a run."""
    if not directory.is_dir() or (directory / "config.json").exists():
        return {}
    runs = {
        int(match[1]): path
        for path in directory.iterdir()
        if (match := NAME.fullmatch(path.name)) and (path / "config.json").is_file()
    }
    return dict(sorted(runs.items()))


def refuse(directory: pathlib.Path) -> None:
    """Refuse a directory of seeds where one run is needed.

    Raises:
        ValueError: It is one. The message names its runs.
    """
    if reason := why_no_run(directory):
        raise ValueError(reason)


def why_no_run(directory: pathlib.Path) -> str:
    """Return why a directory of seeds is no run; "" for any other directory."""
    runs = list(map(str, find(directory).values()))
    if not runs:
        return ""
    more = [f"{len(runs) - MAX_NAMES} more"] * (len(runs) > MAX_NAMES)
    names = ", ".join([*runs[:MAX_NAMES], *more])
    hint = ""
    if len(runs) > 1:
        hint = f", or translate by an ensemble: {runs[0]} --ensemble={runs[1]},..."
    return (
        f"{directory} holds the runs of seeds: name one of {names}{hint} "
        "(--seeds trains them, compare takes them together)"
    )
