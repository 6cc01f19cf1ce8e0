"""Make vocabulary and token files from text (section 5.1), without training.

Of several corpora (data.corpora) it prints what each gives to an epoch.

vaswani prepare own_text --workdir=runs/own --config.data.text_directory=DIR
python -m vaswani_jax.prepare_data --config=configs/own_text.py --workdir=runs/own

Standard input can be a text, here of tab-separated columns:
zcat news.tsv.gz | vaswani prepare own_text --workdir=runs/own \\
    --config.data.train_source=-#1 --config.data.train_target=-#2
"""

import dataclasses
import logging
import pathlib

from absl import flags

from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config
from vaswani_jax.data import packing, prepared, standard_input, treebank_checks

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
    workdir = program.open_workdir(WORKDIR.value)
    workdir.pull()
    directory = prepared.data_directory(settings.data, workdir.path)
    with standard_input.copy_to_file(settings.data, directory) as text:
        data = prepared.open_or_prepare(
            dataclasses.replace(settings, data=text),
            directory,
            rebuild=REBUILD.value,
            required_fingerprint=lambda: _recorded_vocabulary(workdir.path),
        )
    prepared.push(settings.data, workdir)
    if data.vocabulary.is_trees:
        treebank_checks.warn_of_lengths(
            data.token_pairs("train"), settings=settings, counts=data.counts["train"]
        )
    logger.info(f"{directory}: {data.describe()}")
    if settings.data.training_corpora:
        print(_describe_corpora(settings, data))


def _describe_corpora(settings: config.Config, data: prepared.PreparedData) -> str:
    """Return what each corpus gives to an epoch."""
    pairs, sizes = data.token_pairs("train"), data.manifest.corpus_sizes
    batches = packing.training_batches(
        settings.data, pairs, seed=settings.seed, corpus_sizes=sizes
    )
    return packing.describe_corpora(settings.data, pairs, batches, corpus_sizes=sizes)


def _recorded_vocabulary(workdir: pathlib.Path) -> str | None:
    # Imported late: it loads JAX, which data that are up to date do not need.
    from vaswani_jax.checkpoints import select

    return select.recorded_vocabulary(workdir)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("config",), takes_config=True, default_workdir=True),
    uses_devices=False,
)

if __name__ == "__main__":
    PROGRAM.run()
