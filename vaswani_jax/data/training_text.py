"""The training text as the model reads it: the pairs of one text, or of each corpus.

Held-out text is read by `sources` alone: nothing is left out of it or added to it.
"""

import contextlib
import dataclasses
import logging
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from vaswani_jax.core import config, languages
from vaswani_jax.core.corpora import CORPORA, Corpus
from vaswani_jax.data import cleaning, mixture, sources
from vaswani_jax.data.noise import add_noise

logger = logging.getLogger(__name__)
Watch = Callable[[sources.Pairs], sources.Pairs]


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the training text: all of it, or one of several corpora.

    Attributes:
        data: Settings whose training text this is.
        corpus: The corpus; None if the settings name none.
    """

    data: config.DataConfig
    corpus: Corpus | None = None

    @property
    def name(self) -> str:
        """The name of the corpus; "" if the settings name none."""
        return self.corpus.name if self.corpus else ""

    @property
    def title(self) -> str:
        """The words by which logs and errors name it."""
        return f"corpus {self.name!r}" if self.corpus else "train"

    @property
    def tag(self) -> str:
        """The tag of its source lines; "" for none."""
        return self.corpus.tag if self.corpus else ""

    @property
    def is_noisy(self) -> bool:
        """True if its pairs are written with noise."""
        return self.corpus is not None and self.corpus.is_noisy

    @property
    def num_copies(self) -> int:
        """The number of copies of its text in prepared data."""
        return mixture.num_copies(self.data, self.corpus)

    def pairs(self, *, seed: int) -> sources.Pairs:
        """Yield the pairs of its text as they stand there; see `sources.pairs`.

        Args:
            seed: Seed of generated text.

        Raises:
            FileNotFoundError, ValueError: The text cannot be used. The message has the
                name of the corpus.
        """
        with naming_corpus(self):
            yield from sources.pairs(self.data, "train", seed=seed)


def parts(data: config.DataConfig) -> list[Part]:
    """Return the parts of the training text, in the order of the prepared data."""
    return [
        Part(
            dataclasses.replace(
                data,
                corpora="",
                train_source=corpus.source,
                train_target=corpus.target,
            ),
            corpus,
        )
        for corpus in data.training_corpora
    ] or [Part(data)]


class TrainingText:
    """The training text of settings, part by part: what is kept of it, with its tags.

    Attributes:
        parts: Its parts.
        cleaner: The rules that leave pairs out.
        num_read: The number of pairs of each part, once they are counted.
        num_kept: The number of those that cleaning keeps, once they are cleaned.
    """

    def __init__(self, data: config.DataConfig, *, seed: int) -> None:
        """Take the settings; nothing is read.

        Args:
            data: Where the text is.
            seed: Seed of generated text.

        Raises:
            ValueError, ImportError: The text cannot be cleaned, see `cleaning.Cleaner`.
        """
        self.parts = parts(data)
        self.cleaner = cleaning.Cleaner(data)
        self.num_read: list[int] = []
        self.num_kept: list[int] = []
        self._data = data
        self._seed = seed

    def count(self) -> None:
        """Count the pairs of each part, after checking every line of text files.

        Raises:
            FileNotFoundError, ValueError: The text cannot be used, see `sources.pairs`.
        """
        for part in self.parts:
            with naming_corpus(part):
                self.num_read.append(sources.count(part.data, "train", seed=self._seed))

    def clean(self) -> None:
        """Find the pairs to keep; of duplicates, the first of all parts."""
        if not self.cleaner.is_on:
            self.num_kept = list(self.num_read)
            return
        self.cleaner.examine(
            {part.name: part.pairs(seed=self._seed) for part in self.parts}
        )
        self.num_kept = [self.cleaner.num_kept(part.name) for part in self.parts]

    def write_examples(self, directory: pathlib.Path) -> None:
        """Write examples of what cleaning leaves out, if any rule is on."""
        locations = {
            part.name: sources.locate(
                part.data, "train", self.cleaner.example_numbers(part.name)
            )
            for part in self.parts
        }
        self.cleaner.write_examples(directory, locations)

    def check_shares(self) -> None:
        """Refuse shares that give a corpus no pair of an epoch; see `mixture.plan`.

        Pairs that are too long still count.
        """
        num_pairs = {
            part.name: part.num_copies * count
            for part, count in zip(self.parts, self.num_kept, strict=True)
        }
        mixture.plan(self._data, num_pairs)

    def pairs(
        self, number: int, *, copy: int, watch: Watch | None = None
    ) -> sources.Pairs:
        """Yield the pairs of a part as the model reads them, with noise and their tag.

        Args:
            number: The index of the part.
            copy: The number of its copy, from 0: each has other noise.
            watch: Passes the pairs on as they stand in the text.
        """
        text = self._kept_pairs(number)
        if watch:
            text = watch(text)
        return _tagged(self._noisy(text, number, copy=copy), self.parts[number])

    def sample(self, size: int) -> sources.Pairs:
        """Yield pairs without tags, of the first copies, to learn a vocabulary from.

        A part gives its share by size, spread evenly over its text, whatever the
        weights: prepared data must not depend on them.

        Args:
            size: The number of pairs to yield, at most all.
        """
        counts = mixture.divide_proportionally(size, list(map(Fraction, self.num_kept)))
        for number, count in enumerate(counts):
            total = self.num_kept[number]
            if self.cleaner.is_on or self.parts[number].is_noisy:
                pairs = self._noisy(self._kept_pairs(number), number, copy=0)
                yield from sources.spread(pairs, size=count, total=total)
                continue
            yield from sources.sample(
                self.parts[number].data,
                "train",
                seed=self._seed,
                size=count,
                total=total,
            )

    def _kept_pairs(self, number: int) -> sources.Pairs:
        part = self.parts[number]
        text = part.pairs(seed=self._seed)
        return self.cleaner.keep(text, corpus=part.name)

    def _noisy(self, text: sources.Pairs, number: int, *, copy: int) -> sources.Pairs:
        part = self.parts[number]
        if part.corpus is None or not part.is_noisy:
            return text
        key = (self._seed, part.name, copy)
        numbers = self.cleaner.kept_numbers(part.name)
        return add_noise(text, part.corpus, part.data, key=key, numbers=numbers)


def text_record(
    data: config.DataConfig,
    split: str,
    *,
    seed: int,
    previous: Mapping[str, Any],
    may_be_missing: bool = False,
) -> dict[str, Any]:
    """Return what identifies the text of a split, see `sources.text_record`.

    The keys of a corpus begin with its name and a slash.

    Args:
        data: Where the text is.
        split: The split.
        seed: The seed of generated text.
        previous: The record of an earlier call, {} if there is none.
        may_be_missing: Whether one of several corpora may be missing: it then has its
            previous record, and the others are still read.

    Raises:
        FileNotFoundError: A text is missing.
    """
    if split != "train" or not data.training_corpora:
        return sources.text_record(data, split, seed=seed, previous=previous)
    record: dict[str, Any] = {}
    for part in parts(data):
        prefix = f"{part.name}/"
        recorded = {
            key.removeprefix(prefix): entry
            for key, entry in previous.items()
            if key.startswith(prefix)
        }
        try:
            with naming_corpus(part):
                entries = sources.text_record(
                    part.data, "train", seed=seed, previous=recorded
                )
        except FileNotFoundError as error:
            if not (may_be_missing and recorded):
                raise
            logger.info(
                f"note: {error}; the prepared text of corpus {part.name!r} is used"
            )
            entries = recorded
        record |= {prefix + key: entry for key, entry in entries.items()}
    return record


def changed_corpora(record: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return the names of corpora whose text differs in two records of the text."""
    identities = sources.content_identity(record), sources.content_identity(current)
    keys = dict.fromkeys([*record, *current])
    changed_keys = [
        key for key in keys if len({identity.get(key) for identity in identities}) > 1
    ]
    return list(
        dict.fromkeys(key.partition("/")[0] for key in changed_keys if "/" in key)
    )


def _tagged(text: sources.Pairs, part: Part) -> sources.Pairs:
    """Yield pairs with the tag of their corpus; an empty source stays empty."""
    tag = part.tag
    if not tag:
        yield from text
        return
    for source, target in text:
        is_empty = languages.is_empty(source, part.data)
        yield (
            (source if is_empty else languages.add_tag(source, tag, part.data)),
            target,
        )


@contextlib.contextmanager
def naming_corpus(part: Part) -> Iterator[None]:
    """Name in errors the corpus, and its field in place of the setting."""
    if not part.corpus:
        yield
        return
    title = f"{CORPORA}, {part.title}"
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        text = re.sub(r"^config\.data\.train_(source|target)", r"\1", str(error))
        text = re.sub(
            r"name it with --config\.data\.train_(source|target)=NAME",
            r"correct the \1 of the corpus",
            text,
        )
        raise type(error)(f"{title}: {text}") from None
