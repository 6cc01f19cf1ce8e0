"""Section 6.3: from the symbols that a search found to a tree over the words."""

from collections.abc import Iterable, Sequence

from vaswani_jax.data import linearization, treebank, word_subwords
from vaswani_jax.data.vocabulary import Vocabulary

# The label around a whole tree, as parsers write it; it is no constituent.
TOP = "TOP"


def format_tree(
    outputs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    line: str,
    vocabulary: Vocabulary,
) -> str:
    """Return one tree over exactly the words of a line; "" if it has none.

    Symbols that are no tree are repaired, see `linearization.build_tree`. The trees of
    the pieces of a long line stand side by side, with S around them.

    Args:
        outputs: The source ids and the target ids of each piece of the line.
        line: The line.
        vocabulary: Of words and symbols.
    """
    subwords = vocabulary.source
    assert isinstance(subwords, word_subwords.WordSubwords)
    words = word_subwords.split_words(line)
    if not words:
        return ""
    trees = []
    start = 0
    for source, target in outputs:
        num_words = int(subwords.word_starts[list(source)].sum())
        part = words[start : start + num_words]
        start += num_words
        if part:
            symbols = vocabulary.decode(target).split()
            trees.append(linearization.build_tree(symbols, part))
    if rest := words[start:]:
        trees.append(linearization.build_tree([], rest))
    whole = trees[0]
    if len(trees) > 1:
        whole = treebank.Tree(treebank.SENTENCE, tuple(trees))
    return str(treebank.Tree(TOP, (whole,)))
