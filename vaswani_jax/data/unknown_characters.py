"""Count the lines with characters that no subword has."""

import collections
from collections.abc import Iterable

from vaswani_jax.core import plurals
from vaswani_jax.data.vocabulary import Vocabulary

NUM_NAMED = 5


class UnknownCharacters:
    """The characters that a vocabulary lacks, counted over blocks of lines.

    Bytes, or the unknown subword, stand for them: a model that never met them in
    training translates such lines badly.

    Attributes:
        num_lines: How many lines have any.
        lines_by_character: How many lines have each.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Start with no line."""
        self._vocabulary = vocabulary
        self._nouns: set[str] = set()
        self.num_lines = 0
        self.lines_by_character: collections.Counter[str] = collections.Counter()

    def count(
        self, lines: Iterable[str], *, target: bool = False, verbatim: bool = False
    ) -> None:
        """Count lines of the source or the target; see `Vocabulary.encode`."""
        noun = "symbols" if target and self._vocabulary.is_trees else "characters"
        for line in lines:
            characters = self._vocabulary.unknown_characters(
                line, target=target, verbatim=verbatim
            )
            if characters:
                self.num_lines += 1
                self._nouns.add(noun)
            self.lines_by_character.update(characters)

    def describe(self) -> str:
        """Return the number of lines and the most frequent characters, or ""."""
        if not self.num_lines:
            return ""
        characters = sorted(self.lines_by_character.items(), key=lambda c: (-c[1], c))
        names = [_name(character) for character, _ in characters[:NUM_NAMED]]
        if num_others := len(characters) - len(names):
            names.append(f"and {plurals.format_count(num_others, 'other')}")
        nouns = " or ".join(sorted(self._nouns))
        subject = plurals.format_count(self.num_lines, "line has", plural="lines have")
        return f"{subject} {nouns} that the vocabulary lacks: {', '.join(names)}"


def _name(character: str) -> str:
    if len(character) > 1:  # the symbol of a tree
        return character
    code = f"U+{ord(character):04X}"
    return f"{character} ({code})" if character.isprintable() else code
