"""Section 6.3: read constituency trees in brackets, and clean them for parsing."""

import bisect
import dataclasses
import pathlib
import re
from collections.abc import Iterable, Iterator

from vaswani_jax.data import text_files

# Brackets, labels and words, as the Penn Treebank writes them.
TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
# The label of empty elements, such as traces.
EMPTY = "-NONE-"
# Labels of an outermost bracket that is no constituent.
ROOTS = {"", "ROOT", "TOP", "S1"}
# The most words in each class of sentence lengths; the last class has no limit.
_LENGTH_CLASS_LIMITS = (5, 10, 15, 20, 30)
# The label around a sentence whose tree has no constituent around all its children.
SENTENCE = "S"
# EVALB takes a particle (PRT) and an adverb phrase (ADVP) for the same.
PARTICLES = {"PRT|ADVP", "ADVP|PRT"}


@dataclasses.dataclass(frozen=True, eq=False, repr=False, slots=True)
class Tree:
    """A constituent with its children, or a pre-terminal: a tag with its word.

    Its string is one line of brackets, and trees with the same string are equal.

    >>> the, man = Tree("DT", word="the"), Tree("NN", word="man")
    >>> print(Tree("NP", (the, man)))
    (NP (DT the) (NN man))

    Attributes:
        label: Its syntactic category, or the part of speech of its word.
        children: Those of a constituent, one at least.
        word: The word of a pre-terminal.
    """

    label: str
    children: "tuple[Tree, ...]" = ()
    word: str = ""

    def __post_init__(self) -> None:
        if bool(self.children) == bool(self.word):
            raise ValueError(f"({self.label} needs either a word or children")

    def leaves(self) -> "list[Tree]":
        """Return the pre-terminals in the order of the words."""
        leaves = []
        stack = [self]
        while stack:
            tree = stack.pop()
            if tree.word:
                leaves.append(tree)
            stack.extend(reversed(tree.children))
        return leaves

    # Without recursion, as all here: the depth of a tree has no limit.
    def __str__(self) -> str:
        parts = []
        stack: list[Tree | str] = [self]
        while stack:
            tree = stack.pop()
            if isinstance(tree, str):
                parts.append(tree)
            elif tree.word:
                parts.append(f" ({tree.label} {tree.word})")
            else:
                parts.append(f" ({tree.label}")
                stack.append(")")
                stack.extend(reversed(tree.children))
        return "".join(parts)[1:]

    def __repr__(self) -> str:
        return f"<Tree {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


@dataclasses.dataclass
class _Bracket:
    """An open bracket, with its contents so far."""

    line: int
    label: str = ""
    word: str = ""
    children: list[Tree] = dataclasses.field(default_factory=list)


class TreeError(ValueError):
    """Raised when a line is not part of a well-formed tree.

    Attributes:
        line: Its number.
        reason: The rule that it breaks.
    """

    def __init__(self, name: str, *, line: int, reason: str) -> None:
        """Take the name of the text for the message."""
        super().__init__(f"{name}, line {line}: {reason}")
        self.line, self.reason = line, reason


class WordMismatchError(ValueError):
    """Raised when trees that must have the same words differ.

    Attributes:
        number: The number of the tree, from 1.
        reason: The first difference.
    """

    def __init__(self, number: int, reason: str) -> None:
        """Take the number and the difference for the message."""
        super().__init__(f"tree {number}: {reason}")
        self.number, self.reason = number, reason


def read(path: pathlib.Path) -> Iterator[Tree]:
    """Yield the trees of a file, plain or gzipped, as `parse` does.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not UTF-8 or not of a tree, or the file has no tree. The
            message has the file, the line and the rule.
    """
    return (tree for _, tree in read_with_lines(path))


def read_with_lines(path: pathlib.Path) -> Iterator[tuple[int, Tree]]:
    """Yield what `read` does, each tree after the number of the line it begins on.

    Raises:
        FileNotFoundError, ValueError: As `read`.
    """
    is_empty = True
    for line, tree in parse_with_lines(text_files.read_lines(path), name=str(path)):
        is_empty = False
        yield line, tree
    if is_empty:
        raise ValueError(f"{path} has no tree")


def parse(
    lines: Iterable[str], *, name: str, first_line: int = 1, needs_labels: bool = True
) -> Iterator[Tree]:
    """Yield the trees of lines; a line may have several, a tree may take several lines.

    Trees stay as they are written: with empty elements, function tags of labels, and
    the outermost bracket, whose label may be the empty string. `clean` removes these.

    Args:
        lines: Text in brackets.
        name: Name of the text, for errors.
        first_line: The number of the first line, for errors.
        needs_labels: Whether a bracket within another must have a label.

    Raises:
        TreeError: A line is not part of a well-formed tree. The message has the name,
            the line and the rule.
    """
    trees = parse_with_lines(
        lines, name=name, first_line=first_line, needs_labels=needs_labels
    )
    return (tree for _, tree in trees)


def parse_with_lines(
    lines: Iterable[str], *, name: str, first_line: int = 1, needs_labels: bool = True
) -> Iterator[tuple[int, Tree]]:
    """Yield what `parse` does, each tree after the number of the line it begins on.

    Raises:
        TreeError: As `parse`.
    """
    stack: list[_Bracket] = []
    for line, text in enumerate(lines, start=first_line):
        for token in TOKEN.findall(text):
            begin = stack[0].line if stack else line
            try:
                tree = _read_token(
                    token, line=line, stack=stack, needs_labels=needs_labels
                )
            except ValueError as error:
                raise TreeError(name, line=line, reason=str(error)) from None
            if tree:
                yield begin, tree
    if stack:
        reason = f"({stack[0].label} is not closed by the end of the file"
        raise TreeError(name, line=stack[0].line, reason=reason)


def _read_token(
    token: str, *, line: int, stack: list[_Bracket], needs_labels: bool
) -> Tree | None:
    """Take a token into the innermost bracket; return the tree that it completes."""
    bracket = stack[-1] if stack else None
    if token == "(":
        if bracket:
            needs_label = needs_labels and len(stack) > 1
            _check_has_parts(bracket, needs_label=needs_label)
        stack.append(_Bracket(line))
    elif bracket is None and token == ")":
        raise ValueError("unmatched closing bracket")
    elif bracket is None:
        raise ValueError(f"{token[:40]!r} is outside all brackets")
    elif token == ")":
        return _close(stack)
    elif bracket.word or bracket.children:
        raise ValueError(
            f"({bracket.label[:40]} already has a word or children, but {token[:40]!r} "
            "follows; a bracket has one word, or child brackets"
        )
    elif bracket.label:
        bracket.word = token
    else:
        bracket.label = token
    return None


def _check_has_parts(bracket: _Bracket, *, needs_label: bool) -> None:
    """Raise an error if a bracket may not have another one in it."""
    if bracket.word:
        raise ValueError(
            f"({bracket.label[:40]} has a word and a bracket; a bracket has one "
            "word, or child brackets"
        )
    if needs_label and not bracket.label:
        raise ValueError("a bracket within another has no label")


def _close(stack: list[_Bracket]) -> Tree | None:
    """Close the innermost bracket; return its tree if it was the outermost, too."""
    bracket = stack.pop()
    if not (bracket.word or bracket.children):
        raise ValueError(f"({bracket.label[:40]} has neither a word nor children")
    tree = Tree(bracket.label, tuple(bracket.children), bracket.word)
    if not stack:
        return tree
    stack[-1].children.append(tree)
    return None


def clean(tree: Tree) -> Tree | None:
    """Return the constituents of a tree, or None if it has no word.

    Empty elements (-NONE-) are left out, with constituents that have nothing else. A
    label with function tags and indices (NP-SBJ-1) becomes its category, PRT|ADVP
    becomes PRT; tags of words stay as they are. Outermost brackets that are no
    constituents (ROOT, TOP, S1, or without a label) are left out; if there is no
    constituent around all that they have, it gets the label S.

    >>> lines = ["( (NP-SBJ (NN John)) (VP (VBZ sleeps) (NP (-NONE- *))))"]
    >>> print(clean(next(parse(lines, name="example"))))
    (S (NP (NN John)) (VP (VBZ sleeps)))
    """
    parts = [tree]
    while any(is_root(part) for part in parts):
        parts = [
            child
            for part in parts
            for child in (part.children if is_root(part) else [part])
        ]
    parts = _clean_parts(parts)
    if len(parts) == 1 and parts[0].children:
        return parts[0]
    return Tree(SENTENCE, tuple(parts)) if parts else None


def is_root(tree: Tree) -> bool:
    """Return whether an outermost bracket is no constituent."""
    return bool(tree.children) and tree.label in ROOTS


def _clean_parts(trees: Iterable[Tree]) -> list[Tree]:
    """Return the trees without empty elements, with categories as labels."""
    top: list[Tree] = []
    # The trees to read in reverse, each with the list for its result; or a list of
    # results that are complete, with the label of their constituent.
    stack: list[tuple[Tree | str, list[Tree], list[Tree]]]
    stack = [(tree, top, []) for tree in reversed(list(trees))]
    while stack:
        tree, results, children = stack.pop()
        if isinstance(tree, str):
            if children:
                results.append(Tree(tree, tuple(children)))
        elif not tree.word:
            stack.append((category(tree.label), results, children))
            stack.extend((child, children, []) for child in reversed(tree.children))
        elif tree.label != EMPTY:
            results.append(tree)
    return top


def category(label: str) -> str:
    """Return the category of a constituent's label, without function tags and indices.

    >>> labels = ("NP-SBJ-1", "NP=2", "-LRB-", "PRT|ADVP")
    >>> [category(label) for label in labels]
    ['NP', 'NP', '-LRB-', 'PRT']
    """
    if label.startswith("-"):
        return label
    label = re.split("[-=]", label, maxsplit=1)[0] or label
    return "PRT" if label in PARTICLES else label


def length_class(num_words: int) -> str:
    """Return the name of the length class of a sentence.

    >>> length_class(5), length_class(21), length_class(31)
    ('1-5', '21-30', '31+')
    """
    index = bisect.bisect_left(_LENGTH_CLASS_LIMITS, num_words)
    first = _LENGTH_CLASS_LIMITS[index - 1] + 1 if index else 1
    last = _LENGTH_CLASS_LIMITS[index : index + 1]
    return f"{first}-{last[0]}" if last else f"{first}+"
