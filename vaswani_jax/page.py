"""Write one HTML file that shows what a run does with sentences: its attention.

vaswani page runs/demo
vaswani page runs/demo --input=FILE --output=page.html
vaswani page runs/demo --heads=valid
python -m vaswani_jax.page --workdir=runs/demo
"""

import dataclasses
import logging
import pathlib
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select, store
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config, parsing, tensor_file
from vaswani_jax.data import prepared, text_files
from vaswani_jax.inference import line_io
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import build, default_lines, heads, heads_input, page_file

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_path(
    "workdir", None, "The directory of the run, or RUN@CHECKPOINT."
)
INPUT = path_flags.define_path(
    "input",
    None,
    "A UTF-8 file of sentences, - is stdin; by default some of the validation text.",
)
TARGET = path_flags.define_path(
    "target", None, "A file: the translations to show, instead of the best found."
)
OUTPUT = path_flags.define_path(
    "output", "page.html", "The .html to write, or .json for the same contents."
)
CHECKPOINT = flags.DEFINE_string(
    "checkpoint",
    "averaged",
    "The model that is shown: averaged, newest, best, average:N or a step.",
)
CHECKPOINTS = flags.DEFINE_string(
    "checkpoints",
    None,
    "Show at most 2 sentences over at most 12 kept checkpoints: all, or steps with "
    "commas.",
)
MAX_TOKENS = flags.DEFINE_integer(
    "max_tokens",
    build.MAX_TOKENS,
    "The most tokens of either side of a sentence.",
    lower_bound=1,
)
HEADS = path_flags.define_path_list(
    "heads",
    [],
    "Measure what each head does over a text, too: valid, test, or the files "
    "SOURCE,TARGET.",
)
TREES = path_flags.define_path(
    "trees", None, "A file with a tree of each source line of --heads, in brackets."
)
ALIGNMENTS = path_flags.define_path(
    "alignments", None, "A file with the aligned words of each pair, such as 0-0 1-2."
)


def check_flags() -> None:
    """Refuse flags that make no sense, alone or together."""
    if not WORKDIR.value:
        raise ValueError("--workdir is missing: name the directory of a run")
    path = pathlib.Path(OUTPUT.value)
    page_file.check_ending(path, name="--output")
    inputs = [INPUT.value, TARGET.value, TREES.value, ALIGNMENTS.value]
    if HEADS.value:
        inputs += heads_input.file_names(HEADS.value)
        if "," in CHECKPOINT.value:
            raise ValueError("--heads measures one model: name one --checkpoint")
    elif TREES.value or ALIGNMENTS.value:
        raise ValueError(
            "--trees and --alignments need --heads: the text they belong to"
        )
    line_io.check_outputs(inputs, {"--output": OUTPUT.value})
    if TARGET.value and INPUT.value is None:
        raise ValueError("--target needs --input: the lines that it translates")
    if CHECKPOINTS.value is not None:
        if not flags.FLAGS["checkpoint"].using_default_value:
            raise ValueError("--checkpoint and --checkpoints exclude each other")
        _named_steps()


def main() -> None:
    """Write the page of a run."""
    name = WORKDIR.value
    checkpoints = CHECKPOINT.value if CHECKPOINTS.value is None else "newest"
    unneeded_folders = select.other_folders(checkpoints)
    workdir = program.workdir(name, skip=unneeded_folders)
    is_file = tensor_file.is_tensor_file(workdir)
    if not (workdir.is_dir() or is_file):
        raise ValueError(f"--workdir={name} is not a directory; name that of a run")
    settings = parsing.load(workdir)
    names = [CHECKPOINT.value]
    if CHECKPOINTS.value is not None:
        names = [str(step) for step in _steps(workdir)]
    if INPUT.value is None:
        lines, targets = _default_lines(settings, workdir, num_models=len(names)), None
    else:
        lines, targets = _read_lines(num_models=len(names))
    text = None
    if HEADS.value:
        text = heads_input.read_input(
            HEADS.value,
            settings=settings,
            workdir=workdir,
            trees=TREES.value,
            alignments=ALIGNMENTS.value,
        )
    page = build.make_page(
        _load(workdir, settings, names),
        lines,
        targets=targets,
        # A file records which checkpoint it has; the flag's default fits any.
        names=None if is_file else names,
        title=page_file.last_part(name),
        max_tokens=MAX_TOKENS.value,
    )
    if text:
        # Refuse a page that is too large before heads are measured, which takes long.
        page_file.render(page, pathlib.Path(OUTPUT.value))
        [translator] = _load(workdir, settings, names[-1:])
        description = heads.describe_heads(translator, text)
        shown_name = page_file.without_folders(description.text)
        description = dataclasses.replace(description, text=shown_name)
        print(heads.table(description))
        page = dataclasses.replace(page, heads=description)
    page = dataclasses.replace(page, command=_command())
    path = page_file.write_page(page, OUTPUT.value)
    logger.info(f"written: {path}")


def _load(
    workdir: pathlib.Path, settings: config.Config, names: Sequence[str]
) -> Iterator[Translator]:
    for name in names:
        yield api.load(workdir, checkpoint=name, settings=settings)


def _named_steps() -> list[int] | None:
    """Return the steps that --checkpoints lists, lowest first; None for all.

    Raises:
        ValueError: It lists something else, or too many.
    """
    if CHECKPOINTS.value == "all":
        return None
    values = (CHECKPOINTS.value or "").split(",")
    if not all(value.isdecimal() for value in values):
        raise ValueError(
            f"--checkpoints={CHECKPOINTS.value} must be all, or steps separated by "
            "commas"
        )
    steps = sorted({int(value) for value in values})
    if len(steps) > build.MAX_MODELS:
        raise ValueError(
            f"--checkpoints has {len(steps)} steps, a page has at most "
            f"{build.MAX_MODELS}"
        )
    return steps


def _steps(workdir: pathlib.Path) -> list[int]:
    """Return the steps of the checkpoints to show, lowest first."""
    available, steps = store.steps(workdir / "checkpoints"), _named_steps()
    if not available:
        raise ValueError(f"--checkpoints: {workdir} has no kept checkpoints")
    if steps is not None:
        for step in steps:
            if step not in available:
                raise ValueError(
                    f"--checkpoints={step}: there is no such step; there are "
                    f"{available}"
                )
        return steps
    shown_steps = build.spread(available, build.MAX_MODELS)
    if len(shown_steps) < len(available):
        logger.info(
            f"{len(shown_steps)} of {len(available)} checkpoints, evenly spread: "
            f"{', '.join(map(str, shown_steps))}"
        )
    return shown_steps


def _default_lines(
    settings: config.Config, workdir: pathlib.Path, *, num_models: int
) -> list[str]:
    """Return lines of the run's validation text, of different lengths."""
    if not prepared.has_directory(settings.data, workdir):
        raise ValueError(
            f"{WORKDIR.value} is a model in one file, without text: name a file of "
            "sentences with --input"
        )
    directory = prepared.data_directory(settings.data, workdir)
    data = prepared.open_matching(settings, directory, compare_text=False)
    if "valid" not in data.counts:
        raise ValueError(
            f"{WORKDIR.value} has no validation text to show: name a file of sentences "
            "with --input"
        )
    count = build.MAX_SENTENCES_OF_MODELS if num_models > 1 else default_lines.COUNT
    try:
        lines = default_lines.choose(data, count=count, max_tokens=MAX_TOKENS.value)
    except (OSError, ValueError) as error:
        raise ValueError(f"{error}; or name a file of sentences with --input") from None
    if not lines:
        raise ValueError(
            f"{WORKDIR.value} has no validation text of at most "
            f"--max_tokens={MAX_TOKENS.value}: name a file of sentences with --input"
        )
    return lines


def _read_lines(*, num_models: int) -> tuple[list[str], list[str] | None]:
    """Return the lines of --input, and those of --target if it is named."""
    total = line_io.count_input(INPUT.value, {"--target": TARGET.value})
    if total is not None:
        try:
            build.check_size(total, num_models=num_models)
        except ValueError as error:
            raise ValueError(f"--input={INPUT.value}: {error}") from None
    lines = [line for block in line_io.read_blocks(INPUT.value) for line in block]
    targets = None
    if TARGET.value:
        targets = list(text_files.read_lines(pathlib.Path(TARGET.value)))
    return lines, targets


def _command() -> str:
    """Return the command that makes the page, with the flags that were given.

    Pages are sent to others: of an absolute path, only the last part is shown.
    """
    words = ["vaswani", "page", page_file.without_folders(WORKDIR.value)]
    holders = (
        *(INPUT, TARGET, OUTPUT, CHECKPOINT, CHECKPOINTS, MAX_TOKENS),
        *(HEADS, TREES, ALIGNMENTS),
    )
    for holder in holders:
        if not flags.FLAGS[holder.name].using_default_value:
            values: Any = holder.value
            if not isinstance(values, list):
                values = [str(values)]
            value = ",".join(map(page_file.without_folders, values))
            words.append(f"--{holder.name}={value}")
    return shlex.join(words)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",)),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
