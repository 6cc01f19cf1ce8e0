"""Section 6: a checkpoint on held-out text, to perplexity, BLEU and chrF."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from vaswani_jax.checkpoints import average, compatibility, store
from vaswani_jax.core import config, parallel, processes, remote, types
from vaswani_jax.data import prepared, token_files
from vaswani_jax.evaluation import bleu, validation
from vaswani_jax.inference.line_translator import LineTranslator


@dataclasses.dataclass(frozen=True)
class Result:
    """Translations of a split and what they score."""

    split: str
    source: list[str]
    references: list[str]
    outputs: list[str]
    losses: dict[str, float]
    scores: list[bleu.Score]
    left_out: dict[str, int]  # pairs that the loss cannot count, by the reason

    def report(self, *, samples: int) -> str:
        """Some translations, then all figures with their signatures."""
        lines = []
        for index in range(samples):
            line = index * len(self.outputs) // samples
            lines += [
                f"\nsource     {self.source[line]}",
                f"reference  {self.references[line]}",
                f"output     {self.outputs[line]}",
            ]
        count = f"{len(self.source):,} lines in, {len(self.outputs):,} lines out"
        lines.append(f"\n{self.split}: {count}")
        if any(self.left_out.values()):
            # The scores count every line; the loss cannot.
            lines.append(
                f"loss and perplexity without {self.left_out['too_long']:,} pairs over "
                f"config.data.max_length and {self.left_out['empty']:,} with an empty "
                "side"
            )
        lines += [f"{key}  {value:.4g}" for key, value in self.losses.items()]
        lines.append(bleu.format_scores(self.scores, self.references))
        return "\n".join(lines)


def while_training(
    settings: config.Config, data: prepared.PreparedData, *, say: Callable[[str], None]
) -> list[types.Evaluator]:
    """What is computed of the validation set now and then while a run trains.

    Says what the first time compiles beside the shapes of the training.
    """
    text = data.text("valid")
    batches = validation.batches(settings, data.corpus("valid"))
    translator = LineTranslator(settings, data.vocabulary)
    shapes = {"loss": batches.shapes, "search": translator.shapes(text[0])}
    told = [
        f"{name} in {', '.join(f'{rows}x{length}' for rows, length in several)}"
        for name, several in shapes.items()
    ]
    say(f"shapes of the validation (rows x tokens): {'; '.join(told)}")
    return [
        validation.loss_evaluator(
            settings, batches, vocab_size=data.vocabulary.size, name="valid"
        ),
        validation.bleu_evaluator(settings.data, translator, text, name="valid"),
    ]


def score(
    settings: config.Config,
    data: prepared.PreparedData,
    found: store.Checkpoint,
    *,
    split: str,
) -> Result:
    """Translate a split with a checkpoint, and score it.

    Raises:
        store.CheckpointError: The checkpoint does not fit data or settings.
    """
    compatibility.check_fits(found, settings, data.vocabulary)
    params = parallel.replicate(found.items["params"])
    batches = validation.batches(settings, data.corpus(split))
    loss = validation.loss_evaluator(
        settings, batches, vocab_size=data.vocabulary.size, name=split
    )
    source, references = data.text(split)
    translator = LineTranslator(settings, data.vocabulary)
    outputs = translator.translate(params, source)
    return Result(
        split=split,
        source=source,
        references=references,
        outputs=outputs,
        losses=dict(loss(params)),
        scores=validation.score(settings.data, outputs, references),
        left_out={key: data.counts[split][key] for key in ("too_long", "empty")},
    )


def after_training(
    settings: config.Config,
    data: prepared.PreparedData,
    workdir: pathlib.Path,
    found: store.Checkpoints,
    *,
    say: Callable[[str], None],
) -> Iterator[Result]:
    """Average the last checkpoints, as section 6.1 does, and score the mean.

    It goes to WORKDIR/averaged, and each result to WORKDIR/evaluations; of several
    processes the main one writes.

    Raises:
        store.CheckpointError: No checkpoint can be averaged.
    """
    count = settings.training.average_checkpoints
    last = average.last_good(found, count, log=say)
    mean = average.average_params(found, last)
    if processes.is_main_process():
        average.save_average(workdir, mean)
        remote.send(workdir, within="averaged")
    processes.wait_for_all("averaged")
    say(f"average of the checkpoints {last}")
    for split in [name for name in ("valid", "test") if name in data.counts]:
        result = score(settings, data, mean, split=split)
        if processes.is_main_process():
            write(workdir, result, settings, mean, checkpoint="averaged")
            remote.send(workdir, within="evaluations")
        yield result


def write(
    workdir: pathlib.Path,
    result: Result,
    settings: config.Config,
    found: store.Checkpoint,
    *,
    checkpoint: str,
) -> pathlib.Path:
    """Put translations and figures into WORKDIR/evaluations.

    Another split, checkpoint, beam, length penalty or value of what else affects scores
    writes another file.
    """
    search = settings.search
    name = (
        f"{result.split}-{checkpoint.replace(':', '')}"
        f"-beam{search.beam_size}-alpha{search.length_penalty:g}"
    )
    always_named = ("search.beam_size", "search.length_penalty")
    for change in compatibility.changes(found.record.get("config", {}), settings):
        affects_scores = config.SETTINGS[change.key].affects == "scores"
        if affects_scores and change.key not in always_named:
            name += f"-{change.key.partition('.')[2]}={change.now}"
    folder = workdir / "evaluations"
    folder.mkdir(exist_ok=True)
    token_files.write_text(folder / f"{name}.txt", result.outputs)
    record: dict[str, Any] = {
        "split": result.split,
        "checkpoint": checkpoint,
        "step": found.step,
        "averaged": found.record.get("averaged"),
        "vocabulary": found.record["vocabulary"],
        "references": bleu.references_checksum(result.references),
        "lines": len(result.outputs),
        "search": dataclasses.asdict(search),
        "data": dataclasses.asdict(settings.data),
        **result.losses,
        "scores": [dataclasses.asdict(score) for score in result.scores],
    }
    path = folder / f"{name}.json"
    # A killed program leaves no half of it.
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(record, indent=1))
    return unfinished.replace(path)
