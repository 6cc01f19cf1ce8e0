"""Section 6.3: write a constituency tree as a sequence of symbols, and read it back.

The symbols are "(NP" where a constituent begins, ")NP" where it ends, and one for each
word between them. That is its part of speech, as in the authors' released code, or
`WORD`, as in Vinyals et al. (2015), "Grammar as a Foreign Language".
"""

import dataclasses
from collections.abc import Iterable, Sequence

from vaswani_jax.data import treebank

WORD = "XX"
TERMINALS = ("tag", "word")


def linearize(tree: treebank.Tree, terminals: str = "tag") -> list[str]:
    """Return the symbols of a clean tree, depth first.

    >>> [tree] = treebank.parse(["(S (NP (PRP I)) (VP (VBP am)))"], name="example")
    >>> " ".join(linearize(tree))
    '(S (NP PRP )NP (VP VBP )VP )S'
    >>> " ".join(linearize(tree, terminals="word"))
    '(S (NP XX )NP (VP XX )VP )S'

    Args:
        tree: One that `treebank.clean` returned.
        terminals: What stands for a word: its "tag", or `WORD` for each "word".

    Raises:
        ValueError: `terminals` is unknown.
    """
    if terminals not in TERMINALS:
        raise ValueError(f"terminals are one of {TERMINALS}, not {terminals!r}")
    symbols = []
    stack: list[treebank.Tree | str] = [tree]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            symbols.append(part)
        elif part.word:
            symbols.append(part.label if terminals == "tag" else WORD)
        else:
            symbols.append(f"({part.label}")
            stack.append(f"){part.label}")
            stack.extend(reversed(part.children))
    return symbols


@dataclasses.dataclass
class _Bracket:
    """An open bracket, with its contents so far."""

    label: str
    children: list[treebank.Tree] = dataclasses.field(default_factory=list)


def build_tree(symbols: Iterable[str], words: Sequence[str]) -> treebank.Tree:
    """Build the tree of symbols over words, repairing symbols that are no tree.

    The result has exactly these words, in their order, whatever the symbols are; from
    the symbols of a clean tree it is that tree. Otherwise:

    - A closing symbol closes the innermost open constituent, whatever its label;
      surplus ones are ignored.
    - Each word symbol takes the next word; surplus ones are ignored.
    - Leftover words get the tag XX. They join the innermost open constituent, or else
      the last one if no word follows it.
    - Open constituents are closed; those without a word are dropped.
    - Several constituents side by side, or bare words, get the label S around them.

    >>> print(build_tree(["(NP", "DT", ")VP", "(VP"], ["the", "man", "sleeps"]))
    (S (NP (DT the)) (VP (XX man) (XX sleeps)))

    Args:
        symbols: Any symbols of `linearize`, in any order.
        words: One word at least, without white space and brackets.

    Raises:
        ValueError: There are no words.
    """
    if not words:
        raise ValueError("a tree needs a word")
    top = _Bracket(treebank.SENTENCE)
    stack = [top]
    last = None  # the constituent that ended last at the top, if no word follows it
    num_words = 0
    for symbol in symbols:
        if symbol.startswith("("):
            stack.append(_Bracket(symbol[1:]))
        elif symbol.startswith(")"):
            if len(stack) > 1:
                last = _close(stack)
        elif num_words < len(words):
            stack[-1].children.append(treebank.Tree(symbol, word=words[num_words]))
            num_words += 1
            last = None
    if last and len(stack) == 1 and num_words < len(words):
        if last.children:
            top.children.pop()
        stack.append(last)
    stack[-1].children.extend(
        treebank.Tree(WORD, word=word) for word in words[num_words:]
    )
    while len(stack) > 1:
        _close(stack)
    if len(top.children) == 1 and top.children[0].children:
        return top.children[0]
    return treebank.Tree(top.label, tuple(top.children))


def _close(stack: list[_Bracket]) -> _Bracket:
    """Close the innermost bracket and return it; without a word it joins no tree."""
    bracket = stack.pop()
    if bracket.children:
        part = treebank.Tree(bracket.label, tuple(bracket.children))
        stack[-1].children.append(part)
    return bracket
