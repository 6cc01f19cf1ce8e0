"""Draw the learning curves of runs, a sentence of one, or the paper's figures.

vaswani plot runs/demo runs/other --output=curves.svg
vaswani plot runs/demo --sentence='3 hours ago' --output=attention.png
vaswani plot runs/gum --tree='The man sleeps .' --output=tree.png
vaswani plot runs/multi30k_six --figure=3 --word=making --layer=5
vaswani plot base_ende --figure=1
python -m vaswani_jax.plot --workdir=runs/demo --workdir=runs/other
"""

import logging
import pathlib
from collections.abc import Collection
from typing import Any

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import bundle, select
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import (
    config,
    parsing,
    presets,
    tensor_file,
    types,
)
from vaswani_jax.data import (
    prepared,
    treebank,
    vocabulary,
    vocabulary_training,
    word_subwords,
)
from vaswani_jax.inference import line_io, plain_text
from vaswani_jax.inference.translator import Translator
from vaswani_jax.plots import (
    architecture,
    attention_diagram,
    attention_layer,
    attention_lines,
    attention_maps,
    canvas,
    learning_curves,
    tree_diagrams,
)
from vaswani_jax.training import metrics_log

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_repeated_path(
    "workdir", [], "The directory of a run; several share one picture of curves"
)
OUTPUT = path_flags.define_path(
    "output",
    None,
    "The .png, .svg or .pdf to write; curves.png, attention.png, tree.png or "
    "figure3.png and so on by default.",
)
SENTENCE = flags.DEFINE_string(
    "sentence",
    None,
    "A source sentence: draw the attention of its translation instead of curves. With "
    "--figure, the sentence instead of the paper's.",
)
TREE = flags.DEFINE_string(
    "tree",
    None,
    "A sentence, spaces between its words: draw the tree that the run parses it to.",
)
TOKENIZE = flags.DEFINE_bool(
    "tokenize", False, "Split the plain text of --tree into a treebank's tokens (NLTK)."
)
FIGURE = flags.DEFINE_integer(
    "figure",
    None,
    "A figure of the paper: 1 (the model) or 2 (its attention) of a preset, FILE.py or "
    "run; of a run 3 (the attention of one word), 4 (of a head, and of two heads from "
    "one word) or 5 (of two heads).",
    lower_bound=1,
    upper_bound=5,
)
WORD = flags.DEFINE_string(
    "word",
    None,
    "The word that looks in figures 3 and 4, at its first occurrence; the paper's by "
    "default.",
)
HEADS = flags.DEFINE_list(
    "heads",
    None,
    "Heads to draw, from 1: any of them in figure 3, all by default; two in figures 4 "
    "and 5, by default chosen by the rule in the picture.",
)
SUBWORDS = flags.DEFINE_bool(
    "subwords",
    False,
    "Figures 3 to 5 show subwords instead of words; of text without spaces they always "
    "do.",
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
    if not WORKDIR.value and FIGURE.value not in (1, 2):
        raise ValueError("--workdir is missing: name the directory of a run")
    path = _output()
    if path.suffix.lower() not in canvas.FORMATS:
        *others, last = canvas.FORMATS
        endings = f"{', '.join(others)} or {last}"
        raise ValueError(f"--output={OUTPUT.value} must end in {endings}")
    line_io.check_outputs([], {"--output": str(path)})
    if FIGURE.value is not None:
        _check_figure(FIGURE.value)
        return
    for name in ("word", "heads", "subwords"):
        if _is_given(name):
            raise ValueError(f"--{name} needs --figure")
    if TOKENIZE.value and TREE.value is None:
        raise ValueError("--tokenize needs --tree")
    if SENTENCE.value is None:
        for name, alternative in (("kind", ""), ("layer", " or --figure")):
            if _is_given(name):
                raise ValueError(f"--{name} needs --sentence{alternative}")
    _check_text()


def _is_given(name: str) -> bool:
    return not flags.FLAGS[name].using_default_value


def _check_figure(figure: int) -> None:
    """Refuse flags that --figure does not take, and a sentence without its word."""
    unused = ["kind", "tree", "tokenize"]
    if figure in (1, 2):
        unused += ["word", "heads", "subwords", "sentence", "layer", "checkpoint"]
    elif figure not in attention_layer.WORDS:
        unused += ["word"]
    for name in unused:
        if _is_given(name):
            raise ValueError(f"--{name} is of no use with --figure={figure}")
    for name in ("sentence", "word"):
        value = flags.FLAGS[name].value
        if value is not None and not value.strip():
            raise ValueError(f"--{name} is empty")
    if len(WORKDIR.value) > 1:
        raise ValueError(f"--figure draws one model, got {len(WORKDIR.value)}")
    if figure in attention_layer.WORDS and SENTENCE.value and not WORD.value:
        raise ValueError("--sentence needs --word, the word that looks")
    _heads()


def _heads() -> list[int] | None:
    """Return the numbers of --heads; None if it is not given."""
    if HEADS.value is None:
        return None
    try:
        return [int(head) for head in HEADS.value]
    except ValueError:
        shown_heads = ",".join(HEADS.value)
        raise ValueError(
            f"--heads={shown_heads} must be numbers, such as 1,2"
        ) from None


def _check_text() -> None:
    """Refuse an empty sentence, several runs, and --sentence with --tree."""
    texts = {"sentence": SENTENCE.value, "tree": TREE.value}
    lines = {name: text for name, text in texts.items() if text is not None}
    if not lines:
        if _is_given("checkpoint"):
            raise ValueError("--checkpoint needs --sentence or --tree, or --figure")
        return
    if len(lines) > 1:
        raise ValueError("--sentence and --tree exclude each other")
    [(name, text)] = lines.items()
    picture = {"sentence": "the attention", "tree": "a tree"}[name]
    if not text.strip():
        raise ValueError(f"--{name} is empty")
    if len(WORKDIR.value) > 1:
        raise ValueError(
            f"--{name} draws {picture} of one run, got {len(WORKDIR.value)}"
        )
    if TOKENIZE.value:
        plain_text.require_nltk()
    elif name == "tree":
        tree_diagrams.check_length(len(word_subwords.split_words(text)))


def main() -> None:
    """Draw the curves of all runs, or the attention or a tree of one."""
    if FIGURE.value in (1, 2):
        figure = _draw_model(FIGURE.value)
    elif FIGURE.value is not None:
        figure = _draw_figure(FIGURE.value)
    elif SENTENCE.value is not None:
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
    if FIGURE.value is not None:
        default = f"figure{FIGURE.value}.png"
    elif SENTENCE.value is not None:
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
        raise ValueError(f"--workdir={name} is not a directory; name that of a run")
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


def _draw_model(number: int) -> Any:
    """Draw figure 1 or 2 of a run, a preset or a file, by default of the base model."""
    name = WORKDIR.value[0] if WORKDIR.value else "base_ende"
    settings = api.load_config(name)
    module = {1: architecture, 2: attention_diagram}[number]
    vocab_size = _vocab_size(name, settings)
    return module.draw(module.read(settings.model, vocab_size), title=name)


def _vocab_size(name: str, settings: config.Config) -> types.VocabSize:
    """Return V of a run's vocabulary, or before there is one as planned."""
    if tensor_file.is_tensor_file(name):
        return bundle.read_vocabulary(program.workdir(name)).size
    if presets.is_run(name):
        workdir = program.workdir(name, skip=("checkpoints", "best", "averaged"))
        if directory := prepared.find_directory(settings.data, workdir):
            return vocabulary.load(directory).size
    return vocabulary_training.expected_size(settings.data)


def _draw_figure(number: int) -> Any:
    [name] = WORKDIR.value
    workdir, settings = _open_model(name)
    kinds = attention_maps.choose_layers(
        settings.model, ["encoder"], number=LAYER.value
    )
    heads = _heads()
    attention_layer.check_heads(settings.model.num_heads, figure=number, heads=heads)
    if SENTENCE.value is None:
        attention_layer.check_reads_english(settings.data)
    translator = _load(workdir, settings)
    sentence = SENTENCE.value or attention_layer.paper_sentence(number, translator)
    attention = attention_layer.attend(translator, sentence)
    layer = attention_layer.read_layer(
        attention,
        kinds["encoder"],
        by_word=attention_layer.has_words(settings.data) and not SUBWORDS.value,
    )
    return attention_lines.draw_figure(
        number, layer, word=WORD.value, heads=heads, title=name
    )


def _draw_tree(sentence: str) -> Any:
    [name] = WORKDIR.value
    workdir, settings = _open_model(name)
    if settings.data.source != "treebank":
        raise ValueError(
            f"--tree needs a run that parses, {name} translates: train one with "
            "config.data.source=treebank"
        )
    translator = _load(workdir, settings)
    if TOKENIZE.value:
        [sentence] = translator.tokenize([sentence])
        tree_diagrams.check_length(len(word_subwords.split_words(sentence)))
    [line] = translator.translate([sentence])
    [tree] = treebank.parse([line], name="the output")
    return tree_diagrams.draw(tree, title=name)


def _open_model(name: str) -> tuple[pathlib.Path, config.Config]:
    """Return where a run and its model, or one in a file, lie, and the settings."""
    if tensor_file.is_tensor_file(name):
        workdir = program.workdir(name)
    else:
        workdir = _open(name, skip=select.other_folders(CHECKPOINT.value))
    return workdir, parsing.load(workdir)


def _load(workdir: pathlib.Path, settings: config.Config) -> Translator:
    return api.load(workdir, checkpoint=CHECKPOINT.value, settings=settings)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",), repeats=True),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
