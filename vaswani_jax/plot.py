"""Draw the learning curves of runs, or what one run makes of a sentence.

vaswani plot runs/demo runs/other --output=curves.svg
vaswani plot runs/demo --sentence='3 hours ago' --output=attention.png
vaswani plot runs/gum --tree='The man sleeps .' --output=tree.png
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
from vaswani_jax.core import compilation_cache, config, parsing
from vaswani_jax.data import treebank, word_subwords
from vaswani_jax.inference import line_io
from vaswani_jax.inference.translator import Translator
from vaswani_jax.plots import attention_maps, canvas, learning_curves, tree_diagrams
from vaswani_jax.training import metrics_log

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_repeated_path(
    "workdir", [], "The directory of a run; several share one picture of curves"
)
OUTPUT = path_flags.define_path(
    "output",
    None,
    "The .png or .svg to write; curves.png, attention.png or tree.png by default.",
)
SENTENCE = flags.DEFINE_string(
    "sentence",
    None,
    "A source sentence: draw the attention of its translation instead of curves.",
)
TREE = flags.DEFINE_string(
    "tree",
    None,
    "A sentence, spaces between its words: draw the tree that the run parses it to.",
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
    "The model that attends or parses: averaged, newest, best, average:N or a step.",
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
        for name in ("kind", "layer"):
            if not flags.FLAGS[name].using_default_value:
                raise ValueError(f"--{name} is of --sentence")
    _check_text()


def _check_text() -> None:
    """Refuse an empty sentence, several runs, and --sentence with --tree."""
    texts = {"sentence": SENTENCE.value, "tree": TREE.value}
    named = {name: text for name, text in texts.items() if text is not None}
    if not named:
        if not flags.FLAGS["checkpoint"].using_default_value:
            raise ValueError("--checkpoint needs --sentence or --tree")
        return
    if len(named) > 1:
        raise ValueError("--sentence and --tree exclude each other")
    [(name, text)] = named.items()
    picture = {"sentence": "the attention", "tree": "a tree"}[name]
    if not text.strip():
        raise ValueError(f"--{name} is empty")
    if len(WORKDIR.value) > 1:
        raise ValueError(
            f"--{name} draws {picture} of one run, got {len(WORKDIR.value)}"
        )
    if name == "tree":
        tree_diagrams.check_length(len(word_subwords.split_words(text)))


def main() -> None:
    """Draw the curves of all runs, or the attention or a tree of one."""
    if SENTENCE.value is not None:
        figure = _draw_attention(SENTENCE.value)
    elif TREE.value is not None:
        figure = _draw_tree(TREE.value)
    else:
        figure = _draw_curves()
    path = _output()
    canvas.save(figure, path)
    logger.info(f"written: {path}")


def _output() -> pathlib.Path:
    """Return the file to write."""
    default = "curves.png"
    if SENTENCE.value is not None:
        default = "attention.png"
    elif TREE.value is not None:
        default = "tree.png"
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
    workdir, settings = _open_model(name)
    kinds = [KIND.value] if KIND.value else list(attention_maps.KINDS)
    layers = attention_maps.choose_layers(settings.model, kinds, number=LAYER.value)
    return attention_maps.draw(
        _load(workdir, settings).attention(sentence),
        layers=layers,
        title=f"{name}, {attention_maps.describe_layers(settings.model, layers)}",
    )


def _draw_tree(sentence: str) -> Any:
    [name] = WORKDIR.value
    workdir, settings = _open_model(name)
    if settings.data.source != "treebank":
        raise ValueError(
            f"--tree needs a run that parses, {name} translates: train one with "
            "config.data.source=treebank"
        )
    [line] = _load(workdir, settings).translate([sentence])
    [tree] = treebank.parse([line], name="the output")
    return tree_diagrams.draw(tree, title=name)


def _open_model(name: str) -> tuple[pathlib.Path, config.Config]:
    """Return where a run and its model lie, and its settings."""
    workdir = _open(name, skip=select.other_folders(CHECKPOINT.value))
    return workdir, parsing.load(workdir)


def _load(workdir: pathlib.Path, settings: config.Config) -> Translator:
    compilation_cache.enable(workdir / "compiled")
    return api.load(workdir, checkpoint=CHECKPOINT.value, settings=settings)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",), repeats=True),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
