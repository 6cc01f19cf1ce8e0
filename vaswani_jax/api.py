"""Load a trained model from Python: `vaswani_jax.load`.

    import vaswani_jax
    translator = vaswani_jax.load("runs/demo")
    translator.translate(["3 hours ago"])

The programs that use a trained model load it here, too.
"""

import json
import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.checkpoints import bundle, select
from vaswani_jax.core import (
    compilation_cache,
    config,
    data_rules,
    parsing,
    presets,
    remote,
    seeds,
    tensor_file,
)
from vaswani_jax.data import prepared
from vaswani_jax.inference.ensemble import Member, load_members
from vaswani_jax.inference.translator import Translator

logger = logging.getLogger(__name__)
__all__ = ["Translator", "load", "load_config"]


def load(
    run: str | os.PathLike[str],
    *,
    checkpoint: str | int = "averaged",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    settings: config.Config | None = None,
    overrides: Mapping[str, Any] | None = None,
    data: prepared.PreparedData | None = None,
) -> Translator:
    """Load a trained model, ready to translate.

    >>> translator = load("runs/demo", checkpoint="best")  # doctest: +SKIP
    >>> translator.translate(["3 hours ago"])  # doctest: +SKIP
    ['vor 3 Stunden']

    Keeps compiled programs for later starts, as `train` does, by options of JAX for the
    whole process.

    Args:
        run: A workdir, `WORKDIR@CHECKPOINT` or FILE.safetensors (see
            `Translator.save`), on this machine or as a URL (gs://, s3://, ...), or a
            directory that transformers' `MarianMTModel` loads, as the OPUS models are.
        checkpoint: "averaged" (what training ends with), "newest", "best", "average:N"
            (the mean of the last N) or the number of a step; several, separated by
            commas, form an ensemble. Ignored for a MarianMT directory; a file has one.
        ensemble: More runs of the same vocabulary for an ensemble, each a WORKDIR,
            `WORKDIR@CHECKPOINT` or FILE.safetensors.
        settings: All settings; by default those that the run recorded.
        overrides: Settings to change, by dotted keys.
        data: The run's prepared data, for a caller that has them open.

    Raises:
        TypeError: `ensemble` is one string.
        ValueError: The directory is not a run, two checkpoints are named, one is
            missing, damaged or of another model or vocabulary, or a setting is unknown
            or out of range.
        OSError: A file is missing or cannot be read.
        ImportError: A package that reads the run is not installed.
    """
    run, run_checkpoint = select.split_name(os.fspath(run))
    if run_checkpoint and checkpoint != "averaged":
        raise ValueError(
            f"{run}@{run_checkpoint} names a checkpoint, and so does "
            f"checkpoint={checkpoint!r}"
        )
    compilation_cache.enable()
    checkpoint = run_checkpoint or str(checkpoint)
    if isinstance(ensemble, str):
        raise TypeError(f"ensemble must be a list of runs, got the string {ensemble!r}")
    if is_file := tensor_file.is_tensor_file(run):
        workdir = remote.local_file(run)
    else:
        unneeded_folders = select.other_folders(checkpoint)
        workdir = remote.open_workdir(run).pull(skip=unneeded_folders)
    if settings is None and not (is_file or workdir.is_dir()):
        raise ValueError(f"{run} is not a directory; name that of a run")
    if settings is None and _is_marian(workdir):
        if ensemble:
            raise ValueError(
                f"{run} is a MarianMT directory: import it (import_marian) before it "
                "joins an ensemble"
            )
        return _load_marian(workdir, overrides or {})
    settings = settings or parsing.load(workdir)
    settings = parsing.override(settings, overrides or {})
    if data:
        vocabulary = data.vocabulary
    elif is_file:
        vocabulary = bundle.read_vocabulary(workdir)
    else:
        vocabulary = _open_data(settings, workdir).vocabulary
    members = load_members(
        settings,
        workdir,
        vocabulary=vocabulary,
        checkpoints=checkpoint,
        ensemble=[locate(name) for name in ensemble],
    )
    return Translator(settings, vocabulary, members=members)


def _open_data(settings: config.Config, workdir: pathlib.Path) -> prepared.PreparedData:
    return prepared.open_matching(
        settings,
        prepared.data_directory(settings.data, workdir),
        compare_text=False,
        required_fingerprint=lambda: select.recorded_vocabulary(workdir),
    )


def load_config(
    name: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None
) -> config.Config:
    """Return all settings of a preset, a configuration file or a run.

    >>> load_config("demo", {"training.num_steps": 10}).training.num_steps
    10

    Args:
        name: A preset ("demo", "table3:A1"), FILE.py, a workdir or FILE.safetensors.
        overrides: Settings to change, by dotted keys.

    Raises:
        ValueError: There is no such preset, file or run; a setting is unknown or out of
            range; or an override names a training text that `data.corpora` replaces.
    """
    values = presets.load(*presets.find(os.fspath(name)))
    overrides = overrides or {}
    settings = parsing.parse(parsing.override_values(values.to_dict(), overrides))
    data_rules.check_training_files(settings.data, overrides.keys())
    return settings


def _is_marian(directory: pathlib.Path) -> bool:
    """Return True for a model of transformers; `marian_import` refuses other kinds."""
    try:
        return "model_type" in json.loads(
            (directory / "config.json").read_text(encoding="utf-8")
        )
    except (OSError, ValueError, TypeError):
        return False  # Reading it as a run's record fails with the reason.


def _load_marian(directory: pathlib.Path, overrides: Mapping[str, Any]) -> Translator:
    """Return the model of a MarianMT directory; the preset own_text gives the rest."""
    from vaswani_jax.exchange import marian_import  # Only such a directory needs it.

    preset = presets.load(*presets.find("own_text"))
    imported_model = marian_import.load(
        directory,
        parsing.override_values(preset.to_dict(), overrides),
        overridden=list(overrides),
    )
    for note in imported_model.notes:
        logger.info(note)
    member = Member(imported_model.settings.model, imported_model.checkpoint)
    return Translator(
        imported_model.settings, imported_model.vocabulary, members=[member]
    )


def find_seeds(folder: str) -> list[str]:
    """Return the names of the runs in a directory of seeds; none for another name.

    At a URL only what shows whether it is one is fetched.
    """
    if tensor_file.is_tensor_file(folder):
        return []
    copy = remote.open_directory(folder).pull(file_names=["seed-*/config.json"])
    runs = seeds.find_runs(copy).values()
    return [f"{folder.rstrip('/')}/{run.name}" for run in runs]


def locate(name: str | os.PathLike[str]) -> tuple[pathlib.Path, str]:
    """Return the place and the checkpoint of WORKDIR, WORKDIR@CHECKPOINT or a file."""
    folder, checkpoint = select.split_name(os.fspath(name))
    checkpoint = checkpoint or "averaged"
    if tensor_file.is_tensor_file(folder):
        return remote.local_file(folder), checkpoint
    unneeded_folders = select.other_folders(checkpoint)
    return remote.open_directory(folder).pull(skip=unneeded_folders), checkpoint
