"""Section 6.3: constituency trees in brackets, as sequences of symbols.

A tree is kept flat, as Vinyals et al. (2015), "Grammar as a Foreign Language", whom
section 6.3 follows, write it for a sequence model: "(NP" where a constituent begins,
")NP" where it ends, and between them one symbol for each word, here `WORD`.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from vaswani_jax.data import text_files

WORD = "XX"
# What is between brackets, as the Penn Treebank writes it.
PARTS = re.compile(r"[()]|[^()\s]+", re.ASCII)
NOTHING = "-NONE-"
# What the outermost bracket is called in treebanks where it is no constituent.
ROOTS = {"", "ROOT", "TOP", "S1"}


class Tree(NamedTuple):
    """A sentence's constituents, its words and their parts of speech."""

    symbols: tuple[str, ...]
    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclasses.dataclass
class _Bracket:
    """One that is not closed yet, and what has come in it."""

    line: int
    label: str = ""
    word: str = ""
    parts: int = 0
    start: int = -1  # of its opening symbol, when it has parts


def read(path: pathlib.Path) -> Iterator[Tree]:
    """The trees of a file; one may go over several lines.

    Empty elements (-NONE-) go, and constituents that have nothing else; of a label
    with functions and indices (NP-SBJ-1) the category stays; an outermost bracket
    with the name of none (ROOT, TOP, S1, or no name) is not part of the tree.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not UTF-8, or not of a tree: the message has the file,
            the line and the rule.
    """
    stack: list[_Bracket] = []
    found = _Found([], [], [])
    for line, text in enumerate(text_files.read_lines(path), start=1):
        for part in PARTS.findall(text):
            try:
                _take(part, line, stack, found)
            except ValueError as error:
                raise ValueError(f"{path}, line {line}: {error}") from None
            if not stack and found.words:
                yield Tree(*map(tuple, found))
                found = _Found([], [], [])
    if stack:
        raise ValueError(
            f"{path}, line {stack[0].line}: ({stack[0].label} is not closed by the end "
            "of the file"
        )


class _Found(NamedTuple):
    """A `Tree` that grows."""

    symbols: list[str]
    words: list[str]
    tags: list[str]


def _take(part: str, line: int, stack: list[_Bracket], found: _Found) -> None:
    """Go on by a bracket, a label or a word."""
    here = stack[-1] if stack else None
    if part == "(":
        if here:
            _add_part(here, len(stack) == 1, found.symbols)
        stack.append(_Bracket(line))
    elif here is None:
        what = "a bracket is closed that was not opened"
        outside = f"{part[:40]!r} stands outside of brackets"
        raise ValueError(what if part == ")" else outside)
    elif part == ")":
        stack.pop()
        _close(here, found)
    elif here.word or here.parts:
        raise ValueError(f"({here.label[:40]} has {part[:40]!r} beside another part")
    elif here.label:
        here.word = part
    else:
        here.label = part


def _add_part(bracket: _Bracket, is_outermost: bool, symbols: list[str]) -> None:
    if bracket.word:
        raise ValueError(f"({bracket.label[:40]} has a bracket beside a word")
    if not (bracket.label or is_outermost):
        raise ValueError("a bracket within another has no label")
    if not bracket.parts and not (is_outermost and bracket.label in ROOTS):
        bracket.start = len(symbols)
        symbols.append(f"({category(bracket.label)}")
    bracket.parts += 1


def _close(bracket: _Bracket, found: _Found) -> None:
    if not (bracket.word or bracket.parts):
        raise ValueError(f"({bracket.label[:40]} has neither a word nor parts")
    if bracket.word and bracket.label != NOTHING:
        found.symbols.append(WORD)
        found.words.append(bracket.word)
        found.tags.append(bracket.label)
    elif bracket.start == len(found.symbols) - 1 >= 0:
        found.symbols.pop()
    elif bracket.start >= 0:
        found.symbols.append(f"){category(bracket.label)}")


def category(label: str) -> str:
    """NP of NP-SBJ-1 and of NP=2; -LRB- and the like are whole.

    >>> [category(label) for label in ("NP-SBJ-1", "NP=2", "-LRB-", "PRP$")]
    ['NP', 'NP', '-LRB-', 'PRP$']
    """
    if label.startswith("-"):
        return label
    return re.split("[-=]", label, maxsplit=1)[0] or label
