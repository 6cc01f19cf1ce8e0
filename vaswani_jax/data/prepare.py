"""Section 5.1: from text to a vocabulary and token files, each line in its place."""

import contextlib
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

from vaswani_jax.core import config, files
from vaswani_jax.data import manifest, progress, sources, token_files, vocabulary

CHUNK_LINES = 10_000
Log = manifest.Log


def prepare(
    data: config.DataConfig,
    directory: pathlib.Path,
    *,
    seed: int,
    given: vocabulary.Vocabulary | None,
    log: Log,
) -> dict[str, Any]:
    """Write the vocabulary, the token files and the held-out text.

    Args:
        data: Which text, and how it is divided.
        directory: An empty one.
        seed: Of generated text and of sampled segmentations.
        given: A vocabulary to use instead of one that is learned.
        log: Told of each step.

    Returns:
        The manifest: what was prepared, from which text, with which settings.

    Raises:
        ValueError: The text cannot be used, see `sources.pairs`.
        FileNotFoundError: The text is missing.
    """
    if given is not None and data.subword_dropout and not given.is_bpe:
        raise ValueError(
            f"config.data.subword_dropout={data.subword_dropout} needs BPE: the "
            "vocabulary of --init_from is of another kind"
        )
    sources.prepare(data, log=log)
    splits = sources.splits(data)
    read = {
        split: sources.text_record(data, split, seed=seed, known={}) for split in splits
    }
    totals = {}
    # The first pass reads text, so that what is bad in it is found before work starts.
    for split in splits:
        totals[split] = sources.count(data, split, seed=seed)
        log(f"read {split}: {totals[split]:,} pairs")
        if not totals[split]:
            raise ValueError(f"the split {split!r} has no pairs; it needs at least one")
    if given is None:
        vocab = vocabulary.train(_sample(data, seed, totals["train"], log), data)
    else:
        vocab = given
    vocab.save(directory)
    kind = f"learned {data.subword_model}" if given is None else "given"
    log(f"{kind} vocabulary: {vocab.size:,} subwords, fingerprint {vocab.fingerprint}")
    counts = {}
    for split in splits:
        if split != "train":
            _copy_text(data, split, seed, directory)
        chosen = _repeated(data, split, seed, total=totals[split], log=log)
        counts[split] = _write_tokens(data, split, chosen, directory, vocab, seed=seed)
        samples = data.subword_samples if split == "train" else 1
        log(_report(split, counts[split], data.max_length, samples))
        if not counts[split]["kept"]:
            raise ValueError(
                f"no pair of {split!r} can be used: {counts[split]} with "
                f"config.data.max_length={data.max_length}"
            )
    for split in splits:
        now = sources.text_record(data, split, seed=seed, known=read[split])
        if manifest.identity(now) != manifest.identity(read[split]):
            raise ValueError(
                f"the text of {split!r} has changed while it was prepared: wait until "
                "it is written, and prepare it again"
            )
    return {
        "settings": manifest.recorded_settings(data),
        "text": read,
        "vocabulary": vocab.fingerprint,
        "counts": counts,
        "files": files.hash_files(
            (file for split in splits for file in directory.glob(f"{split}.*")),
            within=directory,
        ),
    }


def _sample(data: config.DataConfig, seed: int, total: int, log: Log) -> Iterator[str]:
    """Both sides of pairs spread evenly over the training text."""
    wanted = min(total, max(1, data.sentencepiece_sample_size // 2))
    found = sources.sample(data, "train", seed=seed, wanted=wanted, total=total)
    yield from itertools.chain.from_iterable(
        progress.told(found, what="sampling", total=wanted, log=log)
    )
    log(f"learning a {data.subword_model} vocabulary from {2 * wanted:,} lines")


def _repeated(
    data: config.DataConfig, split: str, seed: int, *, total: int, log: Log
) -> Iterator[tuple[str, str]]:
    """The pairs of a split, once for every segmentation of them."""
    samples = data.subword_samples if split == "train" else 1
    rest = itertools.chain.from_iterable(
        sources.pairs(data, split, seed=seed) for _ in range(samples)
    )
    what = f"tokenising {split}"
    return progress.told(rest, what=what, total=samples * total, log=log)


def _copy_text(
    data: config.DataConfig, split: str, seed: int, directory: pathlib.Path
) -> None:
    both = list(sources.pairs(data, split, seed=seed))
    for side, name in enumerate(("source", "target")):
        path = directory / f"{split}.{name}.txt"
        token_files.write_text(path, (pair[side] for pair in both))


def _write_tokens(
    data: config.DataConfig,
    split: str,
    pairs: Iterator[tuple[str, str]],
    directory: pathlib.Path,
    vocab: vocabulary.Vocabulary,
    *,
    seed: int,
) -> dict[str, int]:
    counts = {"kept": 0, "empty": 0, "too_long": 0}
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                contextlib.closing(
                    token_files.TokenWriter(
                        directory / f"{split}.{side}", vocab_size=vocab.size
                    )
                )
            )
            for side in ("source", "target")
        ]
        dropout = data.subword_dropout if split == "train" else 0.0
        for index in itertools.count():
            chunk = list(itertools.islice(pairs, CHUNK_LINES))
            if not chunk:
                break
            kept = []
            sides = [
                vocab.encode(
                    lines, target=bool(side), dropout=dropout, seed=(seed, index, side)
                )
                for side, lines in enumerate(zip(*chunk, strict=True))
            ]
            for pair in zip(*sides, strict=True):
                if not all(pair):
                    counts["empty"] += 1
                elif max(map(len, pair)) + 1 > data.max_length:
                    counts["too_long"] += 1
                else:
                    counts["kept"] += 1
                    kept.append(pair)
            for side, writer in enumerate(writers):
                writer.write([pair[side] for pair in kept])
    return counts


def _report(split: str, counts: dict[str, int], max_length: int, samples: int) -> str:
    times = f", each segmented {samples} times" if samples > 1 else ""
    return (
        f"tokenised {split}: {counts['kept']:,} pairs kept{times}; left out: "
        f"{counts['too_long']:,} over {max_length} tokens, {counts['empty']:,} with an "
        "empty side"
    )
