"""Add noise to synthetic source lines ("Understanding Back-Translation at Scale").

Edunov et al., 2018. A model that learns from the likely words and orders of beam search
relies on them. Missing, replaced and moved words prevent that.
"""

import dataclasses
import re

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordNoise:
    """Delete, replace and move words of a line (Edunov et al., 2018).

    Attributes:
        word_dropout: Probability that a word is deleted, from 0 to below 1.
        word_blank: Probability that a remaining word is replaced by `blank_token`, from
            0 to below 1.
        word_shuffle: Maximum number of positions that a word moves; 0 keeps the order.
        blank_token: The word that replaces others.
    """

    word_dropout: float = 0.1
    word_blank: float = 0.1
    word_shuffle: int = 3
    blank_token: str = "<BLANK>"

    def check(self) -> None:
        """Refuse values out of range.

        Raises:
            ValueError: Has the option, its value and the rule.
        """
        for name in ("word_dropout", "word_blank"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1), got {value}")
        if self.word_shuffle < 0:
            raise ValueError(
                f"word_shuffle must be at least 0, got {self.word_shuffle}"
            )
        if not self.blank_token or re.search(r"\s", self.blank_token):
            raise ValueError(
                f"blank_token must be a word without spaces, got {self.blank_token!r}"
            )

    def apply(
        self, line: str, generator: np.random.Generator, *, has_spaces: bool
    ) -> str:
        """Return a line with noise; at least one of its words stays.

        >>> noise = WordNoise(word_dropout=0.0, word_blank=0.0, word_shuffle=1)
        >>> noise.apply("a b c d e f", np.random.default_rng(0), has_spaces=True)
        'a c b d e f'

        Args:
            line: The text.
            generator: The source of randomness: equal states give equal noise.
            has_spaces: True if the language has spaces between its words; if not, its
                characters are the words.
        """
        words = line.split() if has_spaces else list(line)
        if not words:
            return line
        stays = generator.random(len(words)) >= self.word_dropout
        survivor = generator.integers(len(words))
        if not stays.any():
            stays[survivor] = True
        is_blank = generator.random(len(words)) < self.word_blank
        # Words further apart than `word_shuffle` positions keep their order.
        shifts = generator.uniform(0, self.word_shuffle + 1, len(words))
        remaining = [
            self.blank_token if blank else word
            for word, stay, blank in zip(words, stays, is_blank, strict=True)
            if stay
        ]
        positions = np.arange(len(remaining)) + shifts[: len(remaining)]
        order = np.argsort(positions, kind="stable")
        return (" " if has_spaces else "").join(remaining[index] for index in order)
