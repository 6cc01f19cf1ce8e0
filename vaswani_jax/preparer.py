"""Make vocabulary and token files from text: `vaswani_jax.prepare`.

    import vaswani_jax
    text = {"data.text_directory": "text"}
    text |= {"data.source_locale": "en", "data.target_locale": "fr"}
    config = vaswani_jax.load_config("own_text", text)
    print(vaswani_jax.prepare(config, "runs/own").describe())

The program `prepare_data` calls it, too.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Mapping

from vaswani_jax.core import remote, seeds
from vaswani_jax.core.config import Config
from vaswani_jax.data import (
    manifest,
    mixture,
    prepared,
    standard_input,
    training_batches,
    treebank_checks,
)
from vaswani_jax.data.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Preparation:
    """Prepared data of a run.

    Attributes:
        directory: Where vocabulary, token files and manifest.json lie.
        data: What they hold.
        epochs: Of several corpora, what each gives to an epoch of each stage; else
            empty.
    """

    directory: pathlib.Path
    data: prepared.PreparedData
    epochs: tuple[mixture.EpochShares, ...]

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of both sides."""
        return self.data.vocabulary

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """For each split, the pairs "kept", and left out as "empty" or "too_long"."""
        return self.data.counts

    @property
    def cleaning(self) -> Mapping[str, int]:
        """The number of training pairs that each rule of `data.clean_*` left out."""
        return self.data.manifest.cleaning

    def describe(self) -> str:
        """Return in words the size of the vocabulary and the pairs of each split."""
        return self.data.describe()

    def format_epochs(self) -> str:
        """Return the epochs as tables of text; "" without `data.corpora`."""
        return "\n".join(epoch.format() for epoch in self.epochs)


def prepare(
    config: Config, workdir: str | os.PathLike[str], *, rebuild_data: bool = False
) -> Preparation:
    """Prepare the data of a run without training, or open what is up to date.

    `train` with the same arguments continues from there. Batches, and so the epochs,
    depend on `config` alone.

    Args:
        config: All settings, as `load_config` returns them. A text may be standard
            input: "-" for lines, "-#2" for a column.
        workdir: The directory of the run, or its URL (gs://, s3://).
        rebuild_data: Prepare the data again, even if they are up to date.

    Returns:
        The vocabulary, the pairs of each split, and what each corpus gives to an epoch.

    Raises:
        ValueError: The text cannot be used, the directory has data of another text or
            of other settings, or another program uses the workdir in which data would
            be written. The message has the file, the line and the rule.
        TypeError: `config` is no `Config`.
        OSError: A file is missing, or cannot be read or written.
        ImportError: A package that the settings need is not installed.
    """
    if not isinstance(config, Config):
        raise TypeError(
            f"config must be a Config, as load_config returns it; got {config!r}"
        )
    run = remote.open_workdir(os.fspath(workdir))
    seeds.refuse_seeds_directory(run.path)
    run.pull()
    if config.seed > seeds.MAX_SEED and not _has_checkpoints(run.path):
        seeds.check_range(seed=config.seed, num_seeds=1)  # as training does
    directory = prepared.data_directory(config.data, run.path)
    with contextlib.ExitStack() as stack:
        writes_here = not config.data.directory
        if rebuild_data or (writes_here and not (directory / manifest.NAME).exists()):
            stack.enter_context(run.hold())
        with standard_input.copy_to_file(config.data, directory) as text:
            data = prepared.open_or_prepare(
                dataclasses.replace(config, data=text),
                directory,
                rebuild=rebuild_data,
                required_fingerprint=lambda: _recorded_vocabulary(run.path),
            )
        prepared.push(config.data, run)
    if data.vocabulary.is_trees:
        treebank_checks.warn_of_lengths(
            data.token_pairs("train"),
            settings=config,
            counts=data.counts["train"],
            vocabulary=data.vocabulary,
        )
    return Preparation(directory, data, _epoch_shares(config, data))


def _epoch_shares(
    config: Config, data: prepared.PreparedData
) -> tuple[mixture.EpochShares, ...]:
    if not config.data.training_corpora:
        return ()
    pairs, sizes = data.token_pairs("train"), data.manifest.corpus_sizes
    batches = training_batches.make_training_batches(
        config.data, pairs, seed=config.seed, corpus_sizes=sizes
    )
    return training_batches.epoch_shares(
        config.data, pairs, batches, corpus_sizes=sizes
    )


def _has_checkpoints(workdir: pathlib.Path) -> bool:
    from vaswani_jax.checkpoints import select  # late, as below

    return select.has_checkpoints(workdir)


def _recorded_vocabulary(workdir: pathlib.Path) -> str | None:
    # Imported late: it loads JAX, which data that are up to date do not need.
    from vaswani_jax.checkpoints import select

    return select.recorded_vocabulary(workdir)
