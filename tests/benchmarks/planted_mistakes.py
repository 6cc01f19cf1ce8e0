"""Whether the proofs can fail: mistakes planted one at a time, each in a copy.

    python -m tests.benchmarks.planted_mistakes            # all: about 2 hours
    python -m tests.benchmarks.planted_mistakes epsilon    # whose name has this word

First every proof must be green as things are; then each mistake must make its own red.
Prints a table, and exits with 1 if a mistake went unnoticed. `make oracles` first.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tests.benchmarks import core_mistakes, outer_mistakes
from tests.benchmarks.mistakes import Mistake

MISTAKES = core_mistakes.MISTAKES + outer_mistakes.MISTAKES
ROOT = pathlib.Path(__file__).parents[2]


def plant(mistake: Mistake, root: pathlib.Path) -> None:
    """Write the mistake into the copy of the repository at `root`.

    Raises:
        ValueError: Its text is not there exactly once.
    """
    path = root / mistake.file
    text = path.read_text()
    if (times := text.count(mistake.old)) != 1:
        raise ValueError(f"{mistake.file} has {mistake.old!r} {times} times, not once")
    path.write_text(text.replace(mistake.old, mistake.new))


def red(proof: str, root: pathlib.Path) -> str | None:
    """The first test of a proof that fails in the copy at `root`; None for none.

    Raises:
        RuntimeError: Nothing ran, or pytest could not.
    """
    command = ["-m", "pytest", "-n0", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [sys.executable, *command, *proof.split()],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", found.stdout, re.MULTILINE)
    if found.returncode == 1 and failed:
        return failed[1]
    if found.returncode == 0 and " passed" in found.stdout:
        return None
    raise RuntimeError(f"{proof}: {found.stdout}{found.stderr}")


def main() -> None:
    """Plant each, and print what noticed it."""
    words = sys.argv[1:]
    chosen = [m for m in MISTAKES if all(word in m.name for word in words)]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name, "copy")
        hidden = shutil.ignore_patterns(".*", "runs", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, root, ignore=hidden)
        for proof in dict.fromkeys(mistake.proof for mistake in chosen):
            if failed := red(proof, root):
                raise SystemExit(f"{failed} fails without any mistake")
        print("| mistake | in | noticed by |\n| --- | --- | --- |", flush=True)
        for mistake in chosen:
            path = root / mistake.file
            sound = path.read_bytes()
            plant(mistake, root)
            failed = red(mistake.proof, root)
            path.write_bytes(sound)
            unnoticed += failed is None
            cells = (mistake.name, f"`{mistake.file}`", f"`{failed}`")
            print(f"| {' | '.join(cells)} |", flush=True)
    if unnoticed:
        raise SystemExit(f"{unnoticed} of {len(chosen)} went unnoticed")


if __name__ == "__main__":
    main()
