"""Find the phrases that translations must have: terms, and placeholders.

A term is words: it begins a word, and a new word follows it. A placeholder, as {name},
may touch its neighbours as it does in the source. In a language without spaces a phrase
may be anywhere.
"""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from vaswani_jax.core import config, languages, types
from vaswani_jax.data import phrase_subwords
from vaswani_jax.data.phrase_subwords import is_inside_word, is_word_character
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import generate
from vaswani_jax.inference.banks import PhraseRows
from vaswani_jax.inference.glossary import Glossary
from vaswani_jax.inference.results import Hypothesis

# The smallest numbers of phrases, and of their tokens, that a search is compiled for.
SMALLEST = (4, 8)


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A phrase that a line's translation must have, once for each time it is listed.

    Attributes:
        text: The phrase.
        starts_word: Whether a word must begin with it.
        ends_word: Whether a word must end with it.
        ids: Its subwords; none if no search looks for it, but only a check of what the
            search found.
    """

    text: str
    starts_word: bool = True
    ends_word: bool = True
    ids: tuple[int, ...] = ()

    def count(self, text: str) -> int:
        """Return how often a text has the phrase.

        >>> Phrase("cat").count("A cat, two cats, a tomcat and another cat")
        2
        """
        number, begin = 0, text.find(self.text)
        while begin >= 0:
            end = begin + len(self.text)
            is_joined = self.starts_word and is_inside_word(text, begin)
            is_joined |= self.ends_word and is_inside_word(text, end)
            number += not is_joined
            begin = text.find(self.text, begin + 1)
        return number


def split_constraints(lines: Iterable[str]) -> list[list[str]]:
    r"""Return the phrases of each line, which tabs separate.

    >>> split_constraints(["der Vertrag\tKlausel", ""])
    [['der Vertrag', 'Klausel'], ['']]
    """
    return [line.split("\t") for line in lines]


def compile_placeholders(
    pattern: str, *, name: str = "placeholders"
) -> re.Pattern[str]:
    """Return the pattern of placeholders.

    Args:
        pattern: A regular expression.
        name: What the user calls it.

    Raises:
        TypeError: The pattern is not a string.
        ValueError: The pattern is not a regular expression, or is empty.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"{name} must be a string, got {pattern!r}")
    if not pattern:
        raise ValueError(f"{name} is an empty pattern: leave it out")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"{name}={pattern} is not a regular expression of Python: {error}"
        ) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseFinder:
    """Finds the phrases of lines, with their subwords.

    Attributes:
        vocabulary: The subwords.
        settings: Their search limits the output.
        models: The architectures.
        placeholders: The pattern of what each translation has as often as its source;
            None for none.
        glossary: The terms of sources, with their translations; None for none.
    """

    vocabulary: Vocabulary
    settings: config.Config
    models: Sequence[config.ModelConfig]
    placeholders: str | None = None
    glossary: Glossary | None = None

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if self.placeholders is None:
            return None
        return compile_placeholders(self.placeholders)

    def find(
        self,
        lines: Sequence[str],
        constraints: Sequence[Sequence[str]] | None,
        *,
        first_line: int,
    ) -> list[tuple[Phrase, ...]]:
        """Return the phrases that the translation of each line must have.

        Args:
            lines: Source lines.
            constraints: The terms of each, of which empty ones count for none; None
                for no terms.
            first_line: The number of the first line in error messages.

        Raises:
            ValueError: The search draws samples, or the outputs are trees. A term
                cannot be written, or a listed one does not fit into the output. A line
                with a listed term is translated in pieces.
        """
        if self._pattern is None and self.glossary is None and constraints is None:
            return [()] * len(lines)
        self._check_search()
        return [
            self._find_in_line(line, terms, number=number)
            for number, (line, terms) in enumerate(
                zip(lines, constraints or itertools.repeat(()), strict=False),
                start=first_line,
            )
        ]

    def check_glossary(self) -> None:
        """Refuse a glossary with a translation that the vocabulary cannot write.

        Raises:
            ValueError: As `find`, for any line with that term.
        """
        self._check_search()
        data = self.settings.data
        locales = languages.target_locales(data)
        for has_spaces in {languages.has_spaces(locale, data) for locale in locales}:
            for translation in (self.glossary or {}).values():
                phrase = self._encode(Phrase(translation), has_spaces=has_spaces)
                self._check_spelling(phrase, name="glossary")

    def _check_search(self) -> None:
        if self.vocabulary.is_trees:
            raise ValueError(
                "a parser takes no constraints, no glossary and no placeholders; "
                "leave them out"
            )
        if self.settings.search.sampling:
            raise ValueError(
                "config.search.sampling=True draws outputs at random: it takes no "
                "constraints, no glossary and no placeholders"
            )

    def _find_in_line(
        self, line: str, terms: Sequence[str], *, number: int
    ) -> tuple[Phrase, ...]:
        terms = [" ".join(term.split()) for term in terms if term.strip()]
        untagged = languages.remove_tag(line, self.settings.data)
        translations = [Phrase(text) for text in self._find_terms(untagged)]
        placeholders = list(self._find_placeholders(untagged))
        if not (terms or translations or placeholders):
            return ()
        encode = functools.partial(
            self._encode,
            has_spaces=languages.piece_separator(line, self.settings.data) == " ",
        )
        [source] = self.vocabulary.encode([line])
        phrases = [encode(Phrase(term)) for term in terms]
        self._check_terms(phrases, source, name=f"constraints, line {number}")
        for found in (translations, placeholders):
            # What is listed, too, is not needed once more.
            num_listed = collections.Counter(phrase.text for phrase in phrases)
            for phrase in map(encode, found):
                num_listed[phrase.text] -= 1
                if num_listed[phrase.text] >= 0:
                    continue
                if found is translations:
                    self._check_spelling(phrase, name=f"glossary, line {number}")
                if not self._is_spelled(phrase) or self._excess(
                    source, [*phrases, phrase]
                ):
                    phrase = dataclasses.replace(phrase, ids=())
                phrases.append(phrase)
        return tuple(phrases)

    def _find_terms(self, line: str) -> Iterator[str]:
        """Yield the translations of the glossary's terms in a line."""
        data = self.settings.data
        if self.glossary is not None:
            has_spaces = languages.has_spaces(data.source_locale, data)
            yield from self.glossary.find(line, has_spaces=has_spaces)

    def _find_placeholders(self, line: str) -> Iterator[Phrase]:
        """Yield the placeholders of a line, not encoded."""
        if self._pattern is None:
            return
        for match in self._pattern.finditer(line):
            text = " ".join(match[0].split())
            if text:
                begin = match.start() + len(match[0]) - len(match[0].lstrip())
                is_joined = begin > 0 and is_word_character(line[begin - 1])
                yield Phrase(
                    text,
                    starts_word=not is_joined,
                    ends_word=not is_inside_word(line, match.end()),
                )

    def _encode(self, phrase: Phrase, *, has_spaces: bool) -> Phrase:
        starts_word = has_spaces and phrase.starts_word
        ids = phrase_subwords.encode_phrase(
            self.vocabulary.target, phrase.text, starts_word=starts_word
        )
        return dataclasses.replace(
            phrase,
            starts_word=starts_word,
            ends_word=has_spaces
            and phrase.ends_word
            and is_word_character(phrase.text[-1]),
            ids=tuple(ids),
        )

    def _is_spelled(self, phrase: Phrase) -> bool:
        """Return True if the subwords of a phrase spell it."""
        is_known = types.UNK_ID not in phrase.ids
        return is_known and self.vocabulary.decode(phrase.ids) == phrase.text

    def _check_spelling(self, phrase: Phrase, *, name: str) -> None:
        """Refuse a phrase that subwords do not spell."""
        if types.UNK_ID in phrase.ids:
            characters = self.vocabulary.unknown_characters(phrase.text, target=True)
            raise ValueError(
                f"{name}: {phrase.text!r} has characters that the vocabulary lacks: "
                f"{' '.join(characters)}; leave it out"
            )
        if not self._is_spelled(phrase):
            raise ValueError(
                f"{name}: the vocabulary spells {phrase.text!r} as "
                f"{self.vocabulary.decode(phrase.ids)!r}: write it so"
            )

    def _check_terms(
        self, phrases: Sequence[Phrase], source: Sequence[int], *, name: str
    ) -> None:
        """Refuse terms that no search can write."""
        for phrase in phrases:
            self._check_spelling(phrase, name=name)
        search = self.settings.search
        if phrases and len(source) >= search.max_source_tokens:
            raise ValueError(
                f"{name}: the source line has {len(source) + 1:,} tokens, more than "
                f"config.search.max_source_tokens={search.max_source_tokens}; a line "
                "that is translated in pieces takes no constraints: divide it"
            )
        if source and (excess := self._excess(source, phrases)):
            raise ValueError(
                f"{name}: the phrases have {excess:,} tokens more than a translation "
                "of this line may have (config.search.max_extra_tokens, max_tokens): "
                "leave some out"
            )

    def _excess(self, source: Sequence[int], phrases: Sequence[Phrase]) -> int:
        """Return how many tokens of phrases do not fit into an output."""
        search = self.settings.search
        if len(source) >= search.max_source_tokens:
            return sum(len(phrase.ids) for phrase in phrases)
        longest = generate.longest_output(
            len(source) + 1, 0, search=search, models=self.models
        )
        # A token may have to stand between two phrases. The last is the end mark.
        num_tokens = sum(len(phrase.ids) + phrase.ends_word for phrase in phrases) + 1
        return max(0, num_tokens - longest)


def find_missing(text: str, phrases: Iterable[Phrase]) -> tuple[str, ...]:
    """Return the phrases that a translation lacks, each once.

    >>> find_missing("Der Vertrag gilt.", [Phrase("Vertrag"), Phrase("Klausel")])
    ('Klausel',)
    """
    by_text: dict[str, list[Phrase]] = {}
    for phrase in phrases:
        by_text.setdefault(phrase.text, []).append(phrase)
    return tuple(
        phrase_text
        for phrase_text, phrases_of_text in by_text.items()
        if max(phrase.count(text) for phrase in phrases_of_text) < len(phrases_of_text)
        or any(
            phrase.count(text) < phrases_of_text.count(phrase)
            for phrase in phrases_of_text
        )
    )


def mark_missing(
    hypotheses: Sequence[Sequence[Hypothesis]], phrases: Sequence[Sequence[Phrase]]
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each line with the phrases that they lack."""
    return [
        [
            dataclasses.replace(
                hypothesis, missing_phrases=find_missing(hypothesis.text, line_phrases)
            )
            for hypothesis in n_best
        ]
        for n_best, line_phrases in zip(hypotheses, phrases, strict=True)
    ]


def choose_padded_shape(phrases: Iterable[Sequence[Phrase]]) -> tuple[int, int]:
    """Return C and L of a search for the phrases of some sentences.

    They are powers of two; `choose_padded_shape` of few short ones is `SMALLEST`.
    """
    numbers, lengths = [SMALLEST[0]], [SMALLEST[1]]
    for of_sentence in phrases:
        different = _count_different(of_sentence)
        numbers.append(len(different))
        lengths += [len(ids) for ids, _ in different]
    return _power_of_two(max(numbers)), _power_of_two(max(lengths))


def keep_searchable(
    phrases: Sequence[Phrase], *, shape: tuple[int, int]
) -> tuple[Phrase, ...]:
    """Return the phrases of a sentence; a search has no room for those without ids.

    Args:
        phrases: The phrases.
        shape: C and L of the search.
    """
    kept: set[tuple[tuple[int, ...], bool]] = set()
    for phrase in phrases:
        if 0 < len(phrase.ids) <= shape[1] and len(kept) < shape[0]:
            kept.add((phrase.ids, phrase.ends_word))
    return tuple(
        phrase
        if (phrase.ids, phrase.ends_word) in kept
        else dataclasses.replace(phrase, ids=())
        for phrase in phrases
    )


def pad_phrases(
    phrases: Sequence[Sequence[Phrase]],
    *,
    rows: int,
    shape: tuple[int, int],
    subwords: Subwords,
) -> PhraseRows:
    """Return the phrases of a batch's sentences as arrays.

    Args:
        phrases: Those of each sentence.
        rows: The rows of the batch, at least as many.
        shape: C and L, at least `choose_padded_shape`.
        subwords: Those of the target.
    """
    tokens = np.zeros((rows, *shape), np.int32)
    counts = np.zeros((rows, shape[0]), np.int32)
    are_words = np.zeros((rows, shape[0]), bool)
    for row, of_sentence in enumerate(phrases):
        different = _count_different(of_sentence)
        for index, ((ids, is_word), count) in enumerate(different.items()):
            tokens[row, index, : len(ids)] = ids
            counts[row, index], are_words[row, index] = count, is_word
    breaks = np.packbits(phrase_subwords.find_word_breaks(subwords))
    return PhraseRows(tokens, counts, are_words, np.tile(breaks, (rows, 1)))


def _count_different(
    phrases: Sequence[Phrase],
) -> collections.Counter[tuple[tuple[int, ...], bool]]:
    """Return how often each phrase that is searched must occur."""
    searched = (phrase for phrase in phrases if phrase.ids)
    return collections.Counter(
        (searched_phrase.ids, searched_phrase.ends_word) for searched_phrase in searched
    )


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
