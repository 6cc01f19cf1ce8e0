"""Write a model for others, and compare its translations with ours.

vaswani export runs/demo --format=bundle --output=demo.safetensors
vaswani export runs/demo --format=ctranslate2 --output=exported
python -m vaswani_jax.export --workdir=runs/demo --format=ctranslate2 --output=exported
"""

import logging
import pathlib

from absl import flags
from ml_collections import config_flags

from vaswani_jax import api
from vaswani_jax.checkpoints import bundle, select
from vaswani_jax.cli import path_flags, program, run_flags
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config, tensor_file
from vaswani_jax.data import prepared
from vaswani_jax.exchange import formats, verify

logger = logging.getLogger(__name__)
# A bundle is searched by our own search: few lines show whether it has the model.
BUNDLE_LINES = 100

WORKDIR = run_flags.define_workdir()
CHECKPOINT = run_flags.define_checkpoint()
FORMAT = flags.DEFINE_enum(
    "format",
    None,
    ["bundle", "ctranslate2", "marian", "stablehlo"],
    "One .safetensors file that commands load as a model; for CTranslate2; for "
    "transformers' MarianMTModel; for any program with JAX.",
    required=True,
)
OUTPUT = path_flags.define_path(
    "output", None, "The directory or .safetensors file to write.", required=True
)
DTYPE = flags.DEFINE_enum(
    "dtype",
    None,
    bundle.DTYPES,
    "The type of a bundle's parameters: float32 by default; bfloat16 is half as large.",
)
QUANTIZATION = flags.DEFINE_enum(
    "quantization", None, ["int8", "int8_float32"], "Of CTranslate2's file."
)
LINES = flags.DEFINE_integer(
    "lines",
    None,
    "How many validation lines to translate with the exported model; all by default, "
    "100 of a bundle.",
    lower_bound=0,
)


def main() -> None:
    """Write the model, then translate the validation set with it."""
    settings = program.settings()
    form, output = FORMAT.value, program.local_path("output", OUTPUT.value)
    _check_flags(form, output)
    if form != "bundle":
        formats.check_model(settings, form)
        formats.require(form)
    unneeded_folders = select.other_folders(CHECKPOINT.value)
    workdir = program.workdir(WORKDIR.value, skip=unneeded_folders)
    # Without the data of a run, `api.load` fails; a model in one file needs none.
    data = _open_data(settings, workdir)
    translator = api.load(
        workdir, checkpoint=CHECKPOINT.value, settings=settings, data=data
    )
    if form == "bundle":
        translator.save(output, dtype=DTYPE.value or "float32")
        size = f", {output.stat().st_size:,} bytes"
    else:
        formats.save(output, translator, form=form, quantization=QUANTIZATION.value)
        size = ""
    logger.info(f"written: {output}{size}")
    if data is None:
        logger.info(f"note: without the text of {workdir}, nothing is compared")
        return
    lines = BUNDLE_LINES if LINES.value is None and form == "bundle" else LINES.value
    agreement = verify.compare(
        translator,
        data,
        directory=output,
        form=form,
        quantization=QUANTIZATION.value,
        lines=lines,
    )
    if agreement:
        print(agreement)


def _open_data(
    settings: config.Config, workdir: pathlib.Path
) -> prepared.PreparedData | None:
    """Return the prepared data of a model; None if there is none.

    Data that flags name must be the model's, also where the model is one file.
    """
    changed_keys = config_flags.get_override_values(flags.FLAGS["config"])
    has_data_flags = any(key.startswith("data.") for key in changed_keys)
    if tensor_file.is_tensor_file(workdir) and not has_data_flags:
        return bundle.find_data(workdir, settings)
    directory = prepared.find_directory(settings.data, workdir)
    if directory is None:
        return None
    return prepared.open_matching(settings, directory, compare_text=False)


def _check_flags(form: str, output: pathlib.Path) -> None:
    if "," in CHECKPOINT.value:
        raise ValueError(
            f"--checkpoint={CHECKPOINT.value} is an ensemble: name one checkpoint"
        )
    if QUANTIZATION.value and form != "ctranslate2":
        raise ValueError("--quantization needs --format=ctranslate2")
    if DTYPE.value and form != "bundle":
        raise ValueError("--dtype needs --format=bundle")
    if form == "bundle":
        try:
            bundle.check_name(output)
        except ValueError as error:
            raise ValueError(f"--output: {error}") from None
        if output.exists():
            raise ValueError(f"--output={output} exists: name another file")
        if not output.parent.is_dir():
            raise ValueError(f"--output: there is no directory {output.parent}")
    elif output.exists() and not output.is_dir():
        raise ValueError(f"--output={output} is a file: name a directory")
    elif output.exists() and any(output.iterdir()):
        raise ValueError(f"--output={output} is not empty: name another directory")


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",), takes_config=True, default_workdir=True),
)

if __name__ == "__main__":
    PROGRAM.run()
