"""Make vocabulary and token files from text (section 5.1), without training.

Of several corpora (data.corpora) it prints what each gives to an epoch.

vaswani prepare own_text --workdir=runs/own --config.data.text_directory=DIR
python -m vaswani_jax.prepare_data --config=configs/own_text.py --workdir=runs/own

Standard input can be a text, here of tab-separated columns:
zcat news.tsv.gz | vaswani prepare own_text --workdir=runs/own \\
    --config.data.train_source=-#1 --config.data.train_target=-#2
"""

import logging

from absl import flags

from vaswani_jax import preparer
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_path(
    "workdir", "", "The directory of the run; runs/NAME of the preset by default."
)
REBUILD = flags.DEFINE_bool(
    "rebuild_data", False, "Prepare the data again, even if it is up to date."
)


def main() -> None:
    """Prepare the data, or check that it is up to date."""
    settings = program.settings()
    program.open_workdir(WORKDIR.value)  # Logs where the local copy of a URL lies.
    preparation = preparer.prepare(settings, WORKDIR.value, rebuild_data=REBUILD.value)
    logger.info(f"{preparation.directory}: {preparation.describe()}")
    if preparation.epochs:
        print(preparation.format_epochs())


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("config",), takes_config=True, default_workdir=True),
    uses_devices=False,
)

if __name__ == "__main__":
    PROGRAM.run()
