"""Turn text into a vocabulary and files of token ids."""

import contextlib
import itertools
import logging
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tqdm

from vaswani_jax.core import config, files
from vaswani_jax.data import sources, text_files, token_files
from vaswani_jax.data.manifest import Manifest, recorded_settings
from vaswani_jax.data.overlap import Overlap
from vaswani_jax.data.vocabulary import Vocabulary, learn_vocabulary

logger = logging.getLogger(__name__)
CHUNK_LINES = 10_000
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
        ValueError: The text cannot be used, see `sources.pairs`.
        FileNotFoundError: The text is missing.
    """
    if vocabulary is not None and data.subword_dropout and not vocabulary.is_bpe:
        raise ValueError(
            f"config.data.subword_dropout={data.subword_dropout} needs BPE: the "
            "vocabulary of --init_from is of another kind"
        )
    sources.prepare(data)
    splits = sources.splits(data)
    text = {
        split: sources.text_record(data, split, seed=seed, previous={})
        for split in splits
    }
    # This first pass finds bad lines before the long work starts.
    num_pairs = {split: _count(data, split, seed=seed) for split in splits}
    origin = "given"
    if vocabulary is None:
        vocabulary = _learn(data, seed=seed, total=num_pairs["train"])
        origin = f"learned {data.subword_model}"
    vocabulary.save(directory)
    logger.info(
        f"{origin} vocabulary: {vocabulary.size:,} subwords, fingerprint "
        f"{vocabulary.fingerprint}"
    )
    overlap = Overlap(
        {
            split: _copy_text(data, split, seed=seed, directory=directory)
            for split in splits
            if split != "train"
        }
    )
    counts = {
        split: _tokenise(
            data,
            split,
            directory=directory,
            vocabulary=vocabulary,
            seed=seed,
            total=num_pairs[split],
            overlap=overlap,
        )
        for split in splits
    }
    overlap.log(may_copy=data.source in config.GENERATED)
    _check_unchanged(data, text, seed=seed)
    return Manifest(
        settings=recorded_settings(data),
        text=text,
        vocabulary=vocabulary.fingerprint,
        counts=counts,
        files=files.hash_files(
            (file for split in splits for file in directory.glob(f"{split}.*")),
            directory=directory,
        ),
    )


def _count(data: config.DataConfig, split: str, *, seed: int) -> int:
    num_pairs = sources.count(data, split, seed=seed)
    logger.info(f"read {split}: {num_pairs:,} pairs")
    if not num_pairs:
        raise ValueError(f"the split {split!r} has no pairs; it needs at least one")
    return num_pairs


def _learn(data: config.DataConfig, *, seed: int, total: int) -> Vocabulary:
    """Learn a vocabulary from both sides of pairs spread over the training text."""
    size = min(total, max(1, data.sentencepiece_sample_size // 2))
    pairs = sources.sample(data, "train", seed=seed, size=size, total=total)
    logger.info(f"learning a {data.subword_model} vocabulary from {2 * size:,} lines")
    pairs = _progress(pairs, "sampling", total=size)
    return learn_vocabulary(itertools.chain.from_iterable(pairs), data)


def _copy_text(
    data: config.DataConfig, split: str, *, seed: int, directory: pathlib.Path
) -> list[tuple[str, str]]:
    """Write the text of a held-out split, and return its pairs."""
    pairs = list(sources.pairs(data, split, seed=seed))
    for side, name in enumerate(("source", "target")):
        path = directory / f"{split}.{name}.txt"
        text_files.write_lines(path, (pair[side] for pair in pairs))
    return pairs


def _tokenise(
    data: config.DataConfig,
    split: str,
    *,
    directory: pathlib.Path,
    vocabulary: Vocabulary,
    seed: int,
    total: int,
    overlap: Overlap,
) -> dict[str, int]:
    """Write the token files of a split, and count what was kept and left out."""
    is_train = split == "train"
    samples = data.subword_samples if is_train else 1
    dropout = data.subword_dropout if is_train else 0.0
    repeated: sources.Pairs = itertools.chain.from_iterable(
        sources.pairs(data, split, seed=seed) for _ in range(samples)
    )
    if is_train:
        repeated = overlap.watch(repeated)
    pairs = _progress(repeated, f"tokenising {split}", total=samples * total)
    counts = {"kept": 0, "empty": 0, "too_long": 0}
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                token_files.open_writer(
                    directory / f"{split}.{side}", vocab_size=vocabulary.size
                )
            )
            for side in ("source", "target")
        ]
        for number, lines in enumerate(_chunks(pairs)):
            sides = [
                vocabulary.encode(
                    side_lines,
                    target=bool(side),
                    dropout=dropout,
                    seed=(seed, number, side),
                )
                for side, side_lines in enumerate(lines)
            ]
            usable = _usable(
                zip(*sides, strict=True), max_length=data.max_length, counts=counts
            )
            for side, writer in enumerate(writers):
                writer.write([pair[side] for pair in usable])
            if (number + 1) % CHUNKS_PER_LOG_LINE == 0:
                num_read = (number + 1) * CHUNK_LINES
                logger.info(
                    f"tokenised {num_read:,} of {samples * total:,} pairs of {split}"
                )
    _report(split, counts, max_length=data.max_length, samples=samples)
    return counts


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


def _report(
    split: str, counts: Mapping[str, int], *, max_length: int, samples: int
) -> None:
    """Log what was kept and left out.

    Raises:
        ValueError: Nothing was kept.
    """
    repeats = f", each segmented {samples} times" if samples > 1 else ""
    logger.info(
        f"tokenised {split}: {counts['kept']:,} pairs kept{repeats}; left out: "
        f"{counts['too_long']:,} over {max_length} tokens, {counts['empty']:,} with an "
        "empty side"
    )
    if not counts["kept"]:
        raise ValueError(
            f"no pair of {split!r} can be used: {counts} with "
            f"config.data.max_length={max_length}"
        )


def _check_unchanged(
    data: config.DataConfig, text: Mapping[str, dict[str, Any]], *, seed: int
) -> None:
    for split, record in text.items():
        current = sources.text_record(data, split, seed=seed, previous=record)
        if sources.content_identity(current) != sources.content_identity(record):
            raise ValueError(
                f"the text of {split!r} has changed while it was prepared: wait until "
                "it is written, and prepare it again"
            )


def _progress(
    pairs: Iterator[tuple[str, str]], description: str, *, total: int
) -> Iterator[tuple[str, str]]:
    """Yield the pairs, with a bar on standard error if that is a terminal."""
    # None disables the bar where there is no terminal.
    disable = None if logger.isEnabledFor(logging.INFO) else True
    return iter(
        tqdm.tqdm(pairs, description, total=total, unit=" pairs", disable=disable)
    )
