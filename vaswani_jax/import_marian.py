"""Make a run of a MarianMT directory, as the OPUS models are.

vaswani import-marian DIR runs/opus
vaswani translate runs/opus --input=FILE
"""

import logging

from absl import flags
from ml_collections import config_flags

from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.exchange import marian_import

logger = logging.getLogger(__name__)

MODEL = path_flags.define_path(
    "model", None, "The directory of a MarianMT model.", required=True
)
WORKDIR = path_flags.define_path(
    "workdir", None, "The directory of the new run.", required=True
)
SOURCE_LOCALE = flags.DEFINE_string(
    "source_locale", "", "Language of the source; that of the files by default."
)
TARGET_LOCALE = flags.DEFINE_string(
    "target_locale", "", "Language of the target; that of the files by default."
)


def main() -> None:
    """Write a workdir: configuration, vocabulary, checkpoint."""
    directory = program.open_workdir(WORKDIR.value)
    directory.pull()
    workdir = directory.path
    if workdir.exists() and any(workdir.iterdir()):
        raise ValueError(f"--workdir={workdir} is not empty: name another directory")
    imported_model = marian_import.load(
        program.local_path("model", MODEL.value),
        flags.FLAGS["config"].value,
        locales=[SOURCE_LOCALE.value, TARGET_LOCALE.value],
        overridden=config_flags.get_override_values(flags.FLAGS["config"]),
    )
    data, vocabulary = imported_model.settings.data, imported_model.vocabulary
    for note in imported_model.notes:
        logger.info(note)
    logger.info(
        f"{data.source_locale} to {data.target_locale}, {vocabulary.describe()}, "
        f"fingerprint {vocabulary.fingerprint}"
    )
    path = marian_import.save_run(imported_model, workdir)
    directory.push()
    logger.info(f"written: {path}")
    logger.info(f"translate with it: vaswani translate {WORKDIR.value}")


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("model", "workdir"), takes_config=True, default_config="own_text"
    ),
)

if __name__ == "__main__":
    PROGRAM.run()
