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

from vaswani_jax.core import config, languages, locales, types
from vaswani_jax.data import phrase_subwords
from vaswani_jax.data.phrase_subwords import is_inside_word, is_word_character
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import generate
from vaswani_jax.inference.glossary import Glossary
from vaswani_jax.inference.results import Hypothesis

# By how many subwords a phrase may be longer without the space before it. If the search
# tries that spelling and turns to the other, both take no more than the longer one.
MAX_EXTRA_SUBWORDS = 1


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A phrase that a line's translation must have, once for each time it is listed.

    Attributes:
        text: The phrase.
        starts_word: Whether a word must begin with it.
        ends_word: Whether a word must end with it.
        ids: Its subwords; none if no search looks for it, but only a check of what the
            search found.
        joined_ids: Its subwords without the space before it, which may follow an
            opening bracket, a quotation mark or the like; none if it always needs the
            space.
    """

    text: str
    starts_word: bool = True
    ends_word: bool = True
    ids: tuple[int, ...] = ()
    joined_ids: tuple[int, ...] = ()

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
        glossary: Terms of sources with their translations; None for none.
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
            constraints: The listed phrases of each, of which empty ones count for none;
                None for no such list.
            first_line: The number of the first line in error messages.

        Raises:
            ValueError: The search draws samples, or the outputs are trees. A phrase
                cannot be written, or a listed one does not fit into the output. A line
                with a listed phrase is translated in pieces.
        """
        if self._pattern is None and not self.glossary and constraints is None:
            return [()] * len(lines)
        self.check_search()
        return [
            self._find_in_line(line, listed, number=number)
            for number, (line, listed) in enumerate(
                zip(lines, constraints or itertools.repeat(()), strict=False),
                start=first_line,
            )
        ]

    def check_glossary(self) -> None:
        """Refuse a glossary for a model that cannot write all its translations.

        Raises:
            ValueError: The vocabulary cannot write a translation, the search draws
                samples, or the outputs are trees.
        """
        self.check_search()
        data = self.settings.data
        targets = languages.target_locales(data)
        for has_spaces in {languages.has_spaces(target, data) for target in targets}:
            for term, translation in (self.glossary or {}).items():
                phrase = self._encode(Phrase(translation), has_spaces=has_spaces)
                self._check_spelling(phrase, name=f"glossary, term {term!r}")

    def check_search(self) -> None:
        """Refuse a search that takes no phrases.

        Raises:
            ValueError: The search draws samples, or the outputs are trees.
        """
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
        self, line: str, listed: Sequence[str], *, number: int
    ) -> tuple[Phrase, ...]:
        data = self.settings.data
        listed = [" ".join(phrase.split()) for phrase in listed if phrase.strip()]
        untagged = languages.remove_tag(line, data)
        glossary = self.glossary or Glossary({})
        source_has_spaces = languages.has_spaces(data.source_locale, data)
        terms = list(glossary.find_terms(untagged, has_spaces=source_has_spaces))
        placeholders = list(self._find_placeholders(untagged))
        if not (listed or terms or placeholders):
            return ()
        has_spaces = languages.piece_separator(line, data) == " "
        encode = functools.cache(functools.partial(self._encode, has_spaces=has_spaces))
        [source] = self.vocabulary.encode([line])
        phrases = [encode(Phrase(text)) for text in listed]
        if sum(map(_count_tokens, phrases)) > self._room(source):
            phrases = list(map(with_space_alone, phrases))
        self._check_listed(phrases, source, name=f"constraints, line {number}")
        translations = []
        for term in terms:
            phrase = encode(Phrase(glossary[term]))
            self._check_spelling(phrase, name=f"line {number}, glossary term {term!r}")
            translations.append(phrase)
        room = self._room(source)
        self._add_unlisted(phrases, translations, room=room)
        self._add_unlisted(phrases, map(encode, placeholders), room=room)
        return tuple(phrases)

    def _add_unlisted(
        self, phrases: list[Phrase], candidates: Iterable[Phrase], *, room: int
    ) -> None:
        """Add the candidates that are not among the phrases; equal ones are two.

        Args:
            phrases: The phrases of a line so far.
            candidates: What is to be added. It keeps its ids if the subwords spell it
                and there is room.
            room: As `_room` returns it.
        """
        num_listed = collections.Counter(phrase.text for phrase in phrases)
        room -= sum(map(_count_tokens, phrases))
        for phrase in candidates:
            num_listed[phrase.text] -= 1
            if num_listed[phrase.text] >= 0:
                continue
            if _count_tokens(phrase) > room:
                phrase = with_space_alone(phrase)
            if _count_tokens(phrase) > room or not self._is_spelled(phrase):
                phrase = dataclasses.replace(phrase, ids=(), joined_ids=())
            room -= _count_tokens(phrase)
            phrases.append(phrase)

    def _find_placeholders(self, line: str) -> Iterator[Phrase]:
        """Yield the placeholders of a line without its tag; they have no ids."""
        if self._pattern is None:
            return
        for match in self._pattern.finditer(line):
            text = " ".join(match[0].split())
            if text:
                begin = match.start() + len(match[0]) - len(match[0].lstrip())
                is_joined = begin > 0 and _joins(line[begin - 1])
                is_inside = is_inside_word(line, match.end())
                yield Phrase(
                    text,
                    starts_word=not is_joined,
                    ends_word=not (is_inside and _joins(line[match.end()])),
                )

    def _encode(self, phrase: Phrase, *, has_spaces: bool) -> Phrase:
        starts_word = has_spaces and phrase.starts_word
        target = self.vocabulary.target
        assert isinstance(target, Subwords), "trees have no phrases"
        ids = phrase_subwords.encode_phrase(
            target, phrase.text, starts_word=starts_word
        )
        joined_ids: list[int] = []
        if starts_word:
            joined_ids = phrase_subwords.encode_phrase(
                target, phrase.text, starts_word=False
            )
            is_known = types.UNK_ID not in joined_ids
            is_short = len(joined_ids) <= len(ids) + MAX_EXTRA_SUBWORDS
            is_spelled = self.vocabulary.decode(joined_ids) == phrase.text
            if not (is_known and is_short and is_spelled):
                joined_ids = []
        return dataclasses.replace(
            phrase,
            starts_word=starts_word,
            ends_word=has_spaces
            and phrase.ends_word
            and is_word_character(phrase.text[-1]),
            ids=tuple(ids),
            joined_ids=tuple(joined_ids),
        )

    def _is_spelled(self, phrase: Phrase) -> bool:
        """Return True if the subwords of a phrase spell it."""
        is_known = types.UNK_ID not in phrase.ids
        return is_known and self.vocabulary.decode(phrase.ids) == phrase.text

    def _check_spelling(self, phrase: Phrase, *, name: str) -> None:
        """Refuse a phrase that subwords do not spell."""
        if types.UNK_ID in phrase.ids:
            # The list of a MarianMT model may lack a subword of known characters.
            characters = self.vocabulary.unknown_characters(phrase.text, target=True)
            lacks = "characters" if characters else "subwords"
            names = f": {' '.join(characters)}" if characters else ""
            raise ValueError(
                f"{name}: {phrase.text!r} has {lacks} that the vocabulary lacks"
                f"{names}; leave it out"
            )
        if not self._is_spelled(phrase):
            raise ValueError(
                f"{name}: the vocabulary spells {phrase.text!r} as "
                f"{self.vocabulary.decode(phrase.ids)!r}: write it so"
            )

    def _check_listed(
        self, phrases: Sequence[Phrase], source: Sequence[int], *, name: str
    ) -> None:
        """Refuse listed phrases that no search can write."""
        for phrase in phrases:
            self._check_spelling(phrase, name=name)
        search = self.settings.search
        if phrases and len(source) >= search.max_source_tokens:
            raise ValueError(
                f"{name}: the source line has {len(source) + 1:,} tokens, more than "
                f"config.search.max_source_tokens={search.max_source_tokens}; a line "
                "that is translated in pieces takes no constraints: divide it"
            )
        excess = sum(map(_count_tokens, phrases)) - self._room(source)
        if source and phrases and excess > 0:
            raise ValueError(
                f"{name}: the phrases have {excess:,} tokens more than a translation "
                "of this line may have (config.search.max_extra_tokens, max_tokens): "
                "leave some out"
            )

    def _room(self, source: Sequence[int]) -> int:
        """Return how many tokens the phrases of a line may have; 0 if it is cut."""
        search = self.settings.search
        if len(source) >= search.max_source_tokens:
            return 0
        longest = generate.longest_output(
            len(source) + 1, 0, search=search, models=self.models
        )
        return longest - 1  # The last is the end mark.


def _joins(character: str) -> bool:
    """Return whether a letter next to a character belongs to the same word.

    Chinese, Japanese or Thai letters may stand directly next to another word.
    """
    is_spaced = not locales.LETTERS_WITHOUT_SPACES.match(character)
    return is_spaced and is_word_character(character)


def _count_tokens(phrase: Phrase) -> int:
    """Return the tokens that a phrase takes; one may have to stand after its word."""
    longest = max(len(phrase.ids), len(phrase.joined_ids))
    return longest + (phrase.ends_word if phrase.ids else 0)


def with_space_alone(phrase: Phrase) -> Phrase:
    """Return a phrase without the spelling that needs no space before it."""
    return dataclasses.replace(phrase, joined_ids=())


def find_missing(text: str, phrases: Iterable[Phrase]) -> tuple[str, ...]:
    """Return the phrases that a translation lacks, each once.

    >>> find_missing("Der Vertrag gilt.", [Phrase("Vertrag"), Phrase("Klausel")])
    ('Klausel',)
    """
    # A translation may have thousands of equal phrases: each is counted once.
    num_needed = collections.Counter(phrases)
    counts = {phrase: phrase.count(text) for phrase in num_needed}
    by_text: dict[str, list[Phrase]] = {}
    for phrase in num_needed:
        by_text.setdefault(phrase.text, []).append(phrase)
    return tuple(
        phrase_text
        for phrase_text, different in by_text.items()
        if max(counts[phrase] for phrase in different)
        < sum(num_needed[phrase] for phrase in different)
        or any(counts[phrase] < num_needed[phrase] for phrase in different)
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
