"""The console blocks of the documentation, and what their commands print.

A block is fenced as `console`. A line that begins with `$ ` is a command (lines that
end in a backslash continue it), the others are its output, where `...` stands for
anything within a line and a line `...` for any lines. A comment right before the block
says more of it: `% slow`, `% not run: REASON`, or `% setup: COMMAND` for what readers
have and a test must make.
"""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted(
    path
    for folder in ("docs/tutorials", "docs/guides")
    for path in (ROOT / folder).glob("*.md")
)
_BLOCK = re.compile(
    r"(?P<comments>(?:^%[^\n]*\n\n?)*)^```console\n(?P<lines>.*?)^```$", re.M | re.S
)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes:
        page: The file.
        line: Where its block begins, from 1.
        text: What a shell executes.
        output: The lines that the page shows of it; none if it shows nothing.
        is_slow: Whether it takes minutes.
        reason: Why tests cannot run it; "" if they can.
    """

    page: pathlib.Path
    line: int
    text: str
    output: tuple[str, ...]
    is_slow: bool = False
    reason: str = ""


def read_commands(page: pathlib.Path) -> list[Command]:
    """Return the commands of a page in their order, those of its setup included."""
    text = page.read_text(encoding="utf-8")
    commands = []
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("lines"))
        comments = [
            comment.removeprefix("%").strip()
            for comment in block["comments"].splitlines()
            if comment
        ]
        reasons = [c for c in comments if c.startswith("not run:")]
        properties = {
            "is_slow": "slow" in comments,
            "reason": reasons[0].removeprefix("not run:").strip() if reasons else "",
        }
        for comment in comments:
            if comment.startswith("setup:"):
                setup = comment.removeprefix("setup:").strip()
                commands.append(Command(page, line, setup, (), **properties))
        for words, output in _split(block["lines"].splitlines()):
            commands.append(Command(page, line, words, tuple(output), **properties))
    return commands


def _split(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return each command with the lines after it."""
    commands: list[tuple[str, list[str]]] = []
    continues = False
    for line in lines:
        if continues:
            command, output = commands[-1]
            commands[-1] = (f"{command}\n{line}", output)
        elif line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        else:
            commands[-1][1].append(line)
            continue
        continues = line.endswith("\\")
    return commands


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
