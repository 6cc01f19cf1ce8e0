"""Score a checkpoint on held-out text, and write the scores into the workdir."""

import dataclasses
import json
import logging
import pathlib
from collections.abc import Iterator
from typing import Any

from vaswani_jax.checkpoints import average, compatibility, store
from vaswani_jax.core import config, files, plurals, processes
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import (
    bleu,
    by_language,
    intervals,
    metrics,
    tree_scores,
    validation,
)
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator

logger = logging.getLogger(__name__)
# What another value of data.text_form than in training does to scores.
OTHER_TEXT_FORM = {
    "tokenized": "splitting detokenized text at spaces only gives a tokenized_bleu "
    "that is comparable with nothing",
    "detokenized": "tokenising text that is tokenized already gives scores that are "
    "comparable with nothing",
}
# The settings that every name of an evaluation has.
IN_FILE_NAMES = ("search.beam_size", "search.length_penalty")


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Translations of a split and their scores.

    Attributes:
        split: "valid", "test", or the name of another text.
        source: The source lines.
        references: A reference for each source line.
        outputs: A translation of each source line.
        losses: Loss, perplexity and accuracy by name; none of another text.
        scores: BLEU and its relatives, each a `Score`, the main one first: of several
            target languages the mean, see `by_language.score_outputs`.
        uncounted: Pairs that the losses leave out, by the reason.
    """

    split: str
    source: list[str]
    references: list[str]
    outputs: list[str]
    losses: dict[str, float]
    scores: list[bleu.Score]
    uncounted: dict[str, int]

    def format(self, *, samples: int) -> str:
        """Return up to `samples` translations, then losses, scores and signatures."""
        lines = []
        samples = min(samples, len(self.outputs))
        for index in range(samples):
            line = index * len(self.outputs) // samples
            lines += [
                f"\nsource     {self.source[line]}",
                f"reference  {self.references[line]}",
                f"output     {self.outputs[line]}",
            ]
        lines.append(
            f"\n{self.split}: {plurals.format_count(len(self.source), 'line')} in, "
            f"{plurals.format_count(len(self.outputs), 'line')} out"
        )
        if any(self.uncounted.values()):
            # The scores count every line; the loss cannot.
            pairs = plurals.format_count(self.uncounted["too_long"], "pair")
            lines.append(
                f"loss and perplexity without {pairs} over config.data.max_length and "
                f"{self.uncounted['empty']:,} with an empty side"
            )
        lines += [f"{key}  {value:.4g}" for key, value in self.losses.items()]
        lines.append(bleu.format_scores(self.scores, self.references))
        return "\n".join(lines)


def evaluate(
    translator: Translator,
    text: tuple[list[str], list[str]],
    *,
    split: str,
    checkpoint_name: str,
    workdir: files.Directory | None,
    data: prepared.PreparedData | None = None,
    must_store: bool = False,
) -> Evaluation:
    """Translate a text, score it, and write both into WORKDIR/evaluations.

    Only process 0 writes.

    Args:
        translator: The model, no ensemble.
        text: The source lines and a reference for each.
        split: "valid" or "test", or the name of another text.
        checkpoint_name: The checkpoint's name, as in `--checkpoint`.
        workdir: The run's directory; None for a model in one file, of which nothing is
            written.
        data: The prepared data that have the split, for its losses; None for another
            text.
        must_store: Whether scores that cannot be stored are an error, not a warning.

    Raises:
        ValueError: The translator is an ensemble, SACREBLEU_SEED is no seed, the
            numbers of lines differ or are 0, lines of another text lack their tag or
            are no trees, or the parameters are not finite numbers.
        OSError: The scores cannot be stored, with `must_store`.
    """
    metrics.read_seed()  # Refuse a wrong one before a translation is lost.
    settings, checkpoint = translator.config, translator.member.checkpoint
    warn_of_text_form(checkpoint, settings=settings)
    source, references = text
    by_language.explain_tokens(source, references, data=settings.data)
    hypotheses = translator.best_hypotheses(source)
    outputs = [hypothesis.text for hypothesis in hypotheses]
    output_scores = by_language.score_outputs(
        source,
        outputs,
        references,
        data=settings.data,
        scorer=intervals.score_outputs,
    )
    if translator.vocabulary.is_trees:
        output_scores.append(tree_scores.score_well_formed(hypotheses))
    losses, left_out_counts = {}, {}
    if data:
        losses = _losses(translator, data, split=split)
        left_out_counts = {
            key: data.counts[split][key] for key in ("too_long", "empty")
        }
    evaluation = Evaluation(
        split=split,
        source=source,
        references=references,
        outputs=outputs,
        losses=losses,
        scores=output_scores,
        uncounted=left_out_counts,
    )
    if workdir and processes.is_main_process():
        try:
            write_evaluation(
                workdir.path,
                evaluation,
                settings=settings,
                checkpoint=checkpoint,
                checkpoint_name=checkpoint_name,
            )
            workdir.push(folder="evaluations")
        except OSError as error:
            if must_store:
                raise
            # The directory may be read-only or the disk full; the scores still count.
            logger.warning(
                f"the scores of {split} are printed but could not be stored: {error}"
            )
    return evaluation


def check_same_text(
    translator: Translator,
    text: tuple[list[str], list[str]],
    *,
    split: str,
    checkpoint_name: str,
    workdir: files.Directory,
) -> None:
    """Refuse to replace the outputs of a different text by those of `evaluate`.

    Raises:
        ValueError: The record of this name has other source lines or references.
    """
    name = evaluation_name(
        split,
        checkpoint_name,
        settings=translator.config,
        checkpoint=translator.member.checkpoint,
    )
    record = workdir.path / "evaluations" / f"{name}.json"
    try:
        recorded = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # The record is missing or unreadable.
    sides = zip(("source", "references"), text, strict=True)
    if any(
        # Version 0.2 recorded only the references.
        side in recorded and recorded[side] != bleu.lines_checksum(lines)
        for side, lines in sides
    ):
        raise ValueError(
            f"{record} has the scores of a different text {split}: name this one by "
            "--split=NAME=SOURCE,REFERENCES, or delete that file"
        )


def _losses(
    translator: Translator, data: prepared.PreparedData, *, split: str
) -> dict[str, float]:
    """Return loss, perplexity and accuracy of a split by name."""
    evaluate_loss = validation.loss_evaluator(
        translator.config,
        validation.make_batches(translator.config, data.token_pairs(split)),
        vocab_size=data.vocabulary.size,
        name=split,
    )
    [params] = translator.replicated_params
    return dict(evaluate_loss(params))


def warn_of_text_form(checkpoint: store.Checkpoint, *, settings: config.Config) -> None:
    """Warn if scores take the text for another form than the training did."""
    recorded_values = checkpoint.record.get("config", {})
    for change in compatibility.find_changes(recorded_values, settings):
        if change.key == "data.text_form":
            logger.warning(
                f"{change}: {OTHER_TEXT_FORM[change.now]}; leave the setting out"
            )


def score_average(
    settings: config.Config,
    data: prepared.PreparedData,
    *,
    workdir: files.Directory,
) -> Iterator[Evaluation]:
    """Average the last checkpoints, as section 6.1 does, and score the mean.

    Writes the mean to WORKDIR/averaged and each evaluation to WORKDIR/evaluations.
    Only process 0 writes.

    Raises:
        store.CheckpointError: No checkpoint can be averaged.
        ValueError: As `evaluate`.
        OSError: The mean or the scores cannot be stored.
    """
    count = settings.training.average_checkpoints
    directory = workdir.path / "checkpoints"
    steps = average.last_good(directory, count, fetch_again=workdir.pull_again)
    mean = average.average_params(directory, steps)

    def save() -> None:
        average.save_average(
            workdir.path, mean, settings=settings, vocabulary=data.vocabulary
        )
        workdir.push(folder="averaged")

    processes.run_on_main(save, ValueError, OSError)
    logger.info(f"average of the checkpoints {steps}")
    compatibility.check_fits(mean, settings=settings, vocabulary=data.vocabulary)
    member = Member(settings.model, mean)
    translator = Translator(settings, data.vocabulary, members=[member])
    splits = [name for name in ("valid", "test") if name in data.counts]
    if not splits:
        logger.info("note: no validation set and no test set: the mean is not scored")
    for split in splits:
        yield evaluate(
            translator,
            data.text(split),
            split=split,
            checkpoint_name="averaged",
            workdir=workdir,
            data=data,
            must_store=True,
        )


def file_name(split: str, checkpoint_name: str, *, search: config.SearchConfig) -> str:
    """Return the name of an evaluation by the training's settings, without ending.

    That of the mean of the last 5 checkpoints is test-average5-beam4-alpha0.6.
    """
    beam, alpha = f"beam{search.beam_size}", f"alpha{search.length_penalty:g}"
    checkpoint = checkpoint_name.replace(":", "").replace("/", "-")
    return "-".join([split, checkpoint, beam, alpha])


def evaluation_name(
    split: str,
    checkpoint_name: str,
    *,
    settings: config.Config,
    checkpoint: store.Checkpoint,
) -> str:
    """Return the name of an evaluation's files, without ending.

    It shows the split, the checkpoint, the beam size, the length penalty, and each
    other setting that affects scores if it differs from the training's. The seed is
    one of them if the search samples.
    """
    parts = [file_name(split, checkpoint_name, search=settings.search)]
    for change in compatibility.find_changes(
        checkpoint.record.get("config", {}), settings
    ):
        affects_scores = config.SETTINGS[change.key].affects == "scores"
        draws_others = change.key == "seed" and settings.search.sampling
        if (affects_scores or draws_others) and change.key not in IN_FILE_NAMES:
            parts.append(f"{change.key.rpartition('.')[2]}={change.now}")
    return "-".join(parts)


def write_evaluation(
    workdir: pathlib.Path,
    evaluation: Evaluation,
    *,
    settings: config.Config,
    checkpoint: store.Checkpoint,
    checkpoint_name: str,
) -> pathlib.Path:
    """Write translations and scores into WORKDIR/evaluations.

    Args:
        workdir: The run's directory.
        evaluation: What to write.
        settings: The settings that it was computed with.
        checkpoint: The checkpoint that was scored.
        checkpoint_name: The checkpoint's name, as in `--checkpoint`.

    Returns:
        The path of the JSON file; the translations lie beside it.
    """
    name = evaluation_name(
        evaluation.split, checkpoint_name, settings=settings, checkpoint=checkpoint
    )
    folder = workdir / "evaluations"
    folder.mkdir(exist_ok=True)
    record: dict[str, Any] = {
        "split": evaluation.split,
        "checkpoint": checkpoint_name,
        "step": checkpoint.step,
        "averaged": checkpoint.record.get("averaged"),
        "run": checkpoint.record.get("run", {}).get("id", ""),
        "vocabulary": checkpoint.record["vocabulary"],
        "source": bleu.lines_checksum(evaluation.source),
        "references": bleu.lines_checksum(evaluation.references),
        "lines": len(evaluation.outputs),
        "search": dataclasses.asdict(settings.search),
        "data": dataclasses.asdict(settings.data),
        **evaluation.losses,
        "scores": [dataclasses.asdict(score) for score in evaluation.scores],
    }
    path = folder / f"{name}.json"
    # Outputs and record are replaced together: neither fits the other's older version.
    files.write_together(
        {
            folder / f"{name}.txt": "".join(f"{line}\n" for line in evaluation.outputs),
            path: json.dumps(record, indent=1),
        }
    )
    return path
