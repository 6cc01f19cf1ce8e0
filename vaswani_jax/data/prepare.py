"""Turn text into a vocabulary and files of token ids."""

import contextlib
import dataclasses
import functools
import itertools
import json
import logging
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from vaswani_jax.core import config, data_config, data_rules, files, languages
from vaswani_jax.data import (
    run_vocabulary,
    sources,
    text_files,
    token_files,
    training_text,
)
from vaswani_jax.data.manifest import Manifest, recorded_settings
from vaswani_jax.data.overlap import Overlap
from vaswani_jax.data.progress import show_progress
from vaswani_jax.data.subwords import VOCABULARY_KEYS, load_configured_sides
from vaswani_jax.data.training_text import TrainingText
from vaswani_jax.data.unknown_characters import UnknownCharacters
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)
CHUNK_LINES = 10_000
SPLITS = ("train", "valid", "test")
CHUNKS_PER_LOG_LINE = 100


def prepare(
    data: config.DataConfig,
    directory: pathlib.Path,
    *,
    seed: int,
    vocabulary: Vocabulary | None,
) -> Manifest:
    """Write the vocabulary, the token files and the held-out text.

    Args:
        data: Where the text is, and how it becomes tokens.
        directory: An empty directory.
        seed: Seed of generated text and of sampled segmentations.
        vocabulary: The vocabulary to use. If None, one is learned from the text.

    Returns:
        The manifest, which is not written yet.

    Raises:
        ValueError: The text cannot be used, see `sources.pairs`, or a locale is of no
            language.
        FileNotFoundError: The text is missing.
        ImportError: A package that the settings need is not installed.
    """
    configured_subwords = [None, None] if vocabulary else load_configured_sides(data)
    run_vocabulary.check_dropout(
        data, vocabulary, configured_subwords=configured_subwords
    )
    if vocabulary:
        run_vocabulary.check_kind(vocabulary, data)
    data_rules.check_languages(data)
    sources.prepare(data)
    splits = sources.splits(data)
    text = {
        split: training_text.text_record(data, split, seed=seed, previous={})
        for split in splits
    }
    training = TrainingText(data, seed=seed)
    # This first pass finds bad lines before the long work starts.
    training.count()
    for part, total in zip(training.parts, training.num_read, strict=True):
        _check_count(part.title, total)
    held_out = {
        split: _Text(
            split,
            _check_count(split, sources.count(data, split, seed=seed)),
            [functools.partial(sources.pairs, data, split, seed=seed)],
        )
        for split in splits
        if split != "train"
    }
    _clean(training)
    training.check_shares()
    training.write_examples(directory)
    origin = "given"
    if vocabulary is None:
        vocabulary = run_vocabulary.make_vocabulary(
            data, configured_subwords, seed=seed, training=training
        )
        origin = run_vocabulary.describe_origin(configured_subwords, data)
    vocabulary.save(directory)
    logger.info(
        f"{origin} {vocabulary.describe()}, fingerprint {vocabulary.fingerprint}"
    )
    overlap = Overlap(
        {
            # Training pairs are watched before they get the tags of their corpora.
            split: [
                (languages.remove_corpus_tags(source, data), target)
                for source, target in _copy_text(text, split, directory=directory)
            ]
            for split, text in held_out.items()
        }
    )
    training_texts = [
        _Text(
            part.title,
            total,
            [
                functools.partial(
                    training.pairs,
                    number,
                    copy=copy,
                    watch=overlap.watch if copy == 0 else None,
                )
                for copy in range(part.num_copies)
            ],
        )
        for number, (part, total) in enumerate(
            zip(training.parts, training.num_kept, strict=True)
        )
    ]
    counts_of_texts = {
        split: _tokenise(
            data,
            split,
            texts=[held_out[split]] if split in held_out else training_texts,
            directory=directory,
            vocabulary=vocabulary,
            seed=seed,
        )
        for split in splits
    }
    overlap.log(may_copy=data.source in data_config.GENERATED)
    _check_unchanged(data, text, seed=seed)
    return Manifest(
        settings=recorded_settings(data),
        text=text,
        vocabulary=vocabulary.fingerprint,
        counts={
            split: {key: sum(count[key] for count in counts) for key in counts[0]}
            for split, counts in counts_of_texts.items()
        },
        cleaning=training.cleaner.counts,
        cleaning_by_corpus=training.cleaner.counts_by_corpus,
        corpora={
            part.name: counts
            for part, counts in zip(
                training.parts, counts_of_texts["train"], strict=True
            )
            if part.corpus
        },
        files=files.hash_files(
            (file for split in splits for file in directory.glob(f"{split}.*")),
            directory=directory,
        ),
        given_vocabularies=tuple(
            key
            for key, subwords in zip(VOCABULARY_KEYS, configured_subwords, strict=True)
            if subwords
        ),
    )


@dataclasses.dataclass(frozen=True)
class _Text:
    """A text to tokenise: a held-out split, or a part of the training text.

    Attributes:
        title: The words by which logs and errors name it.
        num_pairs: The number of its pairs.
        copies: Each yields its pairs; they are written one copy after the other.
    """

    title: str
    num_pairs: int
    copies: Sequence[Callable[[], sources.Pairs]]

    @property
    def num_copies(self) -> int:
        """The number of its copies."""
        return len(self.copies)


def _check_count(title: str, num_pairs: int) -> int:
    """Log the number of pairs of a text, and refuse one without any."""
    logger.info(f"read {title}: {num_pairs:,} pairs")
    if not num_pairs:
        name = f"the split {title!r}" if title in SPLITS else title
        raise ValueError(f"{name} has no pairs; it needs at least one")
    return num_pairs


def _clean(training: TrainingText) -> None:
    """Leave out the training pairs that settings name, and refuse to keep none."""
    training.clean()
    training.cleaner.log()
    for part, count in zip(training.parts, training.num_kept, strict=True):
        if not count:
            name = f" of {part.title}" if part.corpus else ""
            raise ValueError(
                f"config.data.clean_* left out every training pair{name}: "
                f"{json.dumps(training.cleaner.counts)}"
            )


def _copy_text(
    text: _Text, split: str, *, directory: pathlib.Path
) -> list[tuple[str, str]]:
    """Write the text of a held-out split, and return its pairs."""
    [read] = text.copies
    pairs = list(read())
    for side, name in enumerate(("source", "target")):
        path = directory / f"{split}.{name}.txt"
        text_files.write_lines(path, (pair[side] for pair in pairs))
    return pairs


def _tokenise(
    data: config.DataConfig,
    split: str,
    *,
    texts: Sequence[_Text],
    directory: pathlib.Path,
    vocabulary: Vocabulary,
    seed: int,
) -> list[dict[str, int]]:
    """Write the token files of a split, one text after the other.

    Returns:
        The number of pairs of each text that were kept and left out.
    """
    dropout = data.subword_dropout if split == "train" else 0.0
    unknown = {side: UnknownCharacters(vocabulary) for side in ("source", "target")}
    has_tags = bool(languages.locales_by_tag(data))
    counts_of_texts = []
    # Of all texts: it decides which merges BPE-dropout leaves out.
    chunk_number = 0
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                token_files.open_writer(
                    directory / f"{split}.{side}", vocab_size=subwords.size
                )
            )
            for side, subwords in (
                ("source", vocabulary.source),
                ("target", vocabulary.target),
            )
        ]
        for text in texts:
            total = text.num_copies * text.num_pairs
            copies: sources.Pairs = itertools.chain.from_iterable(
                read() for read in text.copies
            )
            pairs = show_progress(copies, f"tokenising {text.title}", total=total)
            counts = {"kept": 0, "empty": 0, "too_long": 0}
            for number, lines in enumerate(_chunks(pairs)):
                # Later lines repeat the text.
                num_unrepeated = max(0, text.num_pairs - number * CHUNK_LINES)
                if num_unrepeated:
                    unknown["source"].count(lines[0][:num_unrepeated], verbatim=True)
                    unknown["target"].count(lines[1][:num_unrepeated], target=True)
                sides = [
                    vocabulary.encode(
                        side_lines,
                        target=bool(side),
                        verbatim=True,
                        dropout=dropout,
                        seed=(seed, chunk_number, side),
                    )
                    for side, side_lines in enumerate(lines)
                ]
                # A tag or a code alone, as >>fra<<, has tokens but no text.
                sides[0] = [
                    []
                    if (has_tags or ">>" in line) and languages.is_empty(line, data)
                    else ids
                    for line, ids in zip(lines[0], sides[0], strict=True)
                ]
                usable = _usable(
                    zip(*sides, strict=True), max_length=data.max_length, counts=counts
                )
                for side, writer in enumerate(writers):
                    writer.write([pair[side] for pair in usable])
                chunk_number += 1
                if (number + 1) % CHUNKS_PER_LOG_LINE == 0:
                    num_read = (number + 1) * CHUNK_LINES
                    logger.info(
                        f"tokenised {num_read:,} of {total:,} pairs of {text.title}"
                    )
            _report(text, counts, max_length=data.max_length)
            counts_of_texts.append(counts)
    for name, characters in unknown.items():
        if description := characters.describe():
            logger.info(f"{name} of {split}: {description}")
    return counts_of_texts


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the source lines and the target lines of many pairs at a time."""
    while chunk := list(itertools.islice(pairs, CHUNK_LINES)):
        yield list(zip(*chunk, strict=True))


def _usable(
    pairs: Iterable[Sequence[list[int]]], *, max_length: int, counts: dict[str, int]
) -> list[Sequence[list[int]]]:
    """Return the pairs that are neither empty nor too long, and count all of them."""
    usable = []
    for pair in pairs:
        if not all(pair):
            counts["empty"] += 1
        elif max(map(len, pair)) + 1 > max_length:  # one more for the end mark
            counts["too_long"] += 1
        else:
            counts["kept"] += 1
            usable.append(pair)
    return usable


def _report(text: _Text, counts: Mapping[str, int], *, max_length: int) -> None:
    """Log what was kept and left out.

    Raises:
        ValueError: Nothing was kept.
    """
    number = text.num_copies
    copies = f", in {number} copies of the text" if number > 1 else ""
    logger.info(
        f"tokenised {text.title}: {counts['kept']:,} pairs kept{copies}; left out: "
        f"{counts['too_long']:,} over {max_length} tokens, {counts['empty']:,} with an "
        "empty side"
    )
    if not counts["kept"]:
        name = repr(text.title) if text.title in SPLITS else text.title
        raise ValueError(
            f"no pair of {name} can be used: {counts} with "
            f"config.data.max_length={max_length}"
        )


def _check_unchanged(
    data: config.DataConfig, text: Mapping[str, dict[str, Any]], *, seed: int
) -> None:
    for split, record in text.items():
        current = training_text.text_record(data, split, seed=seed, previous=record)
        if sources.content_identity(current) != sources.content_identity(record):
            raise ValueError(
                f"the text of {split!r} has changed while it was prepared: wait until "
                "it is written, and prepare it again"
            )
