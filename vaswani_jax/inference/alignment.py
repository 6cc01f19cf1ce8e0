"""Attention over the source as word alignment: where an output word looks."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int


def pharaoh(
    attention: Float[np.ndarray, "H T S"],
    source_words: Int[np.ndarray, "S"],
    target_words: Int[np.ndarray, "T"],
) -> list[tuple[int, int]]:
    """(source word, target word) for each target word, in the order of the target.

    A target word aligns to the source word with the most attention: the mean over
    heads and over the word's subwords, summed over the source word's subwords.

    Args:
        attention: Weights of one layer, one row a target subword.
        source_words: The word that each source subword belongs to, from 0; -1 for
            what belongs to none, as the end mark.
        target_words: The same of the target.
    """
    weights = attention.mean(axis=0)
    found = []
    for word in sorted(set(target_words[target_words >= 0].tolist())):
        row = weights[target_words == word].mean(axis=0)
        totals = np.zeros(max(source_words.max() + 1, 0))
        np.add.at(totals, source_words[source_words >= 0], row[source_words >= 0])
        if totals.size:
            found.append((int(totals.argmax()), word))
    return found


def words(
    ids: Sequence[int], *, starts_word: Callable[[int], bool], end: int, first: int
) -> Int[np.ndarray, "N"]:
    """The word that each subword belongs to, counted from `first`.

    Args:
        ids: Subwords, perhaps with end marks.
        starts_word: Whether a subword begins a new word.
        end: The end mark, which belongs to none.
        first: The number of the first word.
    """
    found, word = [], first - 1
    for token in ids:
        if token == end:
            found.append(-1)
            continue
        if starts_word(token) or word < first:
            word += 1
        found.append(word)
    return np.array(found, int)


def default_layer(num_layers: int) -> int:
    """The last but one, where the weights of a trained decoder align best.

    So Garg et al. (2019), "Jointly Learning to Align and Translate with Transformer
    Models", for six layers.

    >>> default_layer(6), default_layer(1)
    (4, 0)
    """
    return max(0, num_layers - 2)
