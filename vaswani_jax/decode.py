"""Translate lines by beam search (section 6.1), or score given translations.

vaswani translate runs/demo --input=FILE --output=FILE
vaswani translate runs/demo --score --input=FILE --target=FILE
python -m vaswani_jax.decode --workdir=runs/demo < FILE
"""

import logging
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import path_flags, program, run_flags
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import plurals, processes
from vaswani_jax.data import text_files
from vaswani_jax.inference import (
    decode_job,
    file_checks,
    formats,
    glossary,
    line_io,
    minimum_bayes_risk,
    plain_text,
    process_checks,
    reranking,
)
from vaswani_jax.inference.translator import Translator

logger = logging.getLogger(__name__)

WORKDIR = run_flags.define_workdir()
CHECKPOINT = run_flags.define_checkpoints()
ENSEMBLE = run_flags.define_ensemble()
INPUT = path_flags.define_path(
    "input", "-", "A UTF-8 file, plain, .gz, .xz or .zst; - is stdin."
)
OUTPUT = path_flags.define_path(
    "output", "-", "The file to write, plain, .gz, .xz or .zst; - is stdout."
)
FORMAT = flags.DEFINE_enum(
    *("format", None, formats.FORMATS),
    "text (default), tsv (number, rank, score, text; default with --num_hypotheses "
    "over 1) or json: one object for each input line.",
)
TOKENIZE = flags.DEFINE_bool(
    "tokenize", False, "Split plain text into a treebank's tokens (NLTK), to parse it."
)
NUM_HYPOTHESES = flags.DEFINE_integer(
    "num_hypotheses", 1, "How many translations of each line to write.", lower_bound=1
)
TOKEN_SCORES = flags.DEFINE_bool(
    "token_scores", False, "Write each subword's log-probability, too (json)."
)
PREFIX = path_flags.define_path(
    "prefix", None, "A file: the beginnings of the translations, one for each line."
)
CONSTRAINTS = path_flags.define_path(
    "constraints",
    None,
    "A file: phrases that the translations must have, one line for each, separated by "
    "tabs.",
)
GLOSSARY = path_flags.define_path(
    "glossary",
    None,
    "A file: terms of the source and their translations, a tab between them, one a "
    "line.",
)
PLACEHOLDERS = flags.DEFINE_string(
    "placeholders",
    None,
    "A regular expression of Python. Each translation has every match in its line.",
)
ALIGNMENTS = path_flags.define_path(
    "alignments",
    "",
    "The file to write: word alignments, pairs source-target in Pharaoh's format.",
)
ATTENTION = path_flags.define_path(
    "attention",
    "",
    "An .npz to write: the attention of each line, of all layers and heads.",
)
ALIGNING_LAYER = flags.DEFINE_integer(
    "aligning_layer",
    None,
    "The decoder layer whose attention aligns words, from 1. By default the last but "
    "one.",
)
MBR = flags.DEFINE_enum(
    *("mbr", None, minimum_bayes_risk.UTILITIES),
    "Write the candidate that agrees most with the others: minimum Bayes risk, by chrF "
    "or BLEU.",
)
NUM_CANDIDATES = flags.DEFINE_integer(
    "num_candidates",
    None,
    "How many candidates --mbr and reranking choose from; by default the beam size. "
    "With --config.search.sampling they are samples.",
    lower_bound=1,
)
RERANK_WITH = path_flags.define_path_list(
    "rerank_with",
    [],
    "Rerank with a run of the same direction, or an ensemble: WORKDIR or "
    "WORKDIR@CHECKPOINT,...",
)
RERANK_WEIGHT = flags.DEFINE_float(
    "rerank_weight", 1.0, "The weight of the scores of --rerank_with."
)
RERANK_REVERSE = path_flags.define_path_list(
    "rerank_reverse",
    [],
    "Rerank with a run of the other direction, or an ensemble, as --rerank_with.",
)
REVERSE_WEIGHT = flags.DEFINE_float(
    "reverse_weight", 1.0, "The weight of the scores of --rerank_reverse."
)
LENGTH_REWARD = flags.DEFINE_float(
    "length_reward",
    0.0,
    "Rerank: add this many nats per subword to a candidate's score.",
)
SCORE = flags.DEFINE_bool("score", False, "Score the lines of --target instead.")
TARGET = path_flags.define_path("target", None, "A file: the outputs to score.")


def main() -> None:
    """Translate the input, or score its given translations."""
    settings = program.settings()
    options = _options()
    options.check(settings.search)
    if TOKENIZE.value:
        plain_text.check_is_parser(settings.data, name="--tokenize")
        logger.info(
            f"each line is split into tokens by {plain_text.describe_tokenizer()}"
        )
    aligned_files = {
        "--target": TARGET.value,
        "--prefix": PREFIX.value,
        "--constraints": CONSTRAINTS.value,
    }
    inputs = [INPUT.value, GLOSSARY.value, *aligned_files.values()]
    line_io.check_outputs(
        inputs,
        {
            "--output": OUTPUT.value,
            "--alignments": ALIGNMENTS.value,
            "--attention": ATTENTION.value,
        },
    )
    if processes.num_processes() > 1 and "-" in (INPUT.value, OUTPUT.value):
        raise ValueError("several processes need files: --input and --output")
    total = line_io.count_input(INPUT.value, aligned_files)
    file_checks.check_tags(INPUT.value, settings.data)
    if TARGET.value:
        file_checks.check_trees(INPUT.value, TARGET.value, settings.data)
    workdir = program.workdir(
        WORKDIR.value, skip=select.other_folders(CHECKPOINT.value)
    )
    translator = api.load(
        workdir,
        checkpoint=CHECKPOINT.value,
        ensemble=ENSEMBLE.value,
        settings=settings,
    )
    forward = _load_models(RERANK_WITH.value)
    reverse = _load_models(RERANK_REVERSE.value)
    process_checks.check_processes_agree(
        [model for model in (translator, forward, reverse) if model is not None],
        texts=_texts(inputs),
        flags=_shared_flags(),
    )
    lines = line_io.read_blocks(INPUT.value)
    if TOKENIZE.value:
        lines = map(translator.tokenize, lines)
    if TARGET.value:
        file_checks.check_lengths(INPUT.value, TARGET.value, translator)
        scoring = decode_job.ScoringJob(translator, form=options.form)
        pairs = line_io.zip_blocks(lines, TARGET.value)
        line_io.write_blocks(scoring.run(pairs), _output(OUTPUT.value), total=total)
        scoring.warnings.log()
        logger.info(scoring.summary())
        return
    job = decode_job.TranslationJob(
        translator,
        options,
        reranking=_reranking(forward, reverse) if options.is_reranked else None,
    )
    if PREFIX.value:
        file_checks.check_prefixes(PREFIX.value, translator)
    if CONSTRAINTS.value:
        file_checks.check_constraints(INPUT.value, CONSTRAINTS.value, translator)
    blocks = _blocks(lines)
    num_written = line_io.write_blocks(
        job.run(blocks), _output(OUTPUT.value), total=total
    )
    job.warnings.log()
    logger.info(
        f"{plurals.format_count(job.num_lines, 'line')} in, "
        f"{plurals.format_count(num_written, 'line')} out"
    )


def _blocks(lines: Iterable[list[str]]) -> Iterator[decode_job.Block]:
    """Yield blocks of lines with what the files of other flags have for them."""
    files = {"prefixes": PREFIX.value, "constraints": CONSTRAINTS.value}
    names = {field: name for field, name in files.items() if name}
    for block, *aligned_lines in line_io.zip_blocks(lines, *names.values()):
        yield decode_job.Block(block, **dict(zip(names, aligned_lines, strict=True)))


def _texts(names: Iterable[str | None]) -> Iterator[Iterator[str]]:
    """Yield the lines of each file; a pipe, which cannot be read twice, has none."""
    for name in names:
        if name and pathlib.Path(name).is_file():
            yield text_files.read_lines(pathlib.Path(name))


def _shared_flags() -> dict[str, Any]:
    """Return the flags that must be equal in all processes.

    Of a file's or a run's name, only whether it is set counts: it may differ on each
    host.
    """
    values: Sequence[flags.FlagHolder[Any]] = (
        *(FORMAT, TOKENIZE, NUM_HYPOTHESES, TOKEN_SCORES, PLACEHOLDERS),
        *(ALIGNING_LAYER, MBR, NUM_CANDIDATES, SCORE),
        *(RERANK_WEIGHT, REVERSE_WEIGHT, LENGTH_REWARD),
    )
    names: Sequence[flags.FlagHolder[Any]] = (
        *(PREFIX, CONSTRAINTS, GLOSSARY, ALIGNMENTS, ATTENTION),
        *(RERANK_WITH, RERANK_REVERSE),
    )
    return {
        **{flag.name: flag.value for flag in values},
        **{flag.name: bool(flag.value) for flag in names},
    }


def _output(name: str) -> str:
    """Return the file to write: nowhere, except in process 0."""
    return name if processes.is_main_process() or not name else os.devnull


def _is_reranked() -> bool:
    return bool(RERANK_WITH.value or RERANK_REVERSE.value or LENGTH_REWARD.value)


def _reranking(
    forward: Translator | None, reverse: Translator | None
) -> reranking.Reranking:
    """Return what the flags add to the scores, with the models that they name."""
    return reranking.Reranking(
        forward=forward,
        forward_weight=RERANK_WEIGHT.value,
        reverse=reverse,
        reverse_weight=REVERSE_WEIGHT.value,
        length_reward=LENGTH_REWARD.value,
    )


def _load_models(names: Sequence[str]) -> Translator | None:
    """Return a model, or an ensemble of several; None without a name."""
    if not names:
        return None
    return api.load(names[0], ensemble=names[1:])


def _check_weights() -> None:
    """Refuse weights that are no numbers, or whose models are missing."""
    for flag, needed_flag in (
        (RERANK_WEIGHT, RERANK_WITH),
        (REVERSE_WEIGHT, RERANK_REVERSE),
        (LENGTH_REWARD, None),
    ):
        reranking.check_weight(flag.value, name=f"--{flag.name}")
        if flag.present and needed_flag is not None and not needed_flag.value:
            raise ValueError(f"--{flag.name} needs --{needed_flag.name}")


def _options() -> decode_job.DecodeOptions:
    if SCORE.value and not TARGET.value:
        raise ValueError("--score needs --target=FILE, the translations to score")
    if TARGET.value and not SCORE.value:
        raise ValueError(f"--target={TARGET.value} needs --score")
    conflicting = {
        f"--{flag.name}": flag.value
        for flag in (
            *(PREFIX, ALIGNMENTS, ATTENTION, TOKEN_SCORES, ALIGNING_LAYER, TOKENIZE),
            *(MBR, RERANK_WITH, RERANK_REVERSE, LENGTH_REWARD),
            *(CONSTRAINTS, GLOSSARY, PLACEHOLDERS),
        )
    }
    conflicting["--num_hypotheses"] = NUM_HYPOTHESES.value > 1
    _check_weights()
    for name, is_set in conflicting.items():
        if SCORE.value and is_set:
            raise ValueError(
                "--score takes --target, --format and the models alone: leave out "
                f"{name}"
            )
    return decode_job.DecodeOptions(
        form=FORMAT.value or ("tsv" if NUM_HYPOTHESES.value > 1 else "text"),
        num_hypotheses=NUM_HYPOTHESES.value,
        token_scores=TOKEN_SCORES.value,
        alignments=_output(ALIGNMENTS.value),
        attention=_output(ATTENTION.value),
        aligning_layer=ALIGNING_LAYER.value,
        mbr=MBR.value,
        is_reranked=_is_reranked(),
        num_candidates=NUM_CANDIDATES.value,
        placeholders=PLACEHOLDERS.value,
        glossary=(
            glossary.read_glossary(pathlib.Path(GLOSSARY.value))
            if GLOSSARY.value
            else None
        ),
    )


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("workdir",),
        takes_config=True,
        default_workdir=True,
        multi_process=True,
    ),
)

if __name__ == "__main__":
    PROGRAM.run()
