"""Compare trained runs and other systems: `vaswani_jax.compare_systems`.

    import vaswani_jax
    comparison = vaswani_jax.compare_systems(["runs/a", "runs/b"])
    print(comparison.format())

The program `compare` calls it, too.
"""

import collections
import dataclasses
import itertools
import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax import api
from vaswani_jax.checkpoints import run_record, select
from vaswani_jax.core import (
    compilation_cache,
    config,
    data_config,
    languages,
    locales,
    parsing,
    tensor_file,
)
from vaswani_jax.core import paths as paths_module
from vaswani_jax.data import columns, prepared
from vaswani_jax.evaluation import (
    bleu,
    comparison,
    kept_outputs,
    line_tables,
    word_counts,
)
from vaswani_jax.evaluation import metrics as metrics_module
from vaswani_jax.evaluation.comparison import System, SystemComparison
from vaswani_jax.evaluation.scored_texts import ScoredText
from vaswani_jax.evaluation.word_counts import WordCounts

logger = logging.getLogger(__name__)
# Settings that decide how outputs are scored, and the values of texts without a run.
SCORING = {
    "text_form": "detokenized",
    "target_locale": "en",
    "lowercase_scores": False,
}


@dataclasses.dataclass(frozen=True)
class _Text:
    """Source lines and references, and where they come from."""

    name: str
    source: list[str]
    references: list[str]

    @property
    def checksum(self) -> str:
        """The checksum of the references, as `evaluate` prints it."""
        return bleu.lines_checksum(self.references)


@dataclasses.dataclass(frozen=True)
class _Run:
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

    def text(self, split: str) -> _Text | None:
        """Return the run's own text of a split; None if it has none."""
        if self.prepared_data is None or split not in self.prepared_data.counts:
            return None
        return _Text(split, *self.prepared_data.text(split))

    def source(self, split: str) -> list[str] | None:
        """Return the source lines of that text; None if it has none."""
        text = self.text(split)
        return text.source if text else None


def compare_systems(
    systems: Sequence[str | os.PathLike[str]],
    *,
    split: str = "test",
    source: str = "",
    references: str = "",
    training_text: str = "",
    scoring: Mapping[str, Any] | None = None,
    metrics: Sequence[str] = (),
    test: str = "",
    num_lines: int = 5,
    translate: bool = True,
) -> SystemComparison:
    """Compare the translations of systems on one text.

    >>> comparison = compare_systems(["runs/a", "runs/b"])  # doctest: +SKIP
    >>> comparison.scores[0].differences[0].verdict  # doctest: +SKIP
    'no difference'

    Args:
        systems: 2 to 10 runs (WORKDIR, `WORKDIR@CHECKPOINT`, FILE.safetensors) or files
            with a translation a line. The directory of `train_seeds` is one system of
            several runs, and its score is their mean. If `evaluate` has kept outputs of
            a run, they are used; if not, the run translates the text.
        split: "valid" or "test", a text of the runs. With `references`, the name under
            which runs may have kept outputs.
        source: FILES[#COLUMN] of source lines, instead of the runs'.
        references: Their references.
        training_text: FILES[#COLUMN] of target lines in which words are counted,
            instead of the first run's training text.
        scoring: Values of "text_form", "target_locale" and "lowercase_scores" for all
            outputs; by default those of the runs. "target_locale" chooses one of
            several.
        metrics: Some of "bleu", "chrf", "chrf++" and "ter"; the tables show the first.
            By default BLEU, and chrF2 of detokenized text.
        test: "randomization", the default, or "bootstrap", sacreBLEU's, which cannot
            compare several seeds.
        num_lines: The most lines to list in favour of each system of a pair.
        translate: Whether a run without kept outputs translates the text.

    Raises:
        ValueError: Systems have different references or signatures, or not as many
            lines; a run, a text or an option is not right; or a run has no kept outputs
            and may not translate.
        TypeError: `systems` is one string or path.
        OSError: A file is missing.
    """
    if isinstance(systems, str | os.PathLike):
        raise TypeError(f"systems must be a list of runs, got {os.fspath(systems)!r}")
    paths = [os.fspath(name) for name in systems]
    if not 2 <= len(paths) <= comparison.MAX_SYSTEMS:
        raise ValueError(
            f"2 to {comparison.MAX_SYSTEMS} systems can be compared, got {len(paths)}"
        )
    if bool(source) != bool(references):
        raise ValueError("name source and references together: each needs the other")
    names = _unique(paths)
    members_by_system = [
        _open_seeds(path, name) or [_open(path, name)]
        for path, name in zip(paths, names, strict=True)
    ]
    runs = [
        run for members in members_by_system for run in members if isinstance(run, _Run)
    ]
    if references:
        name = pathlib.Path(references).name
        text = _Text(name, *ScoredText(name, source, references).read())
    else:
        text = _text_of_runs(runs, split)
    data = _scoring(runs, scoring or {}, text=text)
    tagged_data = next(
        (
            run.settings.data
            for run in runs
            if languages.locales_by_tag(run.settings.data)
        ),
        data,
    )
    numbers = _lines_of_locale(text, tagged_data, locale=data.target_locale)
    chosen_references = [text.references[number] for number in numbers]
    compared_text = comparison.Text(
        name=text.name,
        # A tag is no word, number or name.
        source=[languages.remove_tag(text.source[n], tagged_data) for n in numbers],
        references=chosen_references,
        data=data,
        training_words=_training_words(
            runs, training_text, references=chosen_references, data=data
        ),
        line_numbers=[number + 1 for number in numbers],
    )
    # Refuse wrong options before a run translates, which takes long.
    has_seeds = any(len(members) > 1 for members in members_by_system)
    comparison.choose_scores(
        compared_text, metrics=metrics, test=test, has_seeds=has_seeds
    )
    for member in itertools.chain(*members_by_system):
        if isinstance(member, System):
            _check_length(member, text)
    return comparison.compare(
        [
            _join_seeds(
                name,
                [
                    _choose_lines(
                        _outputs(
                            run,
                            text,
                            numbers=numbers,
                            tagged_data=tagged_data,
                            split=split,
                            translate=translate,
                        ),
                        text,
                        numbers,
                    )
                    for run in members
                ],
            )
            for name, members in zip(names, members_by_system, strict=True)
        ],
        compared_text,
        metrics=metrics,
        test=test,
        num_lines=num_lines,
    )


def _unique(paths: Sequence[str]) -> list[str]:
    """Return names for a comparison to show, a different one for each system.

    >>> _unique(["runs/a", "/home/ann/runs/b/", "runs/a"])
    ['runs/a', 'b', 'runs/a (2)']
    """
    shown_names = [
        pathlib.Path(path).name if path.startswith("/") else path.rstrip("/")
        for path in paths
    ]
    counts: collections.Counter[str] = collections.Counter()
    names = []
    for name in shown_names:
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return names


def _open_seeds(path: str, name: str) -> list[_Run | System]:
    """Open the runs of a directory of seeds; none of any other system.

    Raises:
        ValueError: Their settings differ in more than the seed.
    """
    folder, checkpoint = select.split_name(paths_module.expand_home(path))
    ending = f"@{checkpoint}" * bool(checkpoint)
    runs = [
        _open(f"{path_of_run}{ending}", f"{name}, {path_of_run.rpartition('/')[2]}")
        for path_of_run in api.find_seeds(folder)
    ]
    settings = [run.settings for run in runs if isinstance(run, _Run)]
    for run, run_settings in zip(runs[1:], settings[1:], strict=True):
        changes = run_record.find_changes(config.to_dict(settings[0]), run_settings)
        if different := [
            str(change)
            for change in changes
            if not config.SETTINGS[change.key].incidental
        ]:
            raise ValueError(
                f"{runs[0].name} and {run.name} differ in more than the seed: "
                f"{'; '.join(different)}; name each as a system"
            )
    return runs


def _join_seeds(name: str, runs: Sequence[System]) -> System:
    """Return the runs of a system as one, with where their outputs come from."""
    if len(runs) == 1:
        return dataclasses.replace(runs[0], name=name)
    origins = dict.fromkeys(run.origin for run in runs)
    return System(
        name,
        [outputs for run in runs for outputs in run.outputs],
        f"{len(runs)} seeds: {'; '.join(origins)}",
    )


def _open(path: str, name: str) -> _Run | System:
    """Open a run, or read the outputs of another system from a file."""
    path = paths_module.expand_home(path)
    if pathlib.Path(path).is_file() and not tensor_file.is_tensor_file(path):
        return System(name, [list(columns.read(path, pathlib.Path()))], "a file")
    workdir, checkpoint = api.locate(path)
    if not (workdir.is_dir() or tensor_file.is_tensor_file(workdir)):
        if pathlib.Path(path).exists():
            raise ValueError(
                f"{path} is a pipe or a device; write the outputs to a file"
            )
        raise ValueError(f"{path}: no run, and no file of outputs, has this name")
    settings = parsing.load(workdir)
    if settings.data.source == "treebank":
        raise ValueError(
            f"{path} writes trees; `vaswani evaluate-trees` compares them with others"
        )
    prepared_data = None
    if prepared.has_directory(settings.data, workdir):
        directory = prepared.data_directory(settings.data, workdir)
        if directory.is_dir():
            prepared_data = prepared.open_prepared(directory)
    return _Run(name, workdir, checkpoint, settings, prepared_data)


def _text_of_runs(runs: Sequence[_Run], split: str) -> _Text:
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


def _scoring(
    runs: Sequence[_Run], overrides: Mapping[str, Any], *, text: _Text
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
        preset = api.load_config("own_text", languages_of_text)
        return dataclasses.replace(preset.data, **values)
    data = [dataclasses.replace(run.settings.data, **overrides) for run in runs]
    for run, settings in zip(runs, data, strict=True):
        if len(languages.target_locales(settings)) > 1:
            raise ValueError(
                f"{run.name} has several target languages, each with scores of its "
                f"own: choose one of {settings.target_locale} by --target_locale"
            )
    signatures = [_signatures(text, settings) for settings in data]
    for run, signature in zip(runs, signatures, strict=True):
        if signature != signatures[0]:
            raise ValueError(
                f"{runs[0].name} and {run.name} have different signatures: "
                f"{signatures[0]} and {signature}; --text_form, --target_locale and "
                "--lowercase_scores set one for all"
            )
    return data[0]


def _signatures(text: _Text, data: config.DataConfig) -> str:
    """Return the signature of the main score of a text."""
    metric = metrics_module.find_metrics(text.references, data=data)[0]
    return metric.score(["a"], ["a"], resamples=0).signature


def _lines_of_locale(text: _Text, data: config.DataConfig, *, locale: str) -> list[int]:
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


def _check_length(system: System, text: _Text) -> None:
    [outputs] = system.outputs
    if len(outputs) != len(text.references):
        raise ValueError(
            f"{system.name} has {len(outputs):,} lines, {text.name} has "
            f"{len(text.references):,} references: each needs one output"
        )


def _choose_lines(system: System, text: _Text, numbers: Sequence[int]) -> System:
    _check_length(system, text)
    [outputs] = system.outputs
    return dataclasses.replace(system, outputs=[[outputs[n] for n in numbers]])


def _outputs(
    system: _Run | System,
    text: _Text,
    *,
    numbers: Sequence[int],
    tagged_data: config.DataConfig,
    split: str,
    translate: bool,
) -> System:
    """Return the outputs of a system: kept ones, or those of a search.

    Args:
        system: A run, or a system whose outputs are there.
        text: The source lines and references.
        numbers: The indices of the lines that are compared: a run translates no others,
            which may be in languages that it lacks.
        tagged_data: The settings whose tags the source lines have. A run without tags
            of its own gets the lines without them.
        split: The name of the text, under which outputs are kept.
        translate: Whether a run may translate.

    Raises:
        ValueError: It has no kept ones, and may not translate.
    """
    if isinstance(system, System):
        return system
    source = text.source
    if not languages.locales_by_tag(system.settings.data):
        source = [languages.remove_language_tag(line, tagged_data) for line in source]
    record = kept_outputs.read(
        system.workdir,
        system.checkpoint,
        split=split,
        search=system.settings.search,
        source=source,
        references=text.references,
        find_unrecorded_source=lambda: system.source(split),
    )
    if record is not None:
        origin = f"{_origin(system, step=record.step)}, kept"
        return System(system.name, [record.lines], origin)
    if not translate:
        raise ValueError(
            f"{system.name} has no kept outputs of {text.name}: `vaswani evaluate` "
            "keeps them"
        )
    logger.info(
        f"{system.name} has no kept outputs of {text.name}: it translates "
        f"{len(numbers):,} lines (`vaswani evaluate` keeps outputs)"
    )
    compilation_cache.enable()
    translator = api.load(
        system.workdir, checkpoint=system.checkpoint, settings=system.settings
    )
    step = translator.member.checkpoint.step
    translations = translator.translate([source[number] for number in numbers])
    outputs = [""] * len(source)
    for number, translation in zip(numbers, translations, strict=True):
        outputs[number] = translation
    return System(system.name, [outputs], _origin(system, step=step))


def _origin(run: _Run, *, step: int) -> str:
    search = run.settings.search
    return (
        f"{run.checkpoint}, step {step:,}, beam {search.beam_size}, alpha "
        f"{search.length_penalty:g}"
    )


def _training_words(
    runs: Sequence[_Run],
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
    metric = metrics_module.find_metrics(references, data=data)[0]
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
