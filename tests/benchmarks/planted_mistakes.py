"""Check that the proofs can fail: plant one mistake at a time in a copy.

    python -m tests.benchmarks.planted_mistakes            # all: about 2 hours
    python -m tests.benchmarks.planted_mistakes epsilon    # whose name has this word

Every proof must pass on the sound code first; then each mistake must make its proof
fail. Prints a table, and exits with 1 if a mistake went unnoticed. Needs the oracles:
`make oracles`.
"""

import ast
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tests.benchmarks.mistakes import MISTAKES
from tests.benchmarks.mistakes.mistake import Mistake

ROOT = pathlib.Path(__file__).parents[2]


def find_location(location: str, root: pathlib.Path) -> tuple[pathlib.Path, int, int]:
    """Return the file of a location, and where its code begins and ends in the text.

    Args:
        location: The dotted end of a module, or of a function, class or constant in it:
            "paper.layers", "Residual.__call__", "table3.ROWS".
        root: The repository, or a copy.

    Raises:
        ValueError: No code has the name, or more than one.
    """
    matches = []
    for room in ("vaswani_jax", "configs"):
        for path in sorted((root / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            module = ".".join(path.relative_to(root).with_suffix("").parts)
            spans = {module: (0, len(text))}
            if location.rpartition(".")[2] in text:
                spans |= _definitions(text, module)
            matches += [
                (path, *span)
                for name, span in spans.items()
                if f".{name}".endswith(f".{location}")
            ]
    if len(matches) != 1:
        files = [str(path.relative_to(root)) for path, _, _ in matches]
        raise ValueError(f"{location!r} names {len(matches)} places, not one: {files}")
    return matches[0]


@functools.cache
def _definitions(text: str, module: str) -> dict[str, tuple[int, int]]:
    """Return where each function, class and constant of a module lies in its text."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans: dict[str, tuple[int, int]] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                names = [child.name]
            elif isinstance(child, ast.Assign):
                names = [t.id for t in child.targets if isinstance(t, ast.Name)]
            elif isinstance(child, ast.AnnAssign) and isinstance(
                child.target, ast.Name
            ):
                names = [child.target.id]
            else:
                continue
            for name in names:
                span = starts[child.lineno - 1], starts[child.end_lineno or 0]
                spans[f"{prefix}.{name}"] = span
            if isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}.{child.name}")

    visit(ast.parse(text), module)
    return spans


def pattern_of(sound: str) -> re.Pattern[str]:
    """Return the expression that finds code: any spacing, any identifier for $name."""
    parts = []
    names: set[str] = set()
    for token in re.findall(r"\$?\w+|\S", sound):
        if not token.startswith("$"):
            parts.append(re.escape(token))
        elif token in names:
            parts.append(f"(?P={token[1:]})")
        else:
            names.add(token)
            parts.append(rf"(?P<{token[1:]}>\b[A-Za-z_][\w.]*(?:\[[^\]]*\])?)")
    return re.compile(r"\s*".join(parts))


def plant(mistake: Mistake, root: pathlib.Path) -> pathlib.Path:
    """Write the mistake into the copy of the repository at `root`.

    Returns:
        The file that has it now.

    Raises:
        ValueError: The place or the sound code is not there exactly once.
    """
    path, start, end = find_location(mistake.location, root)
    text = path.read_text(encoding="utf-8")
    matches = list(pattern_of(mistake.sound).finditer(text, start, end))
    if len(matches) != 1:
        raise ValueError(
            f"{mistake.location} has {mistake.sound!r} {len(matches)} times, not once"
        )
    [match] = matches
    mistaken = re.sub(r"\$(\w+)", lambda name: match[name[1]], mistake.mistaken)
    path.write_text(text[: match.start()] + mistaken + text[match.end() :])
    return path


def red(proof: str, root: pathlib.Path) -> str | None:
    """Return the first test of a proof that fails in the copy; None if all pass.

    Raises:
        RuntimeError: Nothing ran, or pytest could not.
    """
    command = ["-m", "pytest", "-n0", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
    completed = subprocess.run(
        [sys.executable, *command, *proof.split()],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", completed.stdout, re.MULTILINE)
    if completed.returncode == 1 and failed:
        return failed[1]
    if completed.returncode == 0 and " passed" in completed.stdout:
        return None
    raise RuntimeError(f"{proof}: {completed.stdout}{completed.stderr}")


def main() -> None:
    """Plant each mistake, and print which test noticed it."""
    words = sys.argv[1:]
    mistakes = [m for m in MISTAKES if all(word in m.name for word in words)]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name, "copy")
        hidden = shutil.ignore_patterns(".*", "runs", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, root, ignore=hidden)
        for proof in dict.fromkeys(mistake.proof for mistake in mistakes):
            if failed := red(proof, root):
                raise SystemExit(f"{failed} fails without any mistake")
        print("| mistake | in | noticed by |\n| --- | --- | --- |", flush=True)
        for mistake in mistakes:
            path, _, _ = find_location(mistake.location, root)
            sound = path.read_bytes()
            plant(mistake, root)
            failed = red(mistake.proof, root)
            path.write_bytes(sound)
            unnoticed += failed is None
            cells = (mistake.name, f"`{mistake.location}`", f"`{failed}`")
            print(f"| {' | '.join(cells)} |", flush=True)
    if unnoticed:
        raise SystemExit(f"{unnoticed} of {len(mistakes)} went unnoticed")


if __name__ == "__main__":
    main()
