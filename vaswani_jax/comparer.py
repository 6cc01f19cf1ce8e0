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
from vaswani_jax.checkpoints import bundle, compatibility, select
from vaswani_jax.core import config, languages, parsing, tensor_file
from vaswani_jax.core import paths as paths_module
from vaswani_jax.data import columns, prepared
from vaswani_jax.evaluation import compared_runs, comparison, kept_outputs
from vaswani_jax.evaluation.compared_runs import ComparedRun, ParallelText
from vaswani_jax.evaluation.comparison import System, SystemComparison
from vaswani_jax.evaluation.scored_texts import SPLITS, ScoredText

logger = logging.getLogger(__name__)


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
        run
        for members in members_by_system
        for run in members
        if isinstance(run, ComparedRun)
    ]
    if references:
        name = pathlib.Path(references).name
        text = ParallelText(name, *ScoredText(name, source, references).read())
    else:
        if split not in SPLITS:
            raise ValueError(
                f"split must be {' or '.join(SPLITS)}, got {split!r}; source and "
                "references name another text"
            )
        text = compared_runs.find_text(runs, split)
    data = compared_runs.choose_scoring(runs, scoring or {}, text=text)
    tagged_data = next(
        (
            run.settings.data
            for run in runs
            if languages.locales_by_tag(run.settings.data)
        ),
        data,
    )
    numbers = compared_runs.find_lines(text, tagged_data, locale=data.target_locale)
    chosen_references = [text.references[number] for number in numbers]
    compared_text = comparison.Text(
        name=text.name,
        # A tag is no word, number or name.
        source=[languages.remove_tag(text.source[n], tagged_data) for n in numbers],
        references=chosen_references,
        data=data,
        training_words=compared_runs.count_training_words(
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


def _open_seeds(path: str, name: str) -> list[ComparedRun | System]:
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
    settings = [
        _settings_of_outputs(run) for run in runs if isinstance(run, ComparedRun)
    ]
    for run, run_settings in zip(runs[1:], settings[1:], strict=True):
        if different := [
            str(compatibility.Change(key, settings[0][key], value))
            for key, value in run_settings.items()
            if value != settings[0][key] and not config.SETTINGS[key].incidental
        ]:
            raise ValueError(
                f"{runs[0].name} and {run.name} differ in more than the seed: "
                f"{'; '.join(different)}; name each as a system"
            )
    return runs


def _settings_of_outputs(run: ComparedRun) -> dict[str, Any]:
    """Return the settings of a run's training and of its search, by dotted key.

    The training's are those that its checkpoint records, if it exists: a start that
    makes no update replaces those of config.json.
    """
    recorded = config.flatten_record(
        select.recorded_config(run.workdir, run.checkpoint)
    )
    return {
        key: recorded.get(key, value) if compatibility.decides_updates(key) else value
        for key, value in config.flatten(config.to_dict(run.settings)).items()
    }


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


def _open(path: str, name: str) -> ComparedRun | System:
    """Open a run, or read the outputs of another system from a file."""
    path = paths_module.expand_home(path)
    if columns.find_one_file(path) and not tensor_file.is_tensor_file(path):
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
    if tensor_file.is_tensor_file(workdir):
        prepared_data = bundle.find_data(workdir, settings)
    else:
        directory = prepared.find_directory(settings.data, workdir)
        prepared_data = prepared.open_prepared(directory) if directory else None
    return ComparedRun(name, workdir, checkpoint, settings, prepared_data)


def _check_length(system: System, text: ParallelText) -> None:
    [outputs] = system.outputs
    if len(outputs) != len(text.references):
        raise ValueError(
            f"{system.name} has {len(outputs):,} lines, {text.name} has "
            f"{len(text.references):,} references: each needs one output"
        )


def _choose_lines(system: System, text: ParallelText, numbers: Sequence[int]) -> System:
    _check_length(system, text)
    [outputs] = system.outputs
    return dataclasses.replace(system, outputs=[[outputs[n] for n in numbers]])


def _outputs(
    system: ComparedRun | System,
    text: ParallelText,
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
    translator = api.load(
        system.workdir, checkpoint=system.checkpoint, settings=system.settings
    )
    checkpoint, run = translator.member.checkpoint, system
    if tensor_file.is_tensor_file(system.workdir):
        # "averaged", the default, loads whatever checkpoint a file has.
        run = dataclasses.replace(system, checkpoint=bundle.name_of(checkpoint))
    translations = translator.translate([source[number] for number in numbers])
    outputs = [""] * len(source)
    for number, translation in zip(numbers, translations, strict=True):
        outputs[number] = translation
    return System(system.name, [outputs], _origin(run, step=checkpoint.step))


def _origin(run: ComparedRun, *, step: int) -> str:
    search = run.settings.search
    return (
        f"{run.checkpoint}, step {step:,}, beam {search.beam_size}, alpha "
        f"{search.length_penalty:g}"
    )
