"""Load a trained model from Python: `vaswani_jax.load`.

    import vaswani_jax
    translator = vaswani_jax.load("runs/demo")
    translator.translate(["3 hours ago"])

The programs `decode`, `evaluate` and `export` load their models here, too.
"""

import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.checkpoints import select
from vaswani_jax.core import config, parsing, remote
from vaswani_jax.data import manifest, prepared
from vaswani_jax.inference.ensemble import load_members
from vaswani_jax.inference.translator import Translator

logger = logging.getLogger(__name__)
__all__ = ["Translator", "load"]


def load(
    run: str | os.PathLike[str],
    *,
    checkpoint: str = "averaged",
    ensemble: Sequence[str] = (),
    settings: config.Config | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Translator:
    """Load what a run has learned, ready to translate.

    >>> translator = load("runs/demo", checkpoint="best")  # doctest: +SKIP
    >>> translator.translate(["3 hours ago"])  # doctest: +SKIP
    ['vor 3 Stunden']

    Args:
        run: A workdir, on this machine or as a URL (gs://, s3://, ...).
        checkpoint: "averaged" (what training ends with), "newest", "best", "average:N"
            (the mean of the last N) or the number of a step; several, with commas, are
            an ensemble.
        ensemble: More runs of the same vocabulary for an ensemble, each a WORKDIR or
            WORKDIR@CHECKPOINT.
        settings: All settings; by default those that the run has recorded.
        overrides: Settings to change, by dotted keys.

    Raises:
        ValueError: The directory is no run, a checkpoint is missing, damaged or of
            another model or vocabulary, or a setting is unknown or out of range.
        OSError: A file is missing or cannot be read.
    """
    needless = select.other_folders(checkpoint)
    workdir = remote.here(os.fspath(run), skip=needless)
    if settings is None:
        settings = parsing.load(workdir)
    settings = parsing.override(settings, overrides or {})
    vocabulary = _open_data(settings, workdir).vocabulary
    members = load_members(
        settings, workdir, vocabulary, checkpoints=checkpoint, ensemble=ensemble
    )
    return Translator(settings, vocabulary, members)


def _open_data(settings: config.Config, workdir: pathlib.Path) -> prepared.PreparedData:
    directory = prepared.data_directory(settings.data, workdir)
    manifest.refuse_difference(settings, directory, text=False, log=logger.info)
    return prepared.open_prepared(directory)
