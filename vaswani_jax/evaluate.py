"""Score a checkpoint on held-out text: perplexity, BLEU, chrF and TER (section 6).

vaswani evaluate runs/demo --split=test
vaswani evaluate runs/demo --split=valid,test --split=news.en,news.de
python -m vaswani_jax.evaluate --workdir=runs/demo --split=test
"""

import pathlib
from collections.abc import Sequence

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import program, run_flags
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config, processes, tensor_file
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import scored_texts, scores
from vaswani_jax.inference import process_checks

WORKDIR = run_flags.define_workdir()
CHECKPOINT = run_flags.define_checkpoint()
SPLIT = flags.DEFINE_multi_string(
    "split",
    ["test"],
    "The text to score: valid, test, both (valid,test), or files SOURCE,REFERENCES or "
    "NAME=SOURCE,REFERENCES. Repeat the flag for several.",
)
SAMPLES = flags.DEFINE_integer("samples", 0, "Translations to print.", lower_bound=0)


def check_flags() -> None:
    """Refuse a --split that names no text, and several checkpoints."""
    scored_texts.parse(SPLIT.value)
    if "," in CHECKPOINT.value:
        raise ValueError(
            f"--checkpoint={CHECKPOINT.value} is an ensemble: name one checkpoint, or "
            "translate and score the output"
        )


def main() -> None:
    """Translate texts, score them, and write both beside a run's checkpoints."""
    settings = program.settings()
    sets = scored_texts.parse(SPLIT.value)
    texts = {test_set.name: test_set.read() for test_set in sets if test_set.source}
    own_splits = [test_set.name for test_set in sets if not test_set.source]
    if texts and settings.data.source == "treebank":
        raise ValueError(
            f"--split={next(iter(texts))}: a parser scores valid and test only; "
            "`vaswani evaluate-trees` scores trees in files"
        )
    workdir = None
    if tensor_file.is_tensor_file(WORKDIR.value):
        path = program.workdir(WORKDIR.value)
    else:
        workdir = program.open_workdir(WORKDIR.value)
        path = workdir.pull(skip=select.other_folders(CHECKPOINT.value))
    # Imported models and models in one file have no data; texts of files need none.
    data = _open_data(settings, path, splits=own_splits) if own_splits else None
    own_texts = {split: data.text(split) for split in own_splits} if data else {}
    all_texts = own_texts | texts
    translator = api.load(
        path, checkpoint=CHECKPOINT.value, settings=settings, data=data
    )
    process_checks.check_processes_agree(
        [translator],
        texts=[side for text in all_texts.values() for side in text],
        flags={"split": [test_set.name for test_set in sets]},
    )
    if workdir:
        for split, text in texts.items():
            scores.check_same_text(
                translator,
                text,
                split=split,
                checkpoint_name=CHECKPOINT.value,
                workdir=workdir,
            )
    for test_set in sets:
        evaluation = scores.evaluate(
            translator,
            all_texts[test_set.name],
            split=test_set.name,
            checkpoint_name=CHECKPOINT.value,
            workdir=workdir,
            data=None if test_set.source else data,
        )
        if processes.is_main_process():
            print(evaluation.format(samples=SAMPLES.value), flush=True)


def _open_data(
    settings: config.Config, path: pathlib.Path, *, splits: Sequence[str]
) -> prepared.PreparedData:
    """Open the prepared data of a run, with the splits that are scored.

    Raises:
        ValueError: There is none, it was prepared from something else, or it lacks a
            split.
        OSError: It cannot be read.
    """
    data = prepared.open_matching(
        settings,
        prepared.data_directory(settings.data, path),
        compare_text=True,
        required_fingerprint=lambda: select.recorded_vocabulary(path),
    )
    for name in splits:
        if name not in data.counts:
            keys = f"config.data.{name}_source and config.data.{name}_target"
            if settings.data.source == "treebank":
                keys = f"config.data.{name}_trees"
            raise ValueError(
                f"--split={name}: the data has only {', '.join(data.counts)}; name "
                f"{keys}, and prepare it: `vaswani prepare` with --rebuild_data"
            )
    return data


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("workdir",),
        takes_config=True,
        default_workdir=True,
        multi_process=True,
    ),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
