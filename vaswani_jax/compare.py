"""Compare the translations of runs and other systems: whether they differ, and where.

vaswani compare runs/a runs/b
vaswani compare runs/a runs/b@best other.out --split=valid --output=comparison.html
python -m vaswani_jax.compare --systems=runs/a --systems=runs/b
"""

import itertools
import logging
import pathlib
from typing import Any

from absl import flags

from vaswani_jax import comparer
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.data import columns
from vaswani_jax.evaluation import comparison, significance
from vaswani_jax.inference import line_io
from vaswani_jax.pages import comparison_page, page_file

logger = logging.getLogger(__name__)

SYSTEMS = path_flags.define_repeated_path(
    "systems",
    [],
    "Runs (WORKDIR, WORKDIR@CHECKPOINT, FILE.safetensors), directories of `vaswani "
    "train --seeds`, each one system, or FILE[#COLUMN] of another system's outputs, "
    "a line for each reference.",
)
SPLIT = flags.DEFINE_string(
    "split",
    "test",
    "The text of the runs: valid or test. With --references, the name under which "
    "`vaswani evaluate` kept outputs of that text.",
)
SOURCE = path_flags.define_path(
    "source", "", "FILES[#COLUMN] of source lines, instead of the runs'."
)
REFERENCES = path_flags.define_path(
    "references", "", "FILES[#COLUMN] of the references of --source."
)
TRAINING_TEXT = path_flags.define_path(
    "training_text",
    "",
    "FILES[#COLUMN] of target lines in which words are counted, instead of the first "
    "run's training text.",
)
OUTPUT = path_flags.define_path_list(
    "output", [], "The .html, .json or .txt to write; several, separated by commas."
)
METRICS = flags.DEFINE_list(
    "metrics",
    [],
    "Some of bleu, chrf, chrf++ and ter; the tables show the first. By default BLEU, "
    "and chrF2 of detokenized text.",
)
TEST = flags.DEFINE_enum(
    "test",
    None,
    list(significance.DRAWS),
    "Approximate randomisation, which is the default, or sacreBLEU's paired bootstrap, "
    "whose p-values are too small.",
)
LINES = flags.DEFINE_integer(
    "lines",
    5,
    "Lines to show in favour of each system of a pair, those that differ most.",
    lower_bound=0,
)
TEXT_FORM = flags.DEFINE_enum(
    "text_form",
    None,
    ["detokenized", "tokenized"],
    "The form of all outputs; by default that of the runs, or detokenized.",
)
TARGET_LOCALE = flags.DEFINE_string(
    "target_locale",
    None,
    "The target language; by default that of the runs, or en. Chooses one of several "
    "languages.",
)
LOWERCASE_SCORES = flags.DEFINE_bool(
    "lowercase_scores", None, "Ignore case; by default if the runs do."
)


def check_flags() -> None:
    """Refuse flags that are out of range or do not go together."""
    if not 2 <= len(SYSTEMS.value) <= comparison.MAX_SYSTEMS:
        raise ValueError(
            f"name 2 to {comparison.MAX_SYSTEMS} systems, got {len(SYSTEMS.value)}"
        )
    if bool(SOURCE.value) != bool(REFERENCES.value):
        raise ValueError(
            f"--source={SOURCE.value or ''} and --references={REFERENCES.value or ''}: "
            "give both or neither"
        )
    for name in OUTPUT.value:
        page_file.check_ending(
            pathlib.Path(name), name="--output", endings=comparison_page.ENDINGS
        )
    texts = filter(None, [SOURCE.value, REFERENCES.value, TRAINING_TEXT.value])
    inputs = itertools.chain(
        map(str, filter(None, map(columns.find_one_file, SYSTEMS.value))),
        *(map(str, columns.find(name, pathlib.Path()).files) for name in texts),
    )
    line_io.check_outputs(inputs, {f"--output={name}": name for name in OUTPUT.value})


def main() -> None:
    """Compare the systems, print what differs, and write it."""
    scoring: dict[str, Any] = {
        holder.name: holder.value
        for holder in (TEXT_FORM, TARGET_LOCALE, LOWERCASE_SCORES)
        if holder.value is not None
    }
    result = comparer.compare_systems(
        SYSTEMS.value,
        split=SPLIT.value,
        source=SOURCE.value,
        references=REFERENCES.value,
        training_text=TRAINING_TEXT.value,
        scoring=scoring,
        metrics=METRICS.value,
        test=TEST.value or "",
        num_lines=LINES.value,
    )
    print(result.format())
    failures = []
    for name in OUTPUT.value:
        try:
            comparison_page.write_comparison(result, name)
        except (ValueError, OSError) as error:
            failures.append(f"{name}: {error}")
        else:
            logger.info(f"written: {name}")
    if failures:
        raise ValueError(f"--output={'; '.join(failures)}")


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("systems",), repeats=True),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
