"""Attention over the source as word alignment: where an output word looks."""

import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from vaswani_jax.data import vocabulary


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
    weights, is_word = attention.mean(axis=0), source_words >= 0
    if not is_word.any():
        return []
    found = []
    for word in np.unique(target_words[target_words >= 0]):
        row = weights[target_words == word].mean(axis=0)
        totals = np.bincount(source_words[is_word], row[is_word])
        found.append((int(totals.argmax()), int(word)))
    return found


def surfaces(
    subwords: vocabulary.Vocabulary, ids: Sequence[int], *, written: bool
) -> list[str]:
    """The text of each subword, see `Vocabulary.surface`.

    A byte has the whole character that it is a part of, which may be white space.
    """
    found = [subwords.surface(token, written=written) for token in ids]
    at = 0
    for is_byte, run in itertools.groupby(ids, subwords.is_byte):
        names = [subwords.name(token) for token in run]
        if is_byte:
            spelt = bytes(int(name[1:-1], 16) for name in names)
            # What is no character stays a byte of its own.
            escaped = spelt.decode(errors="surrogateescape")
            found[at : at + len(names)] = [
                character
                for character in escaped
                for _ in character.encode(errors="surrogateescape")
            ]
        at += len(names)
    return found


def words(surfaces: Sequence[str], *, first: int) -> Int[np.ndarray, "N"]:
    """The word that each subword belongs to, counted from `first`; -1 for none.

    Words are what white space divides, as whoever reads the text will count them. A
    subword that has a part of two belongs to the earlier one.

    >>> words(["ein", " ma", "nn", " ", "", ",", " und so", ""], first=0).tolist()
    [0, 1, 1, -1, -1, 2, 3, -1]

    Args:
        surfaces: The text of each subword; none of an end mark.
        first: The number of the first word.
    """
    found, word, inside = [], first - 1, False
    for surface in surfaces:
        own = -1
        for character in surface:
            if character.isspace():
                inside = False
                continue
            word += not inside
            inside = True
            own = word if own < 0 else own
        found.append(own)
    return np.array(found, int)


def default_layer(num_layers: int) -> int:
    """The last but one, where the weights of a trained decoder align best.

    So Garg et al. (2019), "Jointly Learning to Align and Translate with Transformer
    Models", for six layers.

    >>> default_layer(6), default_layer(1)
    (4, 0)
    """
    return max(0, num_layers - 2)
