"""Find the text, the scoring and the training words of runs that are compared."""

import dataclasses
import logging
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import config, data_config, languages, locales, parsing, presets
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import bleu, line_tables, metrics, word_counts
from vaswani_jax.evaluation.word_counts import WordCounts

logger = logging.getLogger(__name__)
# Settings that decide how outputs are scored, and the values of texts without a run.
SCORING = {
    "text_form": "detokenized",
    "target_locale": "en",
    "lowercase_scores": False,
}


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """A text of source lines and references.

    Attributes:
        name: "valid", "test" or the file of the references.
        source: The source lines.
        references: A reference for each.
    """

    name: str
    source: list[str]
    references: list[str]

    @property
    def checksum(self) -> str:
        """The checksum of the references, as `evaluate` prints it."""
        return bleu.lines_checksum(self.references)


@dataclasses.dataclass(frozen=True)
class ComparedRun:
    """A run, or a model in one file.

    Attributes:
        name: Its name in the comparison.
        workdir: Its directory or file on this machine.
        checkpoint: The name of a checkpoint.
        settings: The run's settings.
        prepared_data: Its prepared data; None if it has none.
    """

    name: str
    workdir: pathlib.Path
    checkpoint: str
    settings: config.Config
    prepared_data: prepared.PreparedData | None

    def text(self, split: str) -> ParallelText | None:
        """Return the run's own text of a split; None if it has none."""
        if self.prepared_data is None or split not in self.prepared_data.counts:
            return None
        return ParallelText(split, *self.prepared_data.text(split))

    def source(self, split: str) -> list[str] | None:
        """Return the source lines of that text; None if it has none."""
        text = self.text(split)
        return text.source if text else None


def find_text(runs: Sequence[ComparedRun], split: str) -> ParallelText:
    """Return the text that all runs share.

    Raises:
        ValueError: No run has it, or two have different references or sources.
    """
    texts = {run.name: text for run in runs if (text := run.text(split)) is not None}
    if not texts:
        raise ValueError(
            f"no system has a {split} text: name --source and --references, or a run"
        )
    first_name, first = next(iter(texts.items()))
    for name, text in texts.items():
        if text.references != first.references:
            if len({run.settings.seed for run in runs}) > 1 and any(
                run.settings.data.source in data_config.GENERATED for run in runs
            ):
                raise ValueError(
                    f"{first_name} and {name} have different references, because "
                    "generated text depends on the seed; name a text of files, by "
                    "--source and --references"
                )
            raise ValueError(
                f"{first_name} and {name} have different references: "
                f"{len(first.references):,} lines, sha256 {first.checksum}, and "
                f"{len(text.references):,} lines, sha256 {text.checksum}; compare "
                "outputs of one text, --source and --references name it"
            )
        if text.source != first.source:
            pairs = zip(first.source, text.source, strict=True)
            number, lines = next(
                (number, lines)
                for number, lines in enumerate(pairs, start=1)
                if lines[0] != lines[1]
            )
            raise ValueError(
                f"{first_name} and {name} have different source lines, first line "
                f"{number}: {lines[0][:60]!r} and {lines[1][:60]!r}; --source and "
                "--references name the lines for all"
            )
    return first


def choose_scoring(
    runs: Sequence[ComparedRun], overrides: Mapping[str, Any], *, text: ParallelText
) -> config.DataConfig:
    """Return the settings that decide how the outputs are scored.

    Raises:
        ValueError: Runs have different ones, or a value is not right.
    """
    if unknown := overrides.keys() - SCORING.keys():
        raise ValueError(f"scoring has {', '.join(SCORING)}, not {min(unknown)}")
    if overrides.get("text_form", "tokenized") not in ("tokenized", "detokenized"):
        raise ValueError(
            f"text_form is tokenized or detokenized, not {overrides['text_form']!r}"
        )
    if locale := overrides.get("target_locale"):
        locales.check_language(locale, name="target_locale")
    if not runs:
        values = {**SCORING, **overrides}
        languages_of_text = {
            "data.source_locale": "en",  # It decides nothing here.
            "data.target_locale": values["target_locale"],
        }
        preset = presets.load(*presets.find("own_text"))
        settings = parsing.parse(
            parsing.override_values(preset.to_dict(), languages_of_text)
        )
        return dataclasses.replace(settings.data, **values)
    data = [dataclasses.replace(run.settings.data, **overrides) for run in runs]
    for run, run_data in zip(runs, data, strict=True):
        if len(languages.target_locales(run_data)) > 1:
            raise ValueError(
                f"{run.name} has several target languages, each with scores of its "
                f"own: choose one of {run_data.target_locale} by --target_locale"
            )
    signatures = [_signature(text, run_data) for run_data in data]
    for run, signature in zip(runs, signatures, strict=True):
        if signature != signatures[0]:
            raise ValueError(
                f"{runs[0].name} and {run.name} have different signatures: "
                f"{signatures[0]} and {signature}; --text_form, --target_locale and "
                "--lowercase_scores set one for all"
            )
    return data[0]


def _signature(text: ParallelText, data: config.DataConfig) -> str:
    """Return the signature of the main score of a text."""
    metric = metrics.find_metrics(text.references, data=data)[0]
    return metric.score(["a"], ["a"], resamples=0).signature


def find_lines(
    text: ParallelText, data: config.DataConfig, *, locale: str
) -> list[int]:
    """Return the indices of the lines of a language: all, if there is only one.

    Raises:
        ValueError: There are none.
    """
    tags = languages.locales_by_tag(data)
    numbers = [
        number
        for number, line in enumerate(text.source)
        if not tags or tags.get(languages.find_tag(line, data) or "") == locale
    ]
    if not numbers:
        try:
            languages.check_tags(text.source, data, first_line=1)
        except ValueError as error:
            raise ValueError(f"the source of {text.name}: {error}") from None
        raise ValueError(
            f"{text.name} has no lines of target_locale={locale}: the run has "
            f"{data.target_locale}"
        )
    return numbers


def count_training_words(
    runs: Sequence[ComparedRun],
    training_text: str,
    *,
    references: Sequence[str],
    data: config.DataConfig,
) -> WordCounts | None:
    """Count the words of the training text; None if there is none.

    Args:
        runs: The first with a training text has the words.
        training_text: FILES[#COLUMN] that has them instead, or "".
        references: Those of the compared language, which decide what a word is.
        data: The settings of the scores.
    """
    metric = metrics.find_metrics(references, data=data)[0]
    tokenize = line_tables.tokenizer_of(metric)
    if training_text:
        return word_counts.count_file(training_text, tokenize=tokenize)
    for run in runs:
        if run.prepared_data and "train" in run.prepared_data.counts:
            return word_counts.count_prepared(
                run.prepared_data,
                name=run.name,
                tokenize=tokenize,
                settings=run.settings.data,
                locale=data.target_locale,
            )
    logger.info("note: no training text, no table by frequency of words")
    return None
