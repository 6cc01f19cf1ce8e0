"""Open the prepared data of a run, or prepare it if it is missing.

What reads text is imported by the functions that need it: a translation does not.
"""

import contextlib
import dataclasses
import errno
import hashlib
import json
import logging
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Mapping

from vaswani_jax.core import config, data_config, files, remote, tensor_file
from vaswani_jax.data import (
    manifest,
    prepared_checks,
    text_files,
    token_files,
    vocabulary,
)
from vaswani_jax.data.manifest import Manifest
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

# The names of all files of prepared data.
PREPARED_FILE = re.compile(
    rf"{manifest.NAME}|(vocabulary|source|target)\.(model|json|spm)"
    r"|target\.symbols\.json|cleaning\.tsv"
    r"|(train|valid|test)\.(source|target)\.(offsets|u?int(16|32)|txt)"
)


@dataclasses.dataclass(frozen=True)
class PreparedData:
    """A directory of prepared data."""

    directory: pathlib.Path
    vocabulary: Vocabulary
    manifest: Manifest

    @property
    def counts(self) -> Mapping[str, dict[str, int]]:
        """For each split, how many pairs were kept and left out."""
        return self.manifest.counts

    def describe(self) -> str:
        """Return in words the size of the vocabulary and the pairs of each split."""
        parts = [self.vocabulary.describe()]
        for split, counts in self.counts.items():
            left_out = counts["empty"] + counts["too_long"]
            left_out += sum(self.manifest.cleaning.values()) if split == "train" else 0
            hint = f" ({left_out:,} left out)" if left_out else ""
            parts.append(f"{split}: {counts['kept']:,} pairs{hint}")
        return "; ".join(parts)

    def token_pairs(self, split: str) -> token_files.TokenPairs:
        """Open the token files of a split: its pairs within `max_length`.

        Raises:
            ValueError: A file is missing or has changed since it was prepared.
            FileNotFoundError: A file whose digest was not recorded is missing.
        """
        self.manifest.check_files(self.directory, split)
        return token_files.TokenPairs(
            token_files.TokenFile.open(self.directory / f"{split}.source"),
            token_files.TokenFile.open(self.directory / f"{split}.target"),
        )

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Return every source and target line of "valid" or "test", unchanged.

        Raises:
            ValueError: A file is missing or has changed since it was prepared.
            FileNotFoundError: A file whose digest was not recorded is missing.
        """
        self.manifest.check_files(self.directory, split)
        sides = []
        for side in ("source", "target"):
            path = self.directory / f"{split}.{side}.txt"
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing; pass --rebuild_data")
            sides.append(list(text_files.read_lines(path)))
        return sides[0], sides[1]

    def training_text_fingerprint(self) -> str:
        """Return 16 hexadecimal digits that change with the training text.

        Checkpoints have it, so it stays as it was computed for them: with the paths of
        trees, which `sources.content_identity` leaves out.
        """
        identity = {
            key: entry.get("sha256") if isinstance(entry, dict) else entry
            for key, entry in self.manifest.text["train"].items()
        }
        return _fingerprint(json.dumps(identity, sort_keys=True))

    def text_fingerprint(self, split: str) -> str:
        """Return 16 hexadecimal digits that change with any line of a split.

        "" if there is no such split.
        """
        if split not in self.counts:
            return ""
        return _fingerprint("\0".join("\n".join(side) for side in self.text(split)))


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def open_prepared(directory: pathlib.Path) -> PreparedData:
    """Open prepared data, whatever it was prepared from.

    Raises:
        FileNotFoundError: Nothing was prepared there, or a file of the vocabulary is
            missing.
        ValueError: The manifest or the vocabulary is damaged, or the vocabulary is not
            the one the data was prepared with.
    """
    record = manifest.read_manifest(directory)
    loaded = vocabulary.load(directory)
    if loaded.fingerprint != record.vocabulary:
        raise ValueError(
            f"the vocabulary in {directory} has the fingerprint "
            f"{loaded.fingerprint}, but the data was prepared with "
            f"{record.vocabulary}; restore it or pass --rebuild_data"
        )
    return PreparedData(directory, loaded, record)


def open_matching(
    settings: config.Config,
    directory: pathlib.Path,
    *,
    compare_text: bool,
    required_fingerprint: Callable[[], str | None] = lambda: None,
) -> PreparedData:
    """Open prepared data, after checking what it was prepared from.

    Args:
        settings: The settings it must have been prepared with.
        directory: Where it is.
        compare_text: Whether the text must be the same, too. A text that is missing
            is logged, not compared.
        required_fingerprint: Called if something differs: returns the fingerprint of
            the vocabulary that checkpoints need, or None if there are none. A run that
            has checkpoints prepares no other training data.

    Raises:
        FileNotFoundError: Nothing was prepared there.
        ValueError: A setting or a text differs (the message names all that do), or
            the data is damaged.
    """
    data = open_prepared(directory)
    if compare_text:
        prepared_checks.check_has_text(directory, data.manifest)
    differences = data.manifest.setting_differences(settings.data)
    if compare_text:
        differences += prepared_checks.text_differences(
            settings, data.manifest, may_be_missing=True
        )
    is_fixed = any(difference.is_fixed for difference in differences)
    fingerprint = required_fingerprint() if is_fixed else None
    if fingerprint is not None:
        prepared_checks.check_owner(
            settings.data, directory, recorded=data.manifest, required=fingerprint
        )
        raise prepared_checks.replacement_error(
            settings.data, directory, differences=differences
        )
    if differences:
        raise prepared_checks.difference_error(
            settings.data, directory, differences=differences
        )
    return data


def _check_replacement(
    settings: config.Config, directory: pathlib.Path, *, required: str
) -> manifest.Manifest | None:
    """Refuse to replace the data that checkpoints need with other data.

    Returns:
        The manifest of the data; None if there is none, if it is damaged, or if the
        workdir has the data of another run.

    Raises:
        ValueError: A setting or a text that a run must keep differs, or
            `data.directory` has the data of another run.
        FileNotFoundError: A text is missing.
    """
    try:
        recorded = manifest.read_manifest(directory)
    except (OSError, ValueError):
        return None
    prepared_checks.check_has_text(directory, recorded)
    if recorded.vocabulary != required and not settings.data.directory:
        return None
    prepared_checks.check_owner(
        settings.data, directory, recorded=recorded, required=required
    )
    differences = [
        difference
        for difference in (
            *recorded.setting_differences(settings.data),
            *prepared_checks.text_differences(settings, recorded, may_be_missing=False),
        )
        if difference.is_fixed
    ]
    if differences:
        raise prepared_checks.replacement_error(
            settings.data, directory, differences=differences
        )
    return recorded


def _saved_vocabulary(directory: pathlib.Path, fingerprint: str) -> Vocabulary | None:
    """Return the vocabulary in a directory if it is whole and has this fingerprint."""
    try:
        saved = vocabulary.load(directory)
    except (OSError, ValueError):
        return None
    return saved if saved.fingerprint == fingerprint else None


def open_or_prepare(
    settings: config.Config,
    directory: pathlib.Path,
    *,
    rebuild: bool,
    required_fingerprint: Callable[[], str | None] = lambda: None,
    initial_vocabulary: Vocabulary | None = None,
    find_lost_vocabulary: Callable[[], Vocabulary | None] = lambda: None,
) -> PreparedData:
    """Open the prepared data of a configuration, after preparing it if it is missing.

    Processes that prepare the same directory do so one after the other, and the
    later ones open what the first has prepared.

    Args:
        settings: The configuration.
        directory: Where the data is or will be.
        rebuild: Whether to replace data that is there.
        required_fingerprint: Called if data is prepared or differs: returns the
            fingerprint of the vocabulary that checkpoints need, or None if there are
            none. If it returns one, `rebuild` reuses the saved vocabulary, and refuses
            to replace the training data with other data.
        initial_vocabulary: A vocabulary to use instead of learning one.
        find_lost_vocabulary: Called if checkpoints need a vocabulary that is not
            saved: returns it, or None.

    Raises:
        ValueError: The directory holds data of another text or of other settings, and
            `rebuild` is false or checkpoints need it; the vocabulary is not the
            required one; or the text cannot be used, see `sources.pairs`.
        FileNotFoundError: The text is missing and there is no prepared data.
        ImportError: A package that the settings need is not installed.
    """
    directory = directory.resolve()  # A link stays a link.
    manifest_path = directory / manifest.NAME
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(directory))
        except OSError as error:
            # To read prepared data on a read-only disk, no lock is needed.
            is_read_only = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
            if rebuild or not (manifest_path.exists() and is_read_only):
                raise
        files.recover(directory, mark=manifest.NAME)
        if manifest_path.exists() and not rebuild:
            data = open_matching(
                settings,
                directory,
                compare_text=True,
                required_fingerprint=required_fingerprint,
            )
            prepared_checks.check_initial_vocabulary(
                settings.data,
                directory,
                recorded=data.manifest,
                initial=initial_vocabulary,
            )
            prepared_checks.check_configured(
                settings.data, data.vocabulary, directory=directory
            )
            if not initial_vocabulary:
                prepared_checks.warn_of_given_vocabulary(
                    settings.data,
                    data.manifest,
                    directory,
                    required_fingerprint=required_fingerprint,
                )
            return data
        if directory.exists():
            _refuse_other_files(directory)
        if initial_vocabulary:
            prepared_checks.check_configured(
                settings.data, initial_vocabulary, directory=None
            )
        fingerprint = required_fingerprint()
        replaced = None
        if fingerprint is not None:
            from vaswani_jax.data import sources

            # The text must be there to be compared with the recorded one.
            sources.prepare(settings.data)
            replaced = _check_replacement(settings, directory, required=fingerprint)
            if saved_vocabulary := _saved_vocabulary(directory, fingerprint):
                prepared_checks.check_configured(
                    settings.data, saved_vocabulary, directory=directory
                )
            initial_vocabulary = (
                saved_vocabulary or initial_vocabulary or find_lost_vocabulary()
            )
            if initial_vocabulary:
                prepared_checks.check_required(
                    initial_vocabulary.fingerprint, fingerprint, directory
                )
        from vaswani_jax.data import prepare

        with files.replacing(directory) as unfinished:
            record = prepare.prepare(
                settings.data,
                unfinished,
                seed=settings.seed,
                vocabulary=initial_vocabulary,
            )
            if fingerprint is not None:
                prepared_checks.check_required(
                    record.vocabulary, fingerprint, directory
                )
            if replaced and settings.data.source == "treebank":
                # Checkpoints know the same trees by their earlier paths.
                record = record.with_paths_of(replaced)
            is_generated = settings.data.source in data_config.GENERATED
            if depends_on_seed(settings.data) and not is_generated:
                record = dataclasses.replace(record, seed=settings.seed)
            record.write(unfinished)
        return open_prepared(directory)


def depends_on_seed(data: config.DataConfig) -> bool:
    """Return whether another seed prepares other data from the same text."""
    return (
        data.source in data_config.GENERATED
        or data.subword_dropout > 0
        or any(corpus.is_noisy for corpus in data.training_corpora)
    )


def link_data(source: pathlib.Path, directory: pathlib.Path) -> None:
    """Hard-link prepared data into a directory that does not exist.

    Both directories share the files, so files are replaced, never edited.
    """
    directory = directory.resolve()
    with files.locked(directory):
        files.recover(directory, mark=manifest.NAME)
        if directory.exists() or not (source / manifest.NAME).exists():
            return
        with files.replacing(directory) as unfinished:
            for path in source.iterdir():
                try:
                    os.link(path, unfinished / path.name)
                except OSError:  # Not every file system has links.
                    shutil.copy2(path, unfinished / path.name)


def _refuse_other_files(directory: pathlib.Path) -> None:
    """Raise if replacing a directory would remove files that are no prepared data."""
    names = sorted(path.name for path in directory.iterdir())
    if names and manifest.NAME not in names:
        raise ValueError(
            f"{directory} is not empty and holds no prepared data; name another "
            "config.data.directory"
        )
    if other_names := [name for name in names if not PREPARED_FILE.fullmatch(name)]:
        raise ValueError(
            f"{directory} has files that are no prepared data ({other_names[0]}): "
            "preparing again would remove them; move them, or name another "
            "config.data.directory"
        )


def push(data: config.DataConfig, workdir: files.Directory) -> None:
    """Send prepared data to the store that keeps the workdir or data.directory.

    Raises:
        OSError: A store cannot be written.
        SupersededError: The store has a later start, or other data since.
    """
    workdir.push(folder="data")
    if data.directory:
        remote.open_directory(data.directory).push()


def has_directory(data: config.DataConfig, workdir: pathlib.Path) -> bool:
    """Return False for a model in one file whose settings name no prepared data."""
    return bool(data.directory) or not tensor_file.is_tensor_file(workdir)


def data_directory(data: config.DataConfig, workdir: pathlib.Path) -> pathlib.Path:
    """Return where prepared data lies: `config.data.directory`, or WORKDIR/data.

    Raises:
        ValueError: It is a file, or the root directory, or the workdir is a model's
            file, which has no text.
        OSError: The store of `config.data.directory` cannot be read.
    """
    if not has_directory(data, workdir):
        raise ValueError(
            f"{workdir} is a model in one file, without text: name the prepared data "
            "of its run, --config.data.directory=RUN/data"
        )
    if not data.directory:
        return workdir / "data"
    directory = remote.open_directory(data.directory).pull(mark=manifest.NAME)
    if (directory.exists() and not directory.is_dir()) or not directory.resolve().name:
        raise ValueError(
            f"config.data.directory={data.directory} must be a directory for prepared "
            "data alone"
        )
    return directory


def find_directory(
    data: config.DataConfig, workdir: pathlib.Path
) -> pathlib.Path | None:
    """Return where the prepared data of a run lies; None if it has none.

    Raises:
        ValueError, OSError: As `data_directory`, for the data that settings name.
    """
    if not has_directory(data, workdir):
        return None
    directory = data_directory(data, workdir)
    return directory if (directory / manifest.NAME).exists() else None
