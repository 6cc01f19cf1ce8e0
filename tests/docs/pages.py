"""The blocks of the documentation that run, and what their commands print.

In a block that is fenced as `console`, a line that begins with `$ ` is a command (lines
that end in a backslash continue it, and so do those from <<'END' to END). The others
are its output, where `...` stands for anything within a line and a line `...` for any
lines. A `python` block is one command that shows no output.

Comments right before a block say more of it, one a line:

    <!-- not run: REASON -->
    <!-- slow -->
    <!-- setup: COMMAND -->      for what readers have and a test must make
    <!-- needs: PACKAGE ... -->  which must be installed
    <!-- measured: figures -->   of the whole run; a short one prints other figures
    <!-- measured: output -->    of the whole run; a short one prints something else

docs/results/demo.json and multilingual.json hold what the whole runs print. The cells
of a notebook are one command.
"""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/install.md",
    *sorted(
        path
        for folder in ("docs/tutorials", "docs/guides")
        for path in (ROOT / folder).glob("*.md")
    ),
]
_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--[^\n]*-->\n\n?)*)"
    r"^```(?P<language>console|python)\n(?P<lines>.*?)^```$",
    re.M | re.S,
)
_CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```$", re.M | re.S)
# 0:00:00, 1,767,936, 5.52e-04, and the list 700, 750, 800; in a column, the spaces that
# align it.
_FIGURES = re.compile(r"(?:(?<= {2}) +)?\d(?:[\d.,:e+-]*\d)?(?:, \d+)*")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes:
        page: The file.
        line: Where its block begins, from 1.
        text: What a shell executes.
        output: The lines that the page shows of it; none if it shows nothing.
        is_slow: Whether it takes minutes.
        measured: "figures" or "output" if these are the whole run's, else "".
        reason: Why tests cannot run it; "" if they can.
        packages: What must be installed.
    """

    page: pathlib.Path
    line: int
    text: str
    output: tuple[str, ...]
    is_slow: bool = False
    measured: str = ""
    reason: str = ""
    packages: tuple[str, ...] = ()


def read_commands(page: pathlib.Path) -> list[Command]:
    """Return the commands of a page in their order, those of its setup included."""
    text = page.read_text(encoding="utf-8")
    commands = []
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("lines"))
        comments = list(map(_strip_marks, block["comments"].split("\n")))
        properties = {
            "is_slow": "slow" in comments,
            "measured": "".join(_values("measured", comments)),
            "reason": "".join(_values("not run", comments)),
            "packages": tuple(" ".join(_values("needs", comments)).split()),
        }
        for setup in _values("setup", comments):
            commands.append(Command(page, line, setup, (), **properties))
        if block["language"] == "python":
            script = _script(block["lines"])
            commands.append(Command(page, line, script, (), **properties))
            continue
        for words, output in _split(block["lines"].splitlines()):
            commands.append(Command(page, line, words, tuple(output), **properties))
    if cells := _CELL.findall(text):
        commands.append(Command(page, 1, _script("".join(cells)), ()))
    return commands


def _script(lines: str) -> str:
    """Return the shell's command that executes lines of Python."""
    return f"python - <<'END'\n{lines}END"


def _strip_marks(comment: str) -> str:
    """Return what a comment says.

    >>> _strip_marks("<!-- not run: reason -->")
    'not run: reason'
    """
    return comment.removeprefix("<!--").removesuffix("-->").strip()


def _values(key: str, comments: list[str]) -> list[str]:
    """Return what the comments `KEY: VALUE` have as values."""
    pairs = [comment.partition(": ") for comment in comments]
    return [value for name, _, value in pairs if name == key]


def _split(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return each command with the lines after it."""
    commands: list[tuple[str, list[str]]] = []
    continues = is_document = False
    for line in lines:
        if continues or is_document:
            command, output = commands[-1]
            commands[-1] = (f"{command}\n{line}", output)
        elif line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        else:
            commands[-1][1].append(line)
            continue
        continues = line.endswith("\\")
        is_document = line.endswith("<<'END'") or (is_document and line != "END")
    return commands


def without_figures(output: tuple[str, ...]) -> tuple[str, ...]:
    """Return lines that match those of a run with other figures.

    >>> without_figures(("step 800 of 800  lr 5.52e-04", "mean of [700, 750, 800]"))
    ('step ... of ...  lr ...', 'mean of [...]')
    >>> without_figures(("ter      0.35  TER",))
    ('ter  ...  TER',)
    """
    return tuple(_FIGURES.sub("...", line) for line in output)


def matches(expected: tuple[str, ...], printed: str) -> bool:
    r"""Return whether lines are as a page shows them.

    >>> matches(("step 4 of ...", "...", "end"), "step 4 of 8\na\nb\nend")
    True
    >>> matches(("step 4 of 9",), "step 4 of 8")
    False
    """
    patterns = []
    for line in expected:
        if line.strip() == "...":
            patterns.append(r"(?:[^\n]*\n)*?")
        else:
            parts = map(re.escape, line.rstrip().split("..."))
            patterns.append(r"[^\n]*".join(parts) + r"[ \t]*\n")
    return re.fullmatch("".join(patterns), f"{printed.rstrip()}\n") is not None
