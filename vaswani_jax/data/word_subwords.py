"""The source's vocabulary in parsing (section 6.3): subwords of words in a line."""

import functools
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.tokenizer import WORD_START

# Between words, as between the brackets of trees, stands white space of ASCII alone.
WORD_PATTERN = re.compile(r"\S+", re.ASCII)
# What treebanks write for brackets, which could not be told from those of a tree.
BRACKETS = {"(": "-LRB-", ")": "-RRB-"}


def split_words(line: str) -> list[str]:
    """Return the words of a line as a tree has them.

    >>> split_words("He ( she ) slept")
    ['He', '-LRB-', 'she', '-RRB-', 'slept']
    """
    return [
        re.sub("[()]", lambda match: BRACKETS[match[0]], word)
        for word in WORD_PATTERN.findall(line)
    ]


class WordSubwords(Subwords):
    """Subwords of lines of words: exactly the first of each word is a word start.

    So the ids tell how many words there are and where each of them is.
    """

    @functools.cached_property
    def word_starts(self) -> Bool[np.ndarray, "V"]:
        """True for ids that begin a word."""
        return np.array([self.starts_word(token) for token in range(self.size)])

    def encode(
        self,
        texts: Sequence[str],
        *,
        replace_unknown: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each line of words; see `Subwords.encode`."""
        lines = [split_words(text) for text in texts]
        encoded = super().encode(
            list(map(" ".join, lines)),
            replace_unknown=replace_unknown,
            dropout=dropout,
            seed=seed,
        )
        for index, (text, words) in enumerate(zip(texts, lines, strict=True)):
            num_starts = np.count_nonzero(self.word_starts[encoded[index]])
            # Normalisation may take other characters for spaces, or for none.
            if num_starts != len(words) or not text.isascii():
                encoded[index] = self._encode_words(
                    words,
                    replace_unknown=replace_unknown,
                    dropout=dropout,
                    seed=(*seed, index),
                )
        return encoded

    def _encode_words(
        self,
        words: Sequence[str],
        *,
        replace_unknown: bool,
        dropout: float,
        seed: Sequence[int],
    ) -> list[int]:
        """Return ids with exactly one word start a word, encoding word by word."""
        ids = []
        words = [word.replace(WORD_START, "_") for word in words]
        for word_ids in super().encode(
            words, replace_unknown=replace_unknown, dropout=dropout, seed=seed
        ):
            starts = self.word_starts[word_ids].tolist()
            if not (starts and starts[0]):
                ids.append(self.subword_id(WORD_START))
            ids += [
                token
                for position, token in enumerate(word_ids)
                if position == 0 or not starts[position]
            ]
        return ids

    def unknown_characters(self, text: str, *, replace_unknown: bool) -> list[str]:
        """Return the characters that no subword has; see `Subwords`."""
        words = " ".join(split_words(text)).replace(WORD_START, "_")
        return super().unknown_characters(words, replace_unknown=replace_unknown)

    def find_spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the word of each subword lies in a text."""
        words = [match.span() for match in WORD_PATTERN.finditer(text)]
        [ids] = self.encode([text], replace_unknown=True)
        return [words[n - 1] for n in np.cumsum(self.word_starts[ids])]

    def extend(self, symbols: Sequence[str]) -> "WordSubwords":
        """Return subwords that keep these symbols whole, too; their ids come last."""
        return WordSubwords(super().extend(symbols).model)
