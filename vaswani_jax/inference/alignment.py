"""Attention over the source as word alignment: where an output word looks."""

import itertools
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from vaswani_jax.core import types
from vaswani_jax.data.tokenizer import WORD_START, Tokenizer
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.results import Output


def align_line(
    line: str,
    outputs: Sequence[Output],
    weights: Sequence[Float[np.ndarray, "H _ _"]],
    *,
    vocabulary: Vocabulary,
    separator: str = " ",
) -> str:
    """Return a line's word alignment in Pharaoh's format, as "0-0 1-2".

    Words are what white space divides in the line as it was given, whatever it is read
    as, and in its translation.

    Args:
        line: The source line.
        outputs: The translation of each piece of the line.
        weights: One layer's attention over each piece's source, `[H, T, S]`.
        vocabulary: The subwords of the outputs.
        separator: What stands between the translations of pieces.
    """
    pairs: list[tuple[int, int]] = []
    sources = source_words(line, [o.source for o in outputs], vocabulary=vocabulary)
    targets = target_words(
        [output.ids for output in outputs], vocabulary.target, separator=separator
    )
    for piece_weights, source, target in zip(weights, sources, targets, strict=True):
        pairs += pharaoh(piece_weights, source_words=source, target_words=target)
    # Without spaces a word may go on in the next piece: its first pair counts.
    firsts = {target: source for source, target in reversed(pairs)}
    return " ".join(f"{firsts[target]}-{target}" for target in sorted(firsts))


def write_attention(
    archive: zipfile.ZipFile,
    name: str,
    *,
    output: Output,
    weights: Mapping[str, Float[np.ndarray, "L H Q K"]],
    vocabulary: Vocabulary,
) -> None:
    """Write the attention of a translation and its subwords into an .npz file.

    NAME/attention is the decoder's over the source, NAME/encoder and NAME/decoder are
    self-attention, NAME/source and NAME/target the subwords.

    Args:
        archive: The open file.
        name: What the arrays' names begin with.
        output: The translation of one piece.
        weights: Each kind of attention, by its name in `scoring.KINDS`.
        vocabulary: The subwords of the output.
    """
    source = map(vocabulary.source.subword, [*output.source, types.EOS_ID])
    arrays = {
        "attention": weights["memory"],
        "source": np.array([*source], np.str_),
        "target": np.array([*map(vocabulary.target.subword, output.ids)], np.str_),
        "encoder": weights["encoder"],
        "decoder": weights["decoder"],
    }
    for key, array in arrays.items():
        with archive.open(f"{name}/{key}.npy", "w") as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


def source_words(
    line: str, pieces: Sequence[Sequence[int]], *, vocabulary: Vocabulary
) -> list[Int[np.ndarray, "_"]]:
    """Return the line's word that each subword of each piece lies in, -1 for none."""
    subwords = vocabulary.source
    spans = vocabulary.find_spans(line)
    # What every piece begins with stands in the line once. A later piece may begin
    # with other symbols that could be tags.
    is_repeated = sum(map(len, pieces)) > len(spans)
    num_tags = subwords.num_tags(pieces[0]) if is_repeated else 0
    num_repeated = [num_tags if number else 0 for number in range(len(pieces))]
    ids = [
        token
        for count, piece in zip(num_repeated, pieces, strict=True)
        for token in piece[count:]
    ]
    word_of_character = words(line)
    numbers = iter(
        _word_at(span, word_of_character, subword=subwords.subword(token))
        for token, span in zip(ids, spans, strict=True)
    )
    return [
        np.array(
            [*[-1] * count, *itertools.islice(numbers, len(piece) - count), -1], int
        )
        for count, piece in zip(num_repeated, pieces, strict=True)
    ]


def _word_at(
    span: tuple[int, int], word_of_character: Int[np.ndarray, "_"], *, subword: str
) -> int:
    """Return the line's word in which a subword begins, or -1."""
    begin, end = span
    # All bytes of a character but the last have an empty span, where it begins.
    if begin == end and subword != WORD_START:
        end += 1
    numbers = np.unique(word_of_character[begin:end])
    numbers = numbers[numbers >= 0]
    if not len(numbers):
        return -1
    # What is read as nothing belongs to the place of the subword after it.
    num_words = len(subword.replace(WORD_START, " ").split())
    return int(numbers[-min(max(1, num_words), len(numbers))])


def target_words(
    pieces: Sequence[Sequence[int]], subwords: Tokenizer, *, separator: str
) -> list[Int[np.ndarray, "_"]]:
    """Return the translation's word that each subword of each piece is a part of."""
    texts = [subword_texts(subwords, ids) for ids in pieces]
    # A text has no space at its beginning; one without text has no separator.
    joined = [
        [*text_of_piece, separator if "".join(text_of_piece).strip() else ""]
        for text_of_piece in map(_without_first_space, texts)
    ]
    numbers = words([text for piece in joined for text in piece])
    parts = np.split(numbers, np.cumsum([len(piece) for piece in joined]))
    return [part[:-1] for part in parts[: len(pieces)]]


def _without_first_space(texts: Sequence[str]) -> list[str]:
    return [text if n else text.removeprefix(" ") for n, text in enumerate(texts)]


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


def subword_texts(subwords: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return the text of each subword, see `Tokenizer.surface`.

    A byte has the whole character that it is a part of, which may be white space.
    """
    texts = [subwords.surface(token) for token in ids]
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


def words(texts: Sequence[str]) -> Int[np.ndarray, "N"]:
    """Return the word that each subword belongs to, from 0; -1 for none.

    Words are what white space divides, as a reader of the text counts them. A subword
    that has a part of two belongs to the earlier one.

    >>> words(["ein", " ma", "nn", " ", "", ",", " und so", ""]).tolist()
    [0, 1, 1, -1, -1, 2, 3, -1]

    Args:
        texts: The text of each subword, "" for an end mark.
    """
    numbers, word, is_inside = [], -1, False
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
