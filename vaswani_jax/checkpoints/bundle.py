"""Keep a model for translation in one file: parameters, settings and vocabulary.

NAME.safetensors takes the place of a run wherever a model is loaded, and loads without
Orbax. It has the parameters in float32 or bfloat16 as `params/...`, the vocabulary's
files as `vocabulary/...`, and in its metadata the settings and the checkpoint's record.

Beside WORKDIR/averaged/STEP lies the same model as STEP.safetensors. It is read instead
while it records the fingerprint of that checkpoint.
"""

import dataclasses
import logging
import pathlib
from typing import Any

import numpy as np

from vaswani_jax import __version__
from vaswani_jax.checkpoints import compatibility, store
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config, tensor_file
from vaswani_jax.core.config import Config
from vaswani_jax.core.tensor_file import SUFFIX, TensorFile, TensorFileError
from vaswani_jax.data import prepared
from vaswani_jax.data import vocabulary as vocabularies
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)
PARAMS, VOCABULARY = "params/", "vocabulary/"
# Names the checkpoint in the record of a file.
NAME = "checkpoint"
DTYPES = ("float32", "bfloat16")
# The parts of a record that only a run that resumes needs.
PROGRESS = frozenset(
    ("recent", "skipped", "extra", "parts", "devices", "best", "unevaluated")
)


@dataclasses.dataclass(frozen=True)
class Bundle:
    """A model and all that translating with it needs, except devices.

    Attributes:
        settings: The settings of its run.
        vocabulary: The subwords.
        checkpoint: The parameters and their record.
    """

    settings: Config
    vocabulary: Vocabulary
    checkpoint: Checkpoint

    def save(self, path: pathlib.Path, *, dtype: str, copy_of: str = "") -> None:
        """Write the file; a crash leaves the old file or the new one, never a part.

        Args:
            path: The file, NAME.safetensors.
            dtype: The type of the parameters in it: "float32", or "bfloat16", which
                rounds them.
            copy_of: The fingerprint of the checkpoint beside which the file lies.

        Raises:
            ValueError: The name ends otherwise, or there is no such type.
            CheckpointError: The parts are of different runs.
            OSError: It cannot be written. No part of it remains.
        """
        check_name(path)
        if dtype not in DTYPES:
            raise ValueError(f"dtype={dtype} must be {' or '.join(DTYPES)}")
        checkpoint = self.checkpoint
        compatibility.check_fits(
            checkpoint, settings=self.settings, vocabulary=self.vocabulary
        )
        params = compatibility.flatten(checkpoint.items["params"])
        shapes = {name: np.shape(leaf) for name, leaf in params.items()}
        fit = compatibility.digest_of_fit(
            self.settings.model, self.vocabulary, shapes=shapes
        )
        record = {
            key: value
            for key, value in checkpoint.record.items()
            if key not in PROGRESS
        }
        if not copy_of and "run" in record:  # Others get it: no path of this machine.
            folder = pathlib.PurePath(record["run"]["workdir"]).name
            record["run"] = {**record["run"], "workdir": folder}
        arrays = {
            f"{PARAMS}{name}": _stored(np.asarray(leaf, np.float32), dtype)
            for name, leaf in params.items()
        }
        arrays |= {
            f"{VOCABULARY}{name}": np.frombuffer(content, np.uint8)
            for name, content in self.vocabulary.to_files().items()
        }
        values = {
            "package_version": __version__,
            "settings": config.to_dict(self.settings),
            "step": checkpoint.step,
            "record": {**record, NAME: name_of(checkpoint), compatibility.FIT: fit},
            "copy_of": copy_of,
        }
        tensor_file.write(path, arrays, values)


def check_name(path: pathlib.Path) -> None:
    """Refuse a file name that programs would not take for a bundle.

    Raises:
        ValueError: It has another ending, or is a directory.
    """
    if not tensor_file.is_tensor_file(path):
        raise ValueError(f"{path} must be a file whose name ends in {SUFFIX}")


def _stored(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return an array in the type of the file; bfloat16 rounds to nearest."""
    if dtype == "float32":
        return array
    import ml_dtypes  # Only a file in bfloat16 needs it.

    return array.astype(ml_dtypes.bfloat16)


def read_vocabulary(path: pathlib.Path) -> Vocabulary:
    """Read the vocabulary of a file.

    Raises:
        ValueError: The file is damaged or of another kind.
        OSError: It cannot be read.
    """
    contents = tensor_file.open_file(path).read(VOCABULARY)
    files = {name: array.tobytes() for name, array in contents.items()}
    return vocabularies.from_files(files, directory=path)


def find_data(path: pathlib.Path, settings: Config) -> prepared.PreparedData | None:
    """Return the prepared data that the settings of a file name, if it is the model's.

    The directory may have other data since, which a note says. Without a note, it may
    be on another machine.
    """
    try:
        directory = prepared.find_directory(settings.data, path)
        if directory is None:
            return None
        data = prepared.open_matching(settings, directory, compare_text=False)
    except (ValueError, OSError, ImportError) as error:
        logger.info(f"note: {error}")
        return None
    if data.vocabulary.fingerprint != read_vocabulary(path).fingerprint:
        logger.info(f"note: {directory} has the vocabulary of another model")
        return None
    return data


def read_checkpoint(path: pathlib.Path, name: str = "") -> Checkpoint:
    """Read the parameters of a file and their record.

    Args:
        path: The file.
        name: The checkpoint that is wanted; any for "" and "averaged", the default of
            all programs.

    Raises:
        CheckpointError: The file has another checkpoint.
        ValueError: It is damaged or of another kind.
        OSError: It cannot be read.
    """
    checkpoint = _read_checkpoint(tensor_file.open_file(path))
    if name not in ("", "averaged", name_of(checkpoint)):
        raise CheckpointError(
            f"{path} has one checkpoint, {name_of(checkpoint)}, got {name}: leave the "
            "checkpoint out"
        )
    return checkpoint


def _read_checkpoint(file: TensorFile) -> Checkpoint:
    params: dict[str, Any] = {}
    for name, array in file.read(PARAMS).items():
        *parents, leaf = name.split("/")
        branch = params
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[leaf] = array
    return Checkpoint(file.value("step"), {"params": params}, file.value("record"))


def name_of(checkpoint: Checkpoint) -> str:
    """Return the name of a checkpoint as `--checkpoint` takes it."""
    is_mean = checkpoint.record.get("averaged")
    name = "averaged" if is_mean else str(checkpoint.step)
    return str(checkpoint.record.get(NAME, name))


def path_beside(checkpoint: pathlib.Path) -> pathlib.Path:
    """Return the path of a checkpoint's copy in one file.

    >>> str(path_beside(pathlib.Path("averaged/800")))
    'averaged/800.safetensors'
    """
    return checkpoint.with_name(f"{checkpoint.name}{SUFFIX}")


def read_beside(checkpoint: pathlib.Path) -> Checkpoint | None:
    """Read the copy of a sealed checkpoint in one file; return None if there is none.

    A copy of another checkpoint is ignored; so is a damaged one, with a warning.
    """
    path = path_beside(checkpoint)
    if not (path.is_file() and store.is_sealed(checkpoint)):
        return None
    try:
        file = tensor_file.open_file(path)
        if file.record.get("copy_of") != store.fingerprint(checkpoint):
            return None
        return _read_checkpoint(file)
    except (OSError, TensorFileError) as error:
        logger.warning(f"{error}; {checkpoint} is read instead")
        return None
