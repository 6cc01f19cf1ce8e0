"""Read the parameters and the vocabulary that a run starts from (--init_from)."""

import dataclasses
import logging
import pathlib
from typing import Any

from vaswani_jax.checkpoints import bundle, compatibility, select
from vaswani_jax.core import config, tensor_file
from vaswani_jax.data import prepared
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.training import frozen

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class InitialModel:
    """The parameters and the vocabulary that a run starts from.

    Attributes:
        params: The parameters; those of new subwords are missing.
        vocabulary: The vocabulary, with the symbols that the settings add.
    """

    params: Any
    vocabulary: Vocabulary


def load(settings: config.Config, *, path: pathlib.Path, name: str) -> InitialModel:
    """Read the model of another run, and extend its vocabulary by new symbols.

    Args:
        settings: Those of the run that starts.
        path: The workdir of the other run, or its model in one file.
        name: The checkpoint, as `select.starting_point` takes it.

    Raises:
        CheckpointError: There is no such checkpoint, it is damaged, or it is of another
            model than that of the settings.
        ValueError: The workdir or the file is damaged, or of another kind.
        OSError: There is no such file, or it cannot be read.
    """
    if tensor_file.is_tensor_file(path):
        checkpoint = bundle.read_checkpoint(path, name)
        vocabulary = bundle.read_vocabulary(path)
    else:
        start = select.starting_point(path, name)
        checkpoint = start.checkpoint
        data = dataclasses.replace(settings.data, directory=start.data_directory)
        vocabulary = prepared.open_prepared(
            prepared.data_directory(data, path)
        ).vocabulary
    compatibility.check_fits(checkpoint, settings=settings, vocabulary=vocabulary)
    extended = vocabulary.extend(settings.data.symbols)
    names = list(
        dict.fromkeys(
            name
            for old, new in (
                (vocabulary.source, extended.source),
                (vocabulary.target, extended.target),
            )
            for name in new.spellings[old.size :]
        )
    )
    if names:
        logger.info(
            f"{len(names)} new subwords, whose embeddings begin at random: "
            f"{', '.join(names)}"
        )
        if tables := frozen.frozen_embeddings(settings):
            logger.warning(
                f"config.optimizer.frozen={settings.optimizer.frozen} freezes "
                f"{', '.join(tables)}: the embeddings of new subwords stay random"
            )
    return InitialModel(checkpoint.items["params"], extended)
