"""Find the texts of a configuration or of a run, and the vocabulary if there is one."""

import dataclasses
import functools
import itertools
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from vaswani_jax.core import config
from vaswani_jax.data import (
    linearization,
    prepared,
    prepared_checks,
    sources,
    subwords,
    training_text,
)
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.word_subwords import split_words
from vaswani_jax.text_checks.findings import Finding, Severity
from vaswani_jax.text_checks.sample import Pair

CHUNK = 1000


@dataclasses.dataclass(frozen=True)
class Text:
    """One text: the training text or one of its corpora, validation or test text.

    Attributes:
        split: "train", "valid" or "test".
        corpus: The name of the corpus; "" if the split has only one.
        origin: Where it comes from, in words.
        read: Yields its pairs, from the beginning.
        source_locale: The language of its source.
        target_locale: That of its target; several if source lines have tags.
        may_repeat: True if its pairs may be repeated although the text has them once.
        locate: Returns where pairs stand, by their numbers, see `sources.locate`.
    """

    split: str
    corpus: str
    origin: str
    read: Callable[[], Iterator[Pair]]
    source_locale: str
    target_locale: str
    may_repeat: bool = False
    locate: Callable[[Collection[int]], Mapping[int, sources.Location]] = lambda _: {}

    @property
    def name(self) -> str:
        """The split, and the corpus if it has several."""
        return f"{self.split} {self.corpus}" if self.corpus else self.split


@dataclasses.dataclass(frozen=True)
class Texts:
    """The texts of a configuration or of a run.

    Attributes:
        all: The texts.
        vocabulary: That of the prepared data, or of the file that settings name.
        notes: What could not be read, and what is read instead.
        findings: What is wrong with the prepared data, and with names of files.
    """

    all: list[Text]
    vocabulary: Vocabulary | None
    notes: list[str]
    findings: list[Finding]


def _differences(settings: config.Config, directory: pathlib.Path) -> list[Finding]:
    """Return a finding if data was prepared from another text or by other settings."""
    try:
        prepared.open_matching(settings, directory, compare_text=True)
    except ValueError as error:
        return [
            Finding(
                kind="prepared",
                severity=Severity.MINOR,
                split="train",
                message=str(error),
                share=1.0,
                remedies=[
                    "prepare again with --rebuild_data, or name another "
                    f"{prepared_checks.name_data_setting(settings.data)}"
                ],
            )
        ]
    return []


def find(settings: config.Config, workdir: pathlib.Path | None) -> Texts:
    """Return the texts that settings name; nothing is downloaded or prepared.

    If the text itself is missing, that of the prepared data is read.

    Args:
        settings: Those of the run.
        workdir: Where data is or will be prepared; None for nowhere.

    Raises:
        FileNotFoundError: A text is missing, and no data is prepared.
        ImportError: A text needs a package that is not installed, and no data is
            prepared.
        ValueError: A text cannot be read, or the prepared data is damaged.
    """
    data = settings.data
    notes: list[str] = []
    prepared_data, faults = None, []
    if data.directory or workdir is not None:
        directory = prepared.find_directory(data, workdir or pathlib.Path())
        if directory:
            prepared_data = prepared.open_prepared(directory)
            faults = _differences(settings, directory)
    texts = []
    for split in sources.splits(data):
        try:
            texts += _of_split(settings, split)
            faults += _unlike_shards(data, split)
        except (FileNotFoundError, ImportError) as error:
            if not (prepared_data and split in prepared_data.counts):
                raise
            prepared_texts = _of_prepared(settings, split, prepared_data)
            notes.append(
                f"{error}; {_describe(prepared_texts, data)} is checked instead"
            )
            texts += prepared_texts
    vocabulary = prepared_data.vocabulary if prepared_data else _configured(data)
    if vocabulary is None:
        notes.append(
            "no vocabulary yet: run `vaswani prepare` or `vaswani train`, then check "
            "again to see how it segments the text"
        )
    return Texts(texts, vocabulary, notes, faults)


def _unlike_shards(data: config.DataConfig, split: str) -> list[Finding]:
    """Return a finding for each text whose files have names that are no pairs."""
    parts = {"": data}
    if split == "train" and data.training_corpora:
        parts = {part.name: part.data for part in training_text.parts(data)}
    return [
        Finding(
            kind="unlike_shards",
            severity=Severity.MINOR,
            split=split,
            corpus=corpus,
            message=message,
            share=1.0,
            remedies=["give both sides of a pair of files the same name or number"],
        )
        for corpus, part_data in parts.items()
        if (message := sources.describe_unlike_shards(part_data, split))
    ]


def _of_split(settings: config.Config, split: str) -> list[Text]:
    """Return the texts of a split, each corpus for itself."""
    # Each tree once.
    data = dataclasses.replace(settings.data, gold_repeats=1)
    if split != "train":
        read = functools.partial(sources.pairs, data, split, seed=settings.seed)
        return [_text(data, split, read)]
    return [
        _text(
            part.data,
            split,
            functools.partial(part.pairs, seed=settings.seed),
            corpus=part.name,
        )
        for part in training_text.parts(data)
    ]


def _text(
    data: config.DataConfig,
    split: str,
    read: Callable[[], Iterator[Pair]],
    *,
    corpus: str = "",
) -> Text:
    # A missing file fails here, before other texts are checked.
    next(iter(itertools.islice(read(), 1)), None)
    return Text(
        split,
        corpus,
        _origin(data, split),
        read,
        data.source_locale,
        data.target_locale,
        locate=functools.partial(sources.locate, data, split),
    )


def _origin(data: config.DataConfig, split: str) -> str:
    if data.source == "text":
        names = (getattr(data, f"{split}_{side}") for side in ("source", "target"))
        # The directory may be a URL: pathlib would drop one of its slashes.
        return " and ".join(os.path.join(data.text_directory, name) for name in names)
    if data.source == "treebank":
        return f"trees of {data.text_directory}"
    return data.source


def _describe(prepared_texts: Sequence[Text], data: config.DataConfig) -> str:
    """Return which part of the prepared data stands for a split, in words."""
    split = prepared_texts[0].split
    description = f"the {split} text of the prepared data"
    if any(text.may_repeat for text in prepared_texts):
        description += " (except for repeated pairs, as it may have several copies)"
    elif split == "train" and any(
        part.num_copies > 1 or part.is_noisy for part in training_text.parts(data)
    ):
        description += " (its first copy, with its noise)"
    return description


def _of_prepared(
    settings: config.Config, split: str, data: prepared.PreparedData
) -> list[Text]:
    """Return the texts of a split of the prepared data, each corpus for itself.

    Of training text that was written several times, they are the first copies. Copies
    may differ by a few pairs in length, as sampled segmentations make other pairs too
    long; the last pairs of a text may be those of the next copy.
    """
    text = Text(
        split,
        "",
        f"the prepared data in {data.directory}",
        lambda: zip(*data.text(split), strict=True),
        settings.data.source_locale,
        settings.data.target_locale,
    )
    if split != "train":
        return [text]
    num_pairs = data.counts["train"]["kept"]
    if data.manifest.setting_differences(settings.data):
        # These settings do not say how it was written.
        read = functools.partial(_decode, data, range(num_pairs))
        return [dataclasses.replace(text, read=read, may_repeat=True)]
    sizes = data.manifest.corpus_sizes or {"": num_pairs}
    starts = itertools.accumulate(sizes.values(), initial=0)
    parts = {part.name: part for part in training_text.parts(settings.data)}
    return [
        dataclasses.replace(
            text,
            corpus=name,
            read=functools.partial(
                _decode,
                data,
                range(start, start + size // parts[name].num_copies),
                tag=parts[name].tag,
            ),
            # Of trees, some are repeated.
            may_repeat=settings.data.gold_repeats > 1,
        )
        for (name, size), start in zip(sizes.items(), starts, strict=False)
    ]


def _decode(
    data: prepared.PreparedData, pairs: range, *, tag: str = ""
) -> Iterator[Pair]:
    """Yield pairs of the training text, decoded from their tokens.

    Args:
        data: The prepared data.
        pairs: Their numbers.
        tag: That of their corpus, which is left out; "" for none.
    """
    corpus, vocabulary = data.token_pairs("train"), data.vocabulary
    sides = tuple(zip(corpus, (vocabulary.source, vocabulary.target), strict=True))
    for begin in range(pairs.start, pairs.stop, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, pairs.stop))
        lines = [
            map(side_subwords.decode, file.id_lists(rows))
            for file, side_subwords in sides
        ]
        for source, target in zip(*lines, strict=True):
            if vocabulary.is_trees:
                words = split_words(source)
                yield source, str(linearization.build_tree(target.split(), words))
                continue
            yield (source.replace(f"{tag} ", "", 1) if tag else source), target


def _configured(data: config.DataConfig) -> Vocabulary | None:
    """Return the vocabulary of the files that settings name; None if one is missing."""
    if not data.vocabulary:
        return None
    source, target = subwords.load_configured_sides(data)
    is_shared = data.vocabulary_sharing == "shared"
    if is_shared:
        target = source
    if not (source and target):
        return None
    return Vocabulary(source, target, is_shared=is_shared)
