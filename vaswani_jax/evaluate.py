"""Section 6: a checkpoint and held-out text to perplexity, BLEU and chrF.

python -m vaswani_jax.evaluate --config=configs/demo.py --workdir=runs/demo --split=test
"""

import dataclasses
import json
import pathlib

from absl import flags
from ml_collections import config_flags

from vaswani_jax.core import config, parallel, parsing, program
from vaswani_jax.data import corpus, manifest, token_files
from vaswani_jax.inference import bleu, evaluators, translate
from vaswani_jax.training import selection, validation

CONFIG = config_flags.DEFINE_config_file("config", None, "What was trained.")
WORKDIR = flags.DEFINE_string(
    "workdir", None, "Where the checkpoints lie.", required=True
)
CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "averaged", "averaged, newest, best, average:N or a step."
)
SPLIT = flags.DEFINE_enum("split", "test", ["valid", "test"], "Which text to score.")
COMPOUND_SPLIT = flags.DEFINE_bool(
    "compound_split", False, "Split German compounds in the paper's BLEU."
)
SAMPLES = flags.DEFINE_integer("samples", 0, "Translations to print.", lower_bound=0)


def main() -> None:
    """Translate a split, score it, and write both beside the checkpoints."""
    settings = parsing.parse(CONFIG.value)
    workdir = pathlib.Path(WORKDIR.value)
    parallel.keep_programs(workdir / "compiled")
    directory = corpus.data_directory(settings.data, workdir)
    manifest.refuse_difference(settings, directory, text=True, log=program.say)
    data = corpus.open_prepared(directory)
    if SPLIT.value not in data.counts:
        raise ValueError(
            f"--split={SPLIT.value}: the data has only {', '.join(data.counts)}; name "
            "config.data.test_source and config.data.test_target"
        )
    if COMPOUND_SPLIT.value and not settings.data.target_locale.startswith("de"):
        raise ValueError(
            "--compound_split is for German, config.data.target_locale is "
            f"{settings.data.target_locale!r}"
        )
    found = selection.select(workdir, CHECKPOINT.value)
    selection.check_fits(found, settings, data.vocabulary)
    program.say(selection.describe(workdir, CHECKPOINT.value, found))
    params = parallel.replicate(found.items["params"])
    loss = validation.loss_evaluator(
        settings,
        data.corpus(SPLIT.value),
        vocab_size=data.vocabulary.size,
        name=SPLIT.value,
    )
    source, references = data.text(SPLIT.value)
    translator = translate.Translator(settings, data.vocabulary)
    outputs = translator.translate(params, source, warn=program.say)
    scores = evaluators.score(
        settings.data, outputs, references, compound_split=COMPOUND_SPLIT.value
    )
    values = loss(params)
    name = _name(settings.search)
    folder = workdir / "evaluations"
    folder.mkdir(exist_ok=True)
    token_files.write_text(folder / f"{name}.txt", outputs)
    record = {
        "split": SPLIT.value,
        "checkpoint": CHECKPOINT.value,
        "step": found.step,
        "averaged": found.record.get("averaged"),
        "vocabulary": data.vocabulary.fingerprint,
        "references": bleu.references_checksum(references),
        "lines": len(outputs),
        "search": dataclasses.asdict(settings.search),
        "data": dataclasses.asdict(settings.data),
        "compound_split": COMPOUND_SPLIT.value,
        **values,
        "scores": [dataclasses.asdict(score) for score in scores],
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1))
    for index in range(SAMPLES.value):
        line = index * len(outputs) // SAMPLES.value
        print(f"\nsource     {source[line]}")
        print(f"reference  {references[line]}")
        print(f"output     {outputs[line]}")
    print(f"\n{SPLIT.value}: {len(source):,} lines in, {len(outputs):,} lines out")
    _tell_left_out(data.counts[SPLIT.value])
    for key, value in values.items():
        print(f"{key}  {value:.4g}")
    print(bleu.format_scores(scores, references))


def _name(search: config.SearchConfig) -> str:
    """What the files are called: other settings write other files."""
    parts = [
        SPLIT.value,
        CHECKPOINT.value.replace(":", ""),
        f"beam{search.beam_size}",
        f"alpha{search.length_penalty:g}",
    ]
    return "-".join(parts + ["compound"] * COMPOUND_SPLIT.value)


def _tell_left_out(counts: dict[str, int]) -> None:
    """The scores count every line; the loss cannot where a side is empty or long."""
    if counts["empty"] + counts["too_long"]:
        print(
            f"loss and perplexity without {counts['too_long']:,} pairs over "
            f"config.data.max_length and {counts['empty']:,} with an empty side"
        )


if __name__ == "__main__":
    flags.mark_flag_as_required("config")
    program.run(main, expected=(ValueError, OSError, ImportError))
