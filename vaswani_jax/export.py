"""Write a model for other programs, and compare their translations with ours.

vaswani export runs/demo --format=ctranslate2 --output=exported
python -m vaswani_jax.export --workdir=runs/demo --format=ctranslate2 --output=exported
"""

import dataclasses
import logging
import pathlib
from typing import Any

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import compilation_cache, config
from vaswani_jax.data import marian_vocabulary, prepared, vocabulary
from vaswani_jax.exchange import ctranslate, marian, marian_settings, stablehlo, verify

logger = logging.getLogger(__name__)

WORKDIR = flags.DEFINE_string(
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
OUTPUT = flags.DEFINE_string("output", None, "The directory to write.", required=True)
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
    verify.require(FORMAT.value)
    directory = pathlib.Path(OUTPUT.value)
    if directory.exists() and any(directory.iterdir()):
        raise ValueError(f"--output={directory} is not empty: name another directory")
    if QUANTIZATION.value and FORMAT.value != "ctranslate2":
        raise ValueError("--quantization is of --format=ctranslate2")
    needless = select.other_folders(CHECKPOINT.value)
    workdir = program.workdir(WORKDIR.value, skip=needless)
    compilation_cache.enable(workdir / "compiled")
    translator = api.load(workdir, checkpoint=CHECKPOINT.value, settings=settings)
    params = translator.params
    settings = _with_positions(settings)
    _write(directory, params, settings, translator.vocabulary)
    logger.info(f"written: {directory}")
    compared = verify.compare(
        settings,
        params,
        prepared.open_prepared(prepared.data_directory(settings.data, workdir)),
        directory,
        form=FORMAT.value,
        quantization=QUANTIZATION.value,
        lines=LINES.value,
        log=program.say,
    )
    if compared:
        print(compared)


def _with_positions(settings: config.Config) -> config.Config:
    """Set how many positions an engine keeps in a table, where ours has no limit."""
    search, model = settings.search, settings.model
    if model.positional_encoding == "learned":
        return settings
    longest = search.max_source_tokens + search.max_extra_tokens
    count = max(model.max_positions, longest)
    model = dataclasses.replace(model, max_positions=count)
    return dataclasses.replace(settings, model=model)


def _write(
    directory: pathlib.Path,
    params: Any,
    settings: config.Config,
    subwords: vocabulary.Vocabulary,
) -> None:
    if FORMAT.value == "ctranslate2":
        names = [subwords.subword(token) for token in range(subwords.size)]
        ctranslate.save(
            directory, params, settings.model, names, quantization=QUANTIZATION.value
        )
    elif FORMAT.value == "marian":
        marian.save(directory, params, settings, subwords)
        for note in marian_settings.unwritten(settings.search):
            logger.info(note)
    else:
        stablehlo.save(directory, params, settings.model, vocab_size=subwords.size)
    # The SentencePiece models that segment the text.
    for name, model_bytes in zip(marian_vocabulary.FILES, subwords.models, strict=True):
        (directory / name).write_bytes(model_bytes)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",), takes_config=True, default_workdir=True),
)

if __name__ == "__main__":
    PROGRAM.run()
