"""Section 5.1: raw text to vocabulary and token files, without training.

python -m vaswani_jax.prepare_data --config=configs/own_text.py --workdir=runs/own
"""

import logging

from absl import flags
from ml_collections import config_flags

from vaswani_jax.checkpoints import select
from vaswani_jax.cli import program
from vaswani_jax.core import parsing, remote
from vaswani_jax.data import prepared

logger = logging.getLogger(__name__)

CONFIG = config_flags.DEFINE_config_file("config", None, program.what("to prepare"))
WORKDIR = flags.DEFINE_string(
    "workdir", None, "Where all of this run lies; runs/NAME of the config by default."
)
REBUILD = flags.DEFINE_bool(
    "rebuild_data", False, "Prepare the data again, whatever is there."
)


def main() -> None:
    """Prepare the data, or check what is there."""
    settings = parsing.parse(CONFIG.value)
    workdir = program.workdir(WORKDIR.value)
    directory = prepared.data_directory(settings.data, workdir)
    data = prepared.open_or_prepare(
        settings,
        directory,
        rebuild=REBUILD.value,
        trained_with=select.recorded_vocabulary(workdir),
        log=program.say,
    )
    remote.send(directory)
    remote.send(workdir, within="data")
    logger.info(f"{directory}: vocabulary of {data.vocabulary.size:,}, {data.counts}")


if __name__ == "__main__":
    flags.mark_flag_as_required("config")
    program.run(main, expected=(ValueError, OSError, ImportError))
