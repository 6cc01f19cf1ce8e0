"""Draw the learning curves of runs, or the attention of one run to a sentence.

vaswani plot runs/demo runs/other --output=curves.svg
vaswani plot runs/demo --sentence='3 hours ago' --output=attention.png
python -m vaswani_jax.plot --workdir=runs/demo --workdir=runs/other
"""

import logging
import pathlib
from collections.abc import Collection
from typing import Any

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import compilation_cache, parsing
from vaswani_jax.inference import line_io
from vaswani_jax.plots import attention_maps, canvas, learning_curves
from vaswani_jax.training import metrics_log

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_repeated_path(
    "workdir", [], "The directory of a run; several share one picture of curves"
)
OUTPUT = path_flags.define_path(
    "output",
    None,
    "The file to write, .png or .svg; curves.png or attention.png by default.",
)
SENTENCE = flags.DEFINE_string(
    "sentence",
    None,
    "A source sentence: draw the attention of its translation instead of curves.",
)
KIND = flags.DEFINE_enum(
    "kind",
    None,
    list(attention_maps.KINDS),
    "One kind of attention; all three by default.",
)
LAYER = flags.DEFINE_integer(
    "layer",
    None,
    "The layer whose heads are drawn, from 1; the last but one by default.",
)
CHECKPOINT = flags.DEFINE_string(
    "checkpoint",
    "averaged",
    "The model that attends: averaged, newest, best, average:N or a step.",
)


def check_flags() -> None:
    """Refuse flags that make no sense, alone or together."""
    canvas.require()
    if not WORKDIR.value:
        raise ValueError("--workdir is missing: name the directory of a run")
    path = _output()
    if path.suffix.lower() not in canvas.FORMATS:
        endings = " or ".join(canvas.FORMATS)
        raise ValueError(f"--output={OUTPUT.value} must end in {endings}")
    line_io.check_outputs([], {"--output": str(path)})
    if SENTENCE.value is None:
        for name in ("kind", "layer", "checkpoint"):
            if not flags.FLAGS[name].using_default_value:
                raise ValueError(f"--{name} is of --sentence")
    elif not SENTENCE.value.strip():
        raise ValueError("--sentence is empty")
    elif len(WORKDIR.value) > 1:
        raise ValueError(
            f"--sentence draws the attention of one run, got {len(WORKDIR.value)}"
        )


def main() -> None:
    """Draw the curves of all runs, or the attention of one."""
    sentence = SENTENCE.value
    figure = _draw_curves() if sentence is None else _draw_attention(sentence)
    path = _output()
    canvas.save(figure, path)
    logger.info(f"written: {path}")


def _output() -> pathlib.Path:
    """Return the file to write."""
    default = "curves.png" if SENTENCE.value is None else "attention.png"
    return pathlib.Path(default if OUTPUT.value is None else OUTPUT.value)


def _open(
    name: str, *, skip: Collection[str] = (), file_names: Collection[str] = ()
) -> pathlib.Path:
    """Return where a run lies on this machine; of a URL, only some files of it."""
    workdir = program.open_workdir(name).pull(skip=skip, file_names=file_names)
    if not workdir.is_dir():
        raise ValueError(f"--workdir={name} is no directory: name that of a run")
    return workdir


def _draw_curves() -> Any:
    runs = []
    for name in WORKDIR.value:
        workdir = _open(name, file_names=[metrics_log.FILE])
        runs.append(learning_curves.read(name, workdir))
    return learning_curves.draw(runs)


def _draw_attention(sentence: str) -> Any:
    [name] = WORKDIR.value
    workdir = _open(name, skip=select.other_folders(CHECKPOINT.value))
    settings = parsing.load(workdir)
    kinds = [KIND.value] if KIND.value else list(attention_maps.KINDS)
    layers = attention_maps.choose_layers(settings.model, kinds, number=LAYER.value)
    compilation_cache.enable(workdir / "compiled")
    translator = api.load(workdir, checkpoint=CHECKPOINT.value, settings=settings)
    return attention_maps.draw(
        translator.attention(sentence),
        layers=layers,
        title=f"{name}, {attention_maps.describe_layers(settings.model, layers)}",
    )


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",), repeats=True),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
