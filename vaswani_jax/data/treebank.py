"""Section 6.3: read constituency trees in brackets as sequences of symbols.

The symbols are those of Vinyals et al. (2015), "Grammar as a Foreign Language", whom
section 6.3 follows: "(NP" where a constituent begins, ")NP" where it ends, and `WORD`
for each word between them.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from vaswani_jax.data import text_files

WORD = "XX"
# Brackets, labels and words, as the Penn Treebank writes them.
TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
# The label of an element that is not spoken.
EMPTY = "-NONE-"
# Labels of an outermost bracket that is no constituent.
ROOTS = {"", "ROOT", "TOP", "S1"}


class Tree(NamedTuple):
    """The constituents of a sentence, its words and their parts of speech."""

    symbols: list[str]
    words: list[str]
    tags: list[str]


@dataclasses.dataclass
class _Bracket:
    """An open bracket, with its contents so far."""

    line: int
    label: str = ""
    word: str = ""
    parts: int = 0
    start: int = -1  # index of its opening symbol, if it has one


def read(path: pathlib.Path) -> Iterator[Tree]:
    """Yield the trees of a file; a tree may take several lines.

    Empty elements (-NONE-) are left out, with constituents that have nothing else. A
    label with functions and indices (NP-SBJ-1) becomes its category. An outermost
    bracket that is no constituent (ROOT, TOP, S1, or without a label) is left out.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not UTF-8, or not of a tree. The message has the file,
            the line and the rule.
    """
    stack: list[_Bracket] = []
    tree = Tree([], [], [])
    for line, text in enumerate(text_files.read_lines(path), start=1):
        for token in TOKEN.findall(text):
            try:
                _read_token(token, line=line, stack=stack, tree=tree)
            except ValueError as error:
                raise ValueError(f"{path}, line {line}: {error}") from None
            if not stack and tree.words:
                yield tree
                tree = Tree([], [], [])
    if stack:
        raise ValueError(
            f"{path}, line {stack[0].line}: ({stack[0].label} is not closed by the end "
            "of the file"
        )


def _read_token(token: str, *, line: int, stack: list[_Bracket], tree: Tree) -> None:
    """Open or close a bracket, or set the label or the word of the innermost one."""
    bracket = stack[-1] if stack else None
    if token == "(":
        if bracket:
            _add_part(bracket, tree, is_outermost=len(stack) == 1)
        stack.append(_Bracket(line))
    elif bracket is None and token == ")":
        raise ValueError("a bracket is closed that was not opened")
    elif bracket is None:
        raise ValueError(f"{token[:40]!r} stands outside of brackets")
    elif token == ")":
        stack.pop()
        _close(bracket, tree)
    elif bracket.word or bracket.parts:
        raise ValueError(
            f"({bracket.label[:40]} has {token[:40]!r} beside another part"
        )
    elif bracket.label:
        bracket.word = token
    else:
        bracket.label = token


def _add_part(bracket: _Bracket, tree: Tree, *, is_outermost: bool) -> None:
    """Note that a bracket has another one in it; write its symbol before the first."""
    if bracket.word:
        raise ValueError(f"({bracket.label[:40]} has a bracket beside a word")
    if not (bracket.label or is_outermost):
        raise ValueError("a bracket within another has no label")
    if not bracket.parts and not (is_outermost and bracket.label in ROOTS):
        bracket.start = len(tree.symbols)
        tree.symbols.append(f"({category(bracket.label)}")
    bracket.parts += 1


def _close(bracket: _Bracket, tree: Tree) -> None:
    """Write the word of a bracket, or its closing symbol unless it is empty."""
    if not (bracket.word or bracket.parts):
        raise ValueError(f"({bracket.label[:40]} has neither a word nor parts")
    if bracket.word and bracket.label != EMPTY:
        tree.symbols.append(WORD)
        tree.words.append(bracket.word)
        tree.tags.append(bracket.label)
    elif bracket.start == len(tree.symbols) - 1 >= 0:
        tree.symbols.pop()
    elif bracket.start >= 0:
        tree.symbols.append(f"){category(bracket.label)}")


def category(label: str) -> str:
    """Return the category of a label, without its functions and indices.

    >>> [category(label) for label in ("NP-SBJ-1", "NP=2", "-LRB-", "PRP$")]
    ['NP', 'NP', '-LRB-', 'PRP$']
    """
    if label.startswith("-"):
        return label
    return re.split("[-=]", label, maxsplit=1)[0] or label
