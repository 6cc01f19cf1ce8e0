"""Make a corpus of synthetic sentence pairs from text in one language.

vaswani back-translate runs/de_en --input=mono.de --output=DIR
vaswani back-translate runs/de_en --input=mono.de --output=DIR --method=noised_beam
vaswani back-translate runs/teacher --input=train.en --output=DIR --input_side=source
python -m vaswani_jax.back_translate_text --workdir=runs/de_en --input=mono.de \\
    --output=DIR
"""

import ml_collections
from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import path_flags, program, run_flags
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.data.word_noise import WordNoise
from vaswani_jax.inference import back_translation

OPTIONS = back_translation.BackTranslationOptions()
WORKDIR = run_flags.define_workdir()
CHECKPOINT = run_flags.define_checkpoints()
ENSEMBLE = run_flags.define_ensemble()
INPUT = path_flags.define_path(
    "input",
    None,
    "Text in the run's source language: FILES[#COLUMN], as in data.train_source.",
    required=True,
)
OUTPUT = path_flags.define_path(
    "output",
    None,
    "Directory to write: a new one, or one that the same command began.",
    required=True,
)
METHOD = flags.DEFINE_enum(
    *("method", None, back_translation.METHODS),
    "beam: the best translation (default); sampling: one drawn by "
    "config.search.temperature, top_k and top_p; noised_beam: the best one with noise.",
)
INPUT_SIDE = flags.DEFINE_enum(
    *("input_side", OPTIONS.input_side, back_translation.INPUT_SIDES),
    "Side of the new pairs that the input becomes: target (back-translation) or source "
    "(distillation).",
)
TAG = flags.DEFINE_string(
    "tag",
    None,
    "Word before each new source line in training, to be named in data.user_symbols; "
    "empty for none. "
    f"{back_translation.TAG} by default if the sources are synthetic.",
)
SHARD_LINES = flags.DEFINE_integer(
    "shard_lines",
    OPTIONS.shard_lines,
    "Lines of a shard; a kill loses the unfinished one.",
    lower_bound=1,
)
WORD_DROPOUT = flags.DEFINE_float(
    "word_dropout",
    OPTIONS.noise.word_dropout,
    "noised_beam: probability that a word is deleted.",
)
WORD_BLANK = flags.DEFINE_float(
    "word_blank",
    OPTIONS.noise.word_blank,
    "noised_beam: probability that a remaining word becomes --blank_token.",
)
WORD_SHUFFLE = flags.DEFINE_integer(
    "word_shuffle",
    OPTIONS.noise.word_shuffle,
    "noised_beam: maximum positions that a word moves; 0 keeps the order.",
)
BLANK_TOKEN = flags.DEFINE_string(
    "blank_token",
    OPTIONS.noise.blank_token,
    "noised_beam: word that replaces others, to be named in data.user_symbols.",
)


def complete_config(values: ml_collections.ConfigDict) -> None:
    """Let --method decide whether outputs are drawn."""
    if METHOD.value is None:
        return
    is_sampling = METHOD.value == "sampling"
    if values.search.sampling and not is_sampling:
        raise ValueError(
            f"--method={METHOD.value} contradicts config.search.sampling=True: leave "
            "one of them out"
        )
    values.search.sampling = is_sampling


def check_flags() -> None:
    """Refuse noise flags without --method=noised_beam, and values out of range."""
    noise_flags = (WORD_DROPOUT, WORD_BLANK, WORD_SHUFFLE, BLANK_TOKEN)
    present_flags = [flag.name for flag in noise_flags if flag.present]
    if present_flags and METHOD.value != "noised_beam":
        raise ValueError(f"--{present_flags[0]} needs --method=noised_beam")
    _options(is_sampling=METHOD.value == "sampling").check()


def main() -> None:
    """Translate the input, or the rest of it, and write the pairs."""
    settings = program.settings()
    workdir = program.workdir(
        WORKDIR.value, skip=select.other_folders(CHECKPOINT.value)
    )
    output = program.local_path("output", OUTPUT.value)
    translator = api.load(
        workdir,
        checkpoint=CHECKPOINT.value,
        ensemble=ENSEMBLE.value,
        settings=settings,
    )
    options = _options(is_sampling=settings.search.sampling)
    back_translation.run(translator, INPUT.value, output, options=options)


def _options(*, is_sampling: bool) -> back_translation.BackTranslationOptions:
    return back_translation.BackTranslationOptions(
        method=METHOD.value or ("sampling" if is_sampling else "beam"),
        input_side=INPUT_SIDE.value,
        tag=TAG.value,
        noise=WordNoise(
            word_dropout=WORD_DROPOUT.value,
            word_blank=WORD_BLANK.value,
            word_shuffle=WORD_SHUFFLE.value,
            blank_token=BLANK_TOKEN.value,
        ),
        shard_lines=SHARD_LINES.value,
    )


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("workdir",),
        takes_config=True,
        default_workdir=True,
        multi_process=True,
    ),
    complete_config=complete_config,
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
