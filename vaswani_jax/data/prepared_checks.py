"""Compare prepared data with what settings name: settings, text and vocabulary.

What reads text is imported by the functions that need it: a translation does not.
"""

import logging
import pathlib
from collections.abc import Callable, Sequence

from vaswani_jax.core import config
from vaswani_jax.data.manifest import Difference, Manifest
from vaswani_jax.data.subwords import load_configured
from vaswani_jax.data.tokenizer import WORD_START
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


def check_has_text(directory: pathlib.Path, recorded: Manifest) -> None:
    """Refuse to train on the data of an imported model.

    Raises:
        ValueError: It has a vocabulary and no text.
    """
    if not recorded.text:
        raise ValueError(
            f"{directory} has an imported model's vocabulary and no text: decode and "
            "export use it. A run of your own starts from it in another --workdir, by "
            "vaswani train --init_from"
        )


def describe(directory: pathlib.Path, differences: Sequence[Difference]) -> str:
    """Return in words how prepared data differs from what the settings name."""
    reasons = "; ".join(difference.text for difference in differences)
    return f"{directory} was prepared from other data: {reasons}"


def difference_error(
    data: config.DataConfig,
    directory: pathlib.Path,
    *,
    differences: Sequence[Difference],
) -> ValueError:
    """Return the error for data of other settings or text that no checkpoint needs."""
    commands = "(`vaswani prepare` or `vaswani train`, with --rebuild_data)"
    if data.directory:
        advice = (
            "Restore the settings, or name another config.data.directory; prepare it "
            f"again {commands} only if no other run uses it"
        )
    else:
        advice = (
            f"Prepare it again {commands}, restore the settings, or name another "
            "--workdir"
        )
    return ValueError(f"{describe(directory, differences)}. {advice}")


def replacement_error(
    data: config.DataConfig,
    directory: pathlib.Path,
    *,
    differences: Sequence[Difference],
) -> ValueError:
    """Return the error of data that checkpoints need and that would be other data."""
    advice = (
        "The run has checkpoints that need this data: restore the settings and the "
        "text, or name another --workdir"
    )
    if data.directory:  # Another run may have prepared it, with other settings.
        advice = (
            "The run has checkpoints: restore their settings and text, or name another "
            "config.data.directory"
        )
    return ValueError(f"{describe(directory, differences)}. {advice}")


def check_owner(
    data: config.DataConfig,
    directory: pathlib.Path,
    *,
    recorded: Manifest,
    required: str,
) -> None:
    """Refuse prepared data whose vocabulary is not that of the checkpoints.

    Raises:
        ValueError: Another run has prepared it.
    """
    if recorded.vocabulary == required:
        return
    advice = (
        "name another config.data.directory"
        if data.directory
        else "prepare it again (`vaswani train` with --rebuild_data)"
    )
    raise ValueError(
        f"{directory} has the data of another run (vocabulary {recorded.vocabulary}; "
        f"the checkpoints need {required}): {advice}"
    )


def name_data_setting(data: config.DataConfig) -> str:
    """Return the name of the setting that places the prepared data, for advice."""
    return "config.data.directory" if data.directory else "--workdir"


def text_differences(
    settings: config.Config, recorded: Manifest, *, may_be_missing: bool
) -> list[Difference]:
    """Return how the text of all splits, and the seed, differ from the recorded ones.

    Args:
        settings: Name the text.
        recorded: Its record when it was prepared.
        may_be_missing: Whether a missing text is logged, not an error.

    Raises:
        FileNotFoundError: A text is missing.
        ImportError: A generated text needs a package that is missing.
    """
    from vaswani_jax.data import sources, training_text

    source = settings.data.source
    if recorded.settings.get("source", source) != source:
        return []  # The difference in `data.source` is reported instead.
    splits = sources.splits(settings.data)
    differences = []
    if "valid" in recorded.text and "valid" not in splits:
        key = "valid_trees" if settings.data.source == "treebank" else "valid_source"
        text = f"config.data.{key} is empty, but a validation set is there"
        differences.append(Difference(text, is_fixed=False))
    for split in splits:
        is_train = split == "train"
        record = recorded.text.get(split)
        if record is None:
            text = f"the split {split!r} was not there"
            differences.append(Difference(text, is_fixed=is_train))
            continue
        try:
            current = training_text.text_record(
                settings.data,
                split,
                seed=settings.seed,
                previous=record,
                may_be_missing=may_be_missing,
            )
        except (FileNotFoundError, ImportError) as error:  # Generators need packages.
            if not may_be_missing:
                raise
            logger.info(f"note: {error}; the prepared {split!r} data is used")
            continue
        if sources.content_identity(current) == sources.content_identity(record):
            continue
        versions = [entry.get("version") for entry in (current, record)]
        if all(versions) and len(set(versions)) > 1:
            text = f"the generator of {split!r} is {versions[0]}, was {versions[1]}"
            differences.append(Difference(text, is_fixed=is_train))
        elif current.get("seed") == record.get("seed"):
            names = (
                training_text.changed_corpora(record, current)
                if settings.data.training_corpora
                else []
            )
            text_name = " and ".join(f"corpus {name!r}" for name in names) or repr(
                split
            )
            text = f"the text of {text_name} has changed"
            differences.append(Difference(text, is_fixed=is_train))
        if is_train and current.get("seed") != record.get("seed"):
            # The other splits have the same seed.
            text = f"config.seed is {current.get('seed')}, was {record.get('seed')}"
            differences.append(Difference(text, is_fixed=True))
    if recorded.seed not in (None, settings.seed):
        text = f"config.seed is {settings.seed}, was {recorded.seed}"
        differences.append(Difference(text, is_fixed=True))
    return differences


def check_required(actual: str, required: str, directory: pathlib.Path) -> None:
    """Refuse a vocabulary that is not that of the checkpoints.

    Raises:
        ValueError: The fingerprints differ.
    """
    if actual != required:
        raise ValueError(
            f"this text and these settings give the vocabulary {actual}, but the "
            f"checkpoints were trained with the vocabulary {required}: "
            f"{directory} stays as it was; name another --workdir, or the --init_from "
            "that the run began with"
        )


def check_initial_vocabulary(
    data: config.DataConfig,
    directory: pathlib.Path,
    *,
    recorded: Manifest,
    initial: Vocabulary | None,
) -> None:
    """Refuse prepared data whose vocabulary is not that of --init_from.

    Raises:
        ValueError: The fingerprints differ.
    """
    if initial and initial.fingerprint != recorded.vocabulary:
        raise ValueError(
            f"{directory} was prepared with the vocabulary {recorded.vocabulary}, but "
            f"--init_from needs {initial.fingerprint}: name another "
            f"{name_data_setting(data)}"
        )


def check_configured(
    data: config.DataConfig,
    expected: Vocabulary,
    *,
    directory: pathlib.Path | None,
) -> None:
    """Refuse settings of another vocabulary than the one that is there.

    Args:
        data: Names the files of vocabularies, which may be gone.
        expected: The vocabulary.
        directory: The prepared data that it is of; None for that of --init_from.

    Raises:
        ValueError: The settings name another vocabulary, or share it otherwise.
    """
    origin = f"{directory}" if directory else "the model of --init_from"
    sharing = "shared" if expected.is_shared else "separate"
    if data.vocabulary_sharing != sharing:
        raise ValueError(
            f"config.data.vocabulary_sharing={data.vocabulary_sharing}, but {origin} "
            f"has {sharing} vocabularies: set config.data.vocabulary_sharing={sharing}"
        )
    for key, subwords in (
        ("vocabulary", expected.source),
        ("target_vocabulary", expected.target),
    ):
        path = getattr(data, key)
        if not path:
            continue
        try:
            named_subwords = load_configured(path, key=key)
        except FileNotFoundError as error:
            logger.info(f"note: {error}; the prepared vocabulary is used")
            continue
        # The model of --init_from may have more symbols than these settings.
        new_spellings = subwords.spellings[named_subwords.size :]
        symbols = [spelling.lstrip(WORD_START) for spelling in new_spellings]
        named_subwords = named_subwords.extend([*symbols, *data.symbols])
        if named_subwords.fingerprint != subwords.fingerprint:
            raise ValueError(
                f"config.data.{key}={path} has the fingerprint "
                f"{named_subwords.fingerprint}, but {origin} has "
                f"{subwords.fingerprint}: restore the file, leave config.data.{key} "
                "empty to use the vocabulary that is there, or name another "
                f"{name_data_setting(data)}"
            )


def warn_of_given_vocabulary(
    data: config.DataConfig,
    recorded: Manifest,
    directory: pathlib.Path,
    *,
    required_fingerprint: Callable[[], str | None],
) -> None:
    """Warn of settings that name no vocabulary where the data was prepared with one.

    They are no error: prepared data may be used without the file. A run that has
    checkpoints keeps its vocabulary.
    """
    keys = [key for key in recorded.given_vocabularies if not getattr(data, key)]
    if not keys or required_fingerprint() is not None:
        return
    for key in keys:
        logger.warning(
            f"config.data.{key} is empty, but {directory} was prepared with a "
            "file: its vocabulary is used. Name the file, learn a vocabulary "
            f"with --rebuild_data, or name another {name_data_setting(data)}"
        )
