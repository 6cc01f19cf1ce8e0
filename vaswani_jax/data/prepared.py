"""Section 5.1: prepared data, made once and never mixed up with another."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import pathlib
import re

from vaswani_jax.core import config, files, remote
from vaswani_jax.data import (
    manifest,
    marian_vocabulary,
    prepare,
    sources,
    token_files,
    vocabulary,
)

# All that a directory of prepared data has in it.
OWN = re.compile(
    rf"{manifest.NAME}|vocabulary\.(model|json)|(source|target)\.spm"
    r"|(train|valid|test)\.(source|target)\.(offsets|u?int(16|32)|txt)"
)


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
    log: manifest.Log,
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
    directory = directory.resolve()  # A link stays one.
    prepared = (directory / manifest.NAME).exists()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(directory))
        except OSError as error:
            # Nothing is written where nothing can be: who only reads needs no lock.
            read_only = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
            if rebuild or not (prepared and read_only):
                raise
        files.recover(directory, mark=manifest.NAME)
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
        if directory.exists():
            _refuse_others(directory, prepared=prepared)
        with files.replacing(directory) as unfinished:
            record = prepare.prepare(
                settings.data, unfinished, seed=settings.seed, given=given, log=log
            )
            if trained_with not in (None, record["vocabulary"]):
                raise ValueError(
                    "this text and these settings give the vocabulary "
                    f"{record['vocabulary']}, but the checkpoints were trained with "
                    f"the vocabulary {trained_with}: {directory} stays as it was; "
                    "name another --workdir"
                )
            (unfinished / manifest.NAME).write_text(json.dumps(record, indent=1))
        return open_prepared(directory)


def _refuse_others(directory: pathlib.Path, *, prepared: bool) -> None:
    """A directory that is replaced has prepared data in it and nothing else."""
    names = sorted(path.name for path in directory.iterdir())
    if not prepared and names:
        raise ValueError(
            f"{directory} is not empty and holds no prepared data; name another "
            "config.data.directory"
        )
    if others := [name for name in names if not OWN.fullmatch(name)]:
        raise ValueError(
            f"{directory} has files that are no prepared data ({others[0]}): preparing "
            "again would remove them; move them, or name another config.data.directory"
        )


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


def data_directory(data: config.DataConfig, workdir: pathlib.Path) -> pathlib.Path:
    """Where the prepared data lies: `config.data.directory`, or WORKDIR/data.

    Raises:
        ValueError: It is a file, or the root of all.
    """
    if not data.directory:
        return workdir / "data"
    found = remote.local_copy(data.directory, mark=manifest.NAME)
    if (found.exists() and not found.is_dir()) or not found.resolve().name:
        raise ValueError(
            f"config.data.directory={data.directory} must be a directory for prepared "
            "data alone"
        )
    return found
