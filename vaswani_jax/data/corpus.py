"""Section 5.1: from text to a vocabulary and token files, once, with a fingerprint."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from vaswani_jax.core import config, digests, remote
from vaswani_jax.data import (
    directories,
    manifest,
    marian_vocabulary,
    progress,
    sources,
    token_files,
    vocabulary,
)

CHUNK_LINES = 10_000
Log = manifest.Log


@dataclasses.dataclass(frozen=True)
class PreparedData:
    """A directory that `prepare` has finished."""

    directory: pathlib.Path
    vocabulary: vocabulary.Vocabulary
    counts: dict[str, dict[str, int]]

    def corpus(self, split: str) -> token_files.Corpus:
        """The token files of a split: its pairs within `max_length`.

        Raises:
            ValueError: A file is not what was written.
        """
        manifest.check_files(self.directory, split)
        return token_files.Corpus(
            token_files.TokenFile(self.directory / f"{split}.source"),
            token_files.TokenFile(self.directory / f"{split}.target"),
        )

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Every source and target line of "valid" or "test", as they were.

        Raises:
            ValueError: A file is not what was written.
        """
        manifest.check_files(self.directory, split)
        sides = []
        for side in ("source", "target"):
            path = self.directory / f"{split}.{side}.txt"
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing; pass --rebuild_data")
            sides.append(list(sources.lines(path)))
        return sides[0], sides[1]

    def training_text(self) -> str:
        """16 hexadecimal digits that change with the text of the training split."""
        found = manifest.identity(manifest.read(self.directory)["text"]["train"])
        whole = json.dumps(found, sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    def text_fingerprint(self, split: str) -> str:
        """16 hexadecimal digits that change with any line of a split."""
        both = "\0".join("\n".join(side) for side in self.text(split))
        return hashlib.sha256(both.encode()).hexdigest()[:16]


def open_or_prepare(
    settings: config.Config,
    directory: pathlib.Path,
    *,
    rebuild: bool,
    trained_with: str | None,
    given: vocabulary.Vocabulary | None = None,
    log: Log,
) -> PreparedData:
    """The prepared data of a configuration, made if missing.

    Processes that prepare the same directory do so one after the other, and the
    later ones find it done.

    Args:
        settings: What is wanted.
        directory: Where it is or will be.
        rebuild: Whether to prepare again what is there.
        trained_with: The fingerprint of the vocabulary that checkpoints need, if
            there are any; data with another one is not put in place.
        given: A vocabulary to use instead of one that is learned from the text.
        log: Told of each step.

    Raises:
        ValueError: The directory holds data of another text or of other settings and
            `rebuild` is false; the vocabulary is not that of `trained_with`; or the
            text cannot be used, see `sources.pairs`.
        FileNotFoundError: The text is missing and there is no prepared data.
    """
    with directories.locked(directory):
        directories.recover(directory, mark=manifest.NAME)
        prepared = (directory / manifest.NAME).exists()
        if prepared and not rebuild:
            manifest.refuse_difference(settings, directory, text=True, log=log)
            found = open_prepared(directory)
            if given and given.fingerprint != found.vocabulary.fingerprint:
                raise ValueError(
                    f"{directory} was prepared with the vocabulary "
                    f"{found.vocabulary.fingerprint}, but --init_from needs "
                    f"{given.fingerprint}: name another --workdir"
                )
            return found
        if directory.exists() and not prepared and any(directory.iterdir()):
            raise ValueError(
                f"{directory} is not empty and holds no prepared data; name another "
                "config.data.directory"
            )
        unfinished = directories.start(directory)
        record = _prepare(settings.data, settings.seed, unfinished, given, log)
        if trained_with not in (None, record["vocabulary"]):
            shutil.rmtree(unfinished)
            raise ValueError(
                "this text and these settings give the vocabulary "
                f"{record['vocabulary']}, but the checkpoints were trained with the "
                f"vocabulary {trained_with}: {directory} stays as it was; name "
                "another --workdir"
            )
        (unfinished / manifest.NAME).write_text(json.dumps(record, indent=1))
        directories.finish(directory, unfinished)
        return open_prepared(directory)


def open_prepared(directory: pathlib.Path) -> PreparedData:
    """What an earlier `open_or_prepare` left.

    Raises:
        FileNotFoundError: Nothing was prepared there.
        ValueError: The vocabulary is not the one the data was prepared with.
    """
    record = manifest.read(directory)
    vocab = marian_vocabulary.load(directory)
    if vocab.fingerprint != record["vocabulary"]:
        raise ValueError(
            f"the vocabulary in {directory} has the fingerprint "
            f"{vocab.fingerprint}, but the data was prepared with "
            f"{record['vocabulary']}; restore it or pass --rebuild_data"
        )
    return PreparedData(directory, vocab, record["counts"])


def _prepare(
    data: config.DataConfig,
    seed: int,
    directory: pathlib.Path,
    given: vocabulary.Vocabulary | None,
    log: Log,
) -> dict[str, Any]:
    sources.prepare(data, log=log)
    splits = sources.splits(data)
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
        vocabulary.seed_sampling(seed)
        chosen = _repeated(data, split, seed, total=totals[split], log=log)
        counts[split] = _write_tokens(data, split, chosen, directory, vocab)
        samples = data.subword_samples if split == "train" else 1
        log(_report(split, counts[split], data.max_length, samples))
        if not counts[split]["kept"]:
            raise ValueError(
                f"no pair of {split!r} can be used: {counts[split]} with "
                f"config.data.max_length={data.max_length}"
            )
    return {
        "settings": {key: getattr(data, key) for key in manifest.SETTINGS},
        "text": {
            split: sources.text_record(data, split, seed=seed, known={})
            for split in splits
        },
        "vocabulary": vocab.fingerprint,
        "counts": counts,
        "files": digests.of(
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
        while chunk := list(itertools.islice(pairs, CHUNK_LINES)):
            kept = []
            sides = [
                vocab.encode(side, target=bool(number), dropout=dropout)
                for number, side in enumerate(zip(*chunk, strict=True))
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


def data_directory(data: config.DataConfig, workdir: pathlib.Path) -> pathlib.Path:
    """Where the prepared data lies: `config.data.directory`, or WORKDIR/data."""
    if not data.directory:
        return workdir / "data"
    return remote.here(data.directory, mark=manifest.NAME)
