"""Attention over the source as word alignment: where an output word looks."""

import itertools
import zipfile
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from vaswani_jax.core import types
from vaswani_jax.data.subwords import UNKNOWN, Subwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.line_translator import Output


def align_line(
    outputs: Sequence[Output],
    weights: Sequence[Float[np.ndarray, "H _ _"]],
    *,
    vocabulary: Vocabulary,
) -> str:
    """Return a line's word alignment in Pharaoh's format, as "0-0 1-2".

    Args:
        outputs: The translation of each piece of the line.
        weights: One layer's attention over each piece's source, `[H, T, S]`.
        vocabulary: The subwords of the outputs.
    """
    pairs: list[tuple[int, int]] = []
    sources = _source_words(vocabulary.source, [output.source for output in outputs])
    first = 0
    for output, piece_weights, source in zip(outputs, weights, sources, strict=True):
        surfaces = subword_texts(vocabulary.target, output.ids, unknown=UNKNOWN)
        target = words(surfaces, first=first)
        pairs += pharaoh(piece_weights, source_words=source, target_words=target)
        first = max([first, *(target + 1)])
    return " ".join(f"{source}-{target}" for source, target in pairs)


def write_attention(
    archive: zipfile.ZipFile,
    name: str,
    *,
    output: Output,
    weights: Float[np.ndarray, "L H T S"],
    vocabulary: Vocabulary,
) -> None:
    """Write the arrays NAME/attention, NAME/source and NAME/target into an .npz file.

    Args:
        archive: The open file.
        name: What the arrays' names begin with.
        output: The translation of one piece.
        weights: Its attention over the source.
        vocabulary: The subwords of the output.
    """
    source = map(vocabulary.source.subword, [*output.source, types.EOS_ID])
    arrays = {
        "attention": weights,
        "source": np.array([*source], np.str_),
        "target": np.array([*map(vocabulary.target.subword, output.ids)], np.str_),
    }
    for key, array in arrays.items():
        with archive.open(f"{name}/{key}.npy", "w") as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


def _source_words(
    subwords: Subwords, pieces: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """Return the line's word that each subword of each piece belongs to."""
    texts = []
    for number, ids in enumerate(pieces):
        piece = subword_texts(subwords, ids, unknown="\ufffd")
        if number:  # What every piece begins with stands in the line once.
            num_tags = subwords.num_tags(ids)
            piece[:num_tags] = [""] * num_tags
        texts.append([*piece, ""])  # the end mark
    line_words = words([text for piece in texts for text in piece], first=0)
    ends = np.cumsum([len(piece) for piece in texts])
    return np.split(line_words, ends)[: len(pieces)]


def pharaoh(
    attention: Float[np.ndarray, "H T S"],
    *,
    source_words: Int[np.ndarray, "S"],
    target_words: Int[np.ndarray, "T"],
) -> list[tuple[int, int]]:
    """Return (source word, target word) for each target word, in the target's order.

    A target word aligns to the source word with the most attention: the mean over
    heads and over the word's subwords, summed over the source word's subwords.

    Args:
        attention: Weights of one layer, one row a target subword.
        source_words: The word that each source subword belongs to, from 0; -1 for
            a subword without one, as the end mark.
        target_words: The same of the target.
    """
    weights, is_word = attention.mean(axis=0), source_words >= 0
    if not is_word.any():
        return []
    pairs = []
    for word in np.unique(target_words[target_words >= 0]):
        row = weights[target_words == word].mean(axis=0)
        totals = np.bincount(source_words[is_word], row[is_word])
        pairs.append((int(totals.argmax()), int(word)))
    return pairs


def subword_texts(subwords: Subwords, ids: Sequence[int], *, unknown: str) -> list[str]:
    """Return the text of each subword, see `Subwords.surface`.

    A byte has the whole character that it is a part of, which may be white space.
    """
    texts = [subwords.surface(token, unknown=unknown) for token in ids]
    start = 0
    for is_byte, run in itertools.groupby(ids, subwords.is_byte):
        names = [subwords.subword(token) for token in run]
        if is_byte:
            spelt = bytes(int(name[1:-1], 16) for name in names)
            # A byte that is no part of a character counts as one.
            escaped = spelt.decode(errors="surrogateescape")
            texts[start : start + len(names)] = [
                character
                for character in escaped
                for _ in character.encode(errors="surrogateescape")
            ]
        start += len(names)
    return texts


def words(texts: Sequence[str], *, first: int) -> Int[np.ndarray, "N"]:
    """Return the word that each subword belongs to, counted from `first`; -1 for none.

    Words are what white space divides, as a reader of the text counts them. A subword
    that has a part of two belongs to the earlier one.

    >>> words(["ein", " ma", "nn", " ", "", ",", " und so", ""], first=0).tolist()
    [0, 1, 1, -1, -1, 2, 3, -1]

    Args:
        texts: The text of each subword, "" for an end mark.
        first: The number of the first word.
    """
    numbers, word, is_inside = [], first - 1, False
    for text in texts:
        number = -1
        for character in text:
            if character.isspace():
                is_inside = False
                continue
            word += not is_inside
            is_inside = True
            number = word if number < 0 else number
        numbers.append(number)
    return np.array(numbers, int)


def default_layer(num_layers: int) -> int:
    """Return the last layer but one, where a trained decoder's weights align best.

    Garg et al. (2019), "Jointly Learning to Align and Translate with Transformer
    Models", found this for six layers.

    >>> default_layer(6), default_layer(1)
    (4, 0)
    """
    return max(0, num_layers - 2)
