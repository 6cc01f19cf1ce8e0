"""Write a model for other programs, and compare their translations with ours.

vaswani export runs/demo --format=ctranslate2 --output=exported
python -m vaswani_jax.export --workdir=runs/demo --format=ctranslate2 --output=exported
"""

import logging
import pathlib

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import compilation_cache
from vaswani_jax.data import prepared
from vaswani_jax.exchange import formats, verify

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_path(
    "workdir", "", "The directory of the run; runs/NAME of --config by default."
)
CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "averaged", "averaged, newest, best, average:N or a step."
)
FORMAT = flags.DEFINE_enum(
    "format",
    None,
    ["ctranslate2", "marian", "stablehlo"],
    "For CTranslate2; for transformers' MarianMTModel; for any program with JAX.",
    required=True,
)
OUTPUT = path_flags.define_path(
    "output", None, "The directory to write.", required=True
)
QUANTIZATION = flags.DEFINE_enum(
    "quantization", None, ["int8", "int8_float32"], "Of CTranslate2's file."
)
LINES = flags.DEFINE_integer(
    "lines",
    None,
    "How many validation lines to translate with the exported model; all by default.",
    lower_bound=0,
)


def main() -> None:
    """Write the model, then translate the validation set with it."""
    settings = program.settings()
    formats.check_model(settings, FORMAT.value)
    formats.require(FORMAT.value)
    directory = pathlib.Path(OUTPUT.value)
    if directory.exists() and any(directory.iterdir()):
        raise ValueError(f"--output={directory} is not empty: name another directory")
    if QUANTIZATION.value and FORMAT.value != "ctranslate2":
        raise ValueError("--quantization is of --format=ctranslate2")
    needless = select.other_folders(CHECKPOINT.value)
    workdir = program.workdir(WORKDIR.value, skip=needless)
    compilation_cache.enable()
    data = prepared.open_matching(
        settings, prepared.data_directory(settings.data, workdir), compare_text=False
    )
    translator = api.load(
        workdir, checkpoint=CHECKPOINT.value, settings=settings, data=data
    )
    formats.save(
        directory, translator, form=FORMAT.value, quantization=QUANTIZATION.value
    )
    logger.info(f"written: {directory}")
    agreement = verify.compare(
        translator,
        data,
        directory=directory,
        form=FORMAT.value,
        quantization=QUANTIZATION.value,
        lines=LINES.value,
    )
    if agreement:
        print(agreement)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",), takes_config=True, default_workdir=True),
)

if __name__ == "__main__":
    PROGRAM.run()
