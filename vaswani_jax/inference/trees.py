"""Section 6.3: from the symbols that a search found to a tree over the words."""

from collections.abc import Iterable, Iterator, Sequence

from vaswani_jax.data import linearization, treebank, word_subwords
from vaswani_jax.data.vocabulary import Vocabulary, clean_lines

# The source ids and the target ids of a line, or of a piece of it.
PieceIds = tuple[Sequence[int], Sequence[int]]
# The label around a whole tree, as parsers write it; it is no constituent.
TOP = "TOP"


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
    whole = trees[0]
    if len(trees) > 1:
        whole = treebank.Tree(treebank.SENTENCE, tuple(trees))
    return str(treebank.Tree(TOP, (whole,)))


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
            yield vocabulary.decode(target).split(), part
        start += num_words
    if rest := words[start:]:
        yield [], rest
