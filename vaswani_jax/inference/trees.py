"""Section 6.3: turn the symbols that a search returns into a tree over the words."""

from collections.abc import Iterable, Iterator, Sequence

from vaswani_jax.core import types
from vaswani_jax.data import linearization, treebank, word_subwords
from vaswani_jax.data.tokenizer import SPECIAL_SPELLINGS
from vaswani_jax.data.vocabulary import Vocabulary, clean_lines

# The source ids and the target ids of a line, or of a piece of it.
PieceIds = tuple[Sequence[int], Sequence[int]]
# The label around a whole tree, as parsers write it; it is no constituent.
TOP = "TOP"
UNKNOWN = SPECIAL_SPELLINGS[types.UNK_ID]


def format_tree(
    outputs: Iterable[PieceIds], *, line: str, vocabulary: Vocabulary
) -> str:
    """Return one tree over exactly the words of a line; "" if it has none.

    Symbols that are no tree are repaired, see `linearization.build_tree`. The trees of
    the pieces of a long line stand side by side, with S around them.

    Args:
        outputs: The source ids and the target ids of each piece of the line.
        line: The line.
        vocabulary: Of words and symbols.
    """
    trees = [
        linearization.build_tree(symbols, words)
        for symbols, words in _pieces(outputs, line=line, vocabulary=vocabulary)
    ]
    if not trees:
        return ""
    tree = trees[0]
    if len(trees) > 1:
        tree = treebank.Tree(treebank.SENTENCE, tuple(trees))
    return str(treebank.Tree(TOP, (tree,)))


def are_trees(
    outputs: Iterable[PieceIds], *, line: str, vocabulary: Vocabulary
) -> bool:
    """Return whether the symbols of each piece are a tree over its words as they are.

    Args:
        outputs: The source ids and the target ids of each piece of the line.
        line: The line.
        vocabulary: Of words and symbols.
    """
    return all(
        linearization.linearize(linearization.build_tree(symbols, words)) == symbols
        for symbols, words in _pieces(outputs, line=line, vocabulary=vocabulary)
    )


def check_trees(
    lines: Sequence[str], targets: Sequence[str], *, first_line: int
) -> None:
    """Refuse targets that are not one tree each, over exactly the words of a line.

    Args:
        lines: Lines of words.
        targets: A tree in brackets for each; "" for a line without words.
        first_line: The number of the first line, for errors.

    Raises:
        ValueError: The message has the number of the line and what is wrong.
    """
    for number, (line, target) in enumerate(
        zip(lines, targets, strict=True), start=first_line
    ):
        trees = list(treebank.parse([target], name="target", first_line=number))
        clean_trees = [treebank.clean(tree) for tree in trees]
        words = [leaf.word for tree in clean_trees if tree for leaf in tree.leaves()]
        expected = word_subwords.split_words(*clean_lines([line]))
        if len(trees) != bool(expected):
            raise ValueError(
                f"target, line {number}: {len(trees)} trees for {len(expected)} words; "
                "a line with words has one tree, an empty line has none"
            )
        if len(words) != len(expected):
            raise ValueError(
                f"target, line {number}: the tree has {len(words)} words, the line has "
                f"{len(expected)}; a tree must be over the words of its line"
            )
        for position, pair in enumerate(zip(words, expected, strict=True), start=1):
            if pair[0] != pair[1]:
                raise ValueError(
                    f"target, line {number}: word {position} of the tree is "
                    f"{pair[0][:40]!r}, that of the line is {pair[1][:40]!r}"
                )


def _pieces(
    outputs: Iterable[PieceIds], *, line: str, vocabulary: Vocabulary
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the symbols and the words of each piece that has words.

    Words after the last piece are one more, without symbols.
    """
    subwords = vocabulary.source
    assert isinstance(subwords, word_subwords.WordSubwords)
    words = word_subwords.split_words(*clean_lines([line]))
    start = 0
    for source, target in outputs:
        num_words = int(subwords.word_starts[list(source)].sum())
        if part := words[start : start + num_words]:
            symbols = vocabulary.decode(target).split()
            # Without the grammar even the unknown symbol can be written for a word.
            yield [linearization.WORD if s == UNKNOWN else s for s in symbols], part
        start += num_words
    if leftover_words := words[start:]:
        yield [], leftover_words
