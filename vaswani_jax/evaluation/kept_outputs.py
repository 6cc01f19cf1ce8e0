"""Read the outputs that `vaswani evaluate` kept, if they are still those of the run."""

import dataclasses
import json
import logging
import pathlib
from collections.abc import Callable, Sequence

from vaswani_jax.checkpoints import run_record, select
from vaswani_jax.core import config
from vaswani_jax.data import text_files
from vaswani_jax.evaluation import bleu, scores

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class KeptOutputs:
    """The translations of a text by a checkpoint.

    Attributes:
        lines: One line for each source line.
        step: The step of the checkpoint.
    """

    lines: list[str]
    step: int


def read(
    workdir: pathlib.Path,
    checkpoint: str,
    *,
    split: str,
    search: config.SearchConfig,
    source: Sequence[str],
    references: Sequence[str],
    find_unrecorded_source: Callable[[], Sequence[str] | None],
) -> KeptOutputs | None:
    """Return the outputs that `evaluate` kept, or None if they do not fit.

    They must be of these source lines and references, of the checkpoint that the name
    means, searched with these settings, and as many as the record says. If there is no
    such checkpoint, they must be of the workdir's last run, as far as that is recorded.

    Args:
        workdir: The run's directory.
        checkpoint: The checkpoint's name.
        split: The text's name in `evaluations/`.
        search: The run's settings of the search.
        source: The lines that must have been translated.
        references: Their references.
        find_unrecorded_source: Returns the source lines of a record of version 0.2,
            which lacks their checksum; None if they are unknown.
    """
    path = (
        workdir
        / "evaluations"
        / f"{scores.file_name(split, checkpoint, search=search)}.json"
    )
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        lines = list(text_files.read_lines(path.with_suffix(".txt")))
        step = int(record["step"])
        recorded_steps = select.Steps(
            step, record.get("averaged"), record.get("run", "")
        )
        changed_settings = [
            key
            for key, value in record.get("search", {}).items()
            if (setting := config.SETTINGS.get(f"search.{key}"))
            and setting.affects == "scores"
            and value != getattr(search, key)
        ]
        recorded_text = record.get("source"), record["references"]
        is_whole = record["lines"] == len(lines)
        current_steps = select.find_steps(workdir, checkpoint)
        last_run = run_record.identify_run(workdir)["id"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning(f"{path} cannot be used: {error!r}")
        return None
    checksum = bleu.lines_checksum(source)
    if not recorded_text[0]:
        unrecorded_source = find_unrecorded_source() or source
        recorded_text = bleu.lines_checksum(unrecorded_source), recorded_text[1]
    if recorded_text != (checksum, bleu.lines_checksum(references)):
        reason = "they translate another text"
    elif not is_whole:
        reason = "their number of lines differs from the record"
    elif current_steps and not current_steps.may_equal(recorded_steps):
        reason = "they come from another model"
    elif not current_steps and last_run and recorded_steps.run not in ("", last_run):
        reason = "they come from an earlier run of this workdir"
    elif changed_settings:
        reason = f"their search settings differ: {', '.join(changed_settings)}"
    else:
        return KeptOutputs(lines, step)
    logger.info(f"note: {path}: its outputs are not used, because {reason}")
    return None
