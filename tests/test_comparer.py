"""Runs are compared by what evaluate kept; what cannot be compared is refused."""

import functools
import json
import os
import pathlib
import types
from typing import Any
from unittest import mock

import pytest

from tests import settings
from tests.evaluation import compared
from tests.evaluation.compared import run_settings, write
from vaswani_jax import comparer, report
from vaswani_jax.checkpoints import bundle, store
from vaswani_jax.core import config
from vaswani_jax.data import prepared
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.evaluation import bleu, randomization
from vaswani_jax.inference.translator import Translator
from vaswani_jax.paper import scored_runs

REFERENCES = compared.lines(30)
SOURCE = [f"Source: {line}" for line in REFERENCES]
TRAINING = compared.lines(50, seed=9)
OUTPUTS = compared.with_errors(REFERENCES, share=0.2, seed=1)
OTHERS = compared.with_errors(REFERENCES, share=0.2, seed=2)


@pytest.fixture(scope="module")
def data_directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return prepared data, which all runs share."""
    folder = tmp_path_factory.mktemp("text")
    compared.prepare(folder, train=(TRAINING, TRAINING), test=(SOURCE, REFERENCES))
    return folder


@pytest.fixture
def make_run(tmp_path: pathlib.Path, data_directory: pathlib.Path) -> Any:
    """Return a function that makes a run with kept outputs of its test set."""

    def make_run(
        name: str,
        outputs: list[str],
        *,
        settings_changes: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        workdir = tmp_path / name
        values = run_settings(data_directory, **settings_changes or {})
        (workdir / "evaluations").mkdir(parents=True)
        (workdir / "averaged/4").mkdir(parents=True)
        record = json.dumps(config.to_dict(values))
        (workdir / "config.json").write_text(record)
        metadata = workdir / "averaged/4" / store.RECORD / "metadata"
        metadata.parent.mkdir()
        metadata.write_text(json.dumps({"run": {"id": "4567"}}))
        stem = workdir / "evaluations/test-averaged-beam3-alpha0.6"
        write(stem.with_suffix(".6.txt"), outputs)
        evaluation = {
            "step": 4,
            "lines": len(REFERENCES),
            "references": bleu.lines_checksum(REFERENCES),
        }
        stem.with_suffix(".6.json").write_text(json.dumps(evaluation | changes))
        return str(workdir)

    return make_run


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw less: which outputs are compared is tested here, not how."""
    compute = functools.partial(randomization.compute_p_value, draws=200)
    monkeypatch.setattr(randomization, "compute_p_value", compute)


@pytest.fixture
def translations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of runs that had to translate; their outputs are OTHERS."""
    runs: list[str] = []

    def load(workdir: pathlib.Path, **options: Any) -> Any:
        runs.append(f"{workdir.name}@{options['checkpoint']}")
        checkpoint = types.SimpleNamespace(step=7)
        return types.SimpleNamespace(
            member=types.SimpleNamespace(checkpoint=checkpoint),
            translate=lambda lines: OTHERS[: len(lines)],
        )

    monkeypatch.setattr(comparer.api, "load", load)
    return runs


def test_a_run_and_itself_are_no_different(
    make_run: Any, translations: list[str]
) -> None:
    run = make_run("a", OUTPUTS)
    result = comparer.compare_systems([run, run])
    assert result.systems == [
        ("a", "averaged, step 4, beam 3, alpha 0.6, kept"),
        ("a (2)", "averaged, step 4, beam 3, alpha 0.6, kept"),
    ]
    for scores in result.scores:
        assert [difference.verdict for difference in scores.differences] == [
            "no difference"
        ]
        assert scores.differences[0].p_value == 1
    assert translations == []
    assert result.text == "test" and result.num_lines == 30
    lower_case = comparer.compare_systems(
        [run, run], scoring={"lowercase_scores": True}
    )
    assert lower_case.scores[0].metric == "sacrebleu_lc"


def test_words_are_counted_in_the_training_text(make_run: Any) -> None:
    result = comparer.compare_systems([make_run("a", OUTPUTS), make_run("b", OTHERS)])
    assert result.training_text == "50 of 50 training lines of a"
    [table] = [table for table in result.tables if table.key == "frequency"]
    counts = " ".join(TRAINING).split()
    unseen = {word for word in " ".join(REFERENCES).split() if word not in counts}
    assert unseen == set()
    # All words but the made-up error are frequent; it alone is unknown.
    assert [(row.label, row.count) for row in table.rows] == [
        ("0", 0),
        ("10 to 99", sum(len(line.split()) for line in REFERENCES)),
    ]


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_words_are_found_whatever_score_stands_first(
    tmp_path: pathlib.Path, metric: str
) -> None:
    references = [f"{line.capitalize()}." for line in REFERENCES]
    text = {
        "source": write(tmp_path / "s", SOURCE),
        "references": write(tmp_path / "refs.de", references),
        "training_text": write(tmp_path / "train", references),
    }
    systems = [write(tmp_path / name, references) for name in "ab"]
    result = comparer.compare_systems(systems, **text, metrics=[metric])
    [table] = [table for table in result.tables if table.key == "frequency"]
    counts = {row.label: row.count for row in table.rows}
    num_words = sum(len(line.split()) + 1 for line in references)  # with full stops
    assert "0" not in counts and sum(counts.values()) == num_words


@pytest.mark.parametrize(
    "changes",
    [
        {"references": "0123456789abcdef"},
        {"source": "0123456789abcdef"},
        {"averaged": [3, 4]},
        {"run": "0123"},
        {"search": {"beam_size": 3, "no_repeat_ngram": 3}},
        {"lines": 29},
        {"step": 3},
        {"step": None, "lines": "x"},
    ],
)
def test_kept_outputs_of_something_else_are_not_compared(
    make_run: Any, translations: list[str], changes: dict[str, Any]
) -> None:
    result = comparer.compare_systems(
        [make_run("a", OUTPUTS, **changes), make_run("b", OTHERS)]
    )
    assert translations == ["a@averaged"]
    assert result.systems[0] == ("a", "averaged, step 7, beam 3, alpha 0.6")
    assert result.scores[0].differences[0].num_lines == 0


def test_an_average_is_compared_until_training_goes_on(
    make_run: Any, tmp_path: pathlib.Path, translations: list[str]
) -> None:
    make_run("a", OUTPUTS, step=6, averaged=[4, 6])
    folder = tmp_path / "a/evaluations"
    for path in list(folder.iterdir()):
        path.rename(folder / path.name.replace("averaged", "average2"))
    for step in (2, 4, 6):
        (tmp_path / f"a/checkpoints/{step}").mkdir(parents=True)
    run = f"{tmp_path}/a@average:2"
    comparer.compare_systems([run, run])
    assert translations == []
    (tmp_path / "a/checkpoints/8").mkdir()
    comparer.compare_systems([run, run])
    assert translations == ["a@average:2"] * 2


def test_another_checkpoint_translates(make_run: Any, translations: list[str]) -> None:
    run = make_run("a", OUTPUTS)
    result = comparer.compare_systems([run, f"{run}@best"])
    assert translations == ["a@best"]
    assert [name for name, _ in result.systems] == ["a", "a@best"]


def test_a_directory_of_seeds_is_one_system(
    make_run: Any, tmp_path: pathlib.Path, translations: list[str]
) -> None:
    for number, outputs in ((1, OUTPUTS), (2, OTHERS)):
        make_run(f"W/seed-{number}", outputs, settings_changes={"seed": number})
    other = make_run("b", OUTPUTS)
    result = comparer.compare_systems([tmp_path / "W", other])
    assert result.systems == [
        ("W", "2 seeds: averaged, step 4, beam 3, alpha 0.6, kept"),
        ("b", "averaged, step 4, beam 3, alpha 0.6, kept"),
    ]
    assert result.num_seeds == [2, 1] and translations == []
    assert result.training_text == "50 of 50 training lines of W, seed-1"
    single = comparer.compare_systems([tmp_path / "W/seed-1", tmp_path / "W/seed-2"])
    values = [score.value for score in single.scores[0].scores]
    assert result.scores[0].spreads[0].values == pytest.approx(values)
    best = comparer.compare_systems([f"{tmp_path}/W@best", other])
    assert translations == ["seed-1@best", "seed-2@best"]
    assert best.systems[0] == ("W@best", "2 seeds: best, step 7, beam 3, alpha 0.6")
    itself = comparer.compare_systems([tmp_path / "W"] * 2)
    [difference] = itself.scores[0].differences
    assert (difference.value, difference.verdict) == (0, "no difference")


def test_seeds_at_a_url_are_fetched_run_by_run(
    make_run: Any,
    tmp_path: pathlib.Path,
    translations: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    for number, outputs in ((1, OUTPUTS), (2, OTHERS)):
        run = make_run(f"W/seed-{number}", outputs)
        (pathlib.Path(run) / "checkpoints/4").mkdir(parents=True)
        (pathlib.Path(run) / "checkpoints/4/moments").touch()
    result = comparer.compare_systems([f"file://{tmp_path}/W", make_run("b", OUTPUTS)])
    assert result.num_seeds == [2, 1] and translations == []
    assert not list((tmp_path / "mirrors").rglob("moments"))


def test_a_report_tests_directories_of_seeds_by_their_kept_outputs(
    make_run: Any, tmp_path: pathlib.Path, translations: list[str]
) -> None:
    def scored(workdir: str) -> scored_runs.ScoredRun:
        checksum = bleu.lines_checksum(REFERENCES)
        record = {"split": "test", "checkpoint": "averaged", "references": checksum}
        return scored_runs.ScoredRun(
            pathlib.Path(workdir), {"data.source": "text"}, record, starts=[], time=0.0
        )

    groups = [
        [
            scored(make_run(f"{name}/seed-{n}", outputs, settings_changes={"seed": n}))
            for n in (1, 2)
        ]
        for name, outputs in (("A", REFERENCES), ("B", OUTPUTS))
    ]
    assert report.compare_seeds(groups[:1]) == report.compare_seeds([]) == ""
    written = report.compare_seeds(groups)
    [verdict] = [line for line in written.splitlines() if line.startswith("B - A")][:1]
    assert verdict.endswith("different: A is better")
    assert "approximate randomisation over all seeds" in written
    for path in (tmp_path / "B/seed-2/evaluations").iterdir():
        path.unlink()
    assert report.compare_seeds(groups).endswith(
        "B@averaged are not compared: B@averaged, seed-2 has no kept outputs of test: "
        "`vaswani evaluate` keeps them"
    )
    assert translations == []


def test_seeds_of_other_settings_are_no_system(
    make_run: Any, tmp_path: pathlib.Path
) -> None:
    make_run("W/seed-1", OUTPUTS)
    changes = {"seed": 2, "training.num_steps": 9, "training.keep_checkpoints": 7}
    make_run("W/seed-2", OTHERS, settings_changes=changes)
    with pytest.raises(
        ValueError,
        match=r"^W, seed-1 and W, seed-2 differ in more than the seed: "
        r"config\.training\.num_steps is 9, was 4; name each as a system",
    ):
        comparer.compare_systems([tmp_path / "W", tmp_path / "W"])


@pytest.mark.parametrize(
    ("trained", "difference"),
    [
        ({"model.dropout_rate": 0.3}, r"config\.model\.dropout_rate is 0\.1, was 0\.3"),
        ({"training.average_checkpoints": 1, "search.beam_size": 9}, ""),
    ],
    ids=["training", "mean and search"],
)
def test_seeds_are_compared_as_trained_whatever_a_later_start_has_recorded(
    make_run: Any,
    tmp_path: pathlib.Path,
    data_directory: pathlib.Path,
    trained: dict[str, Any],
    difference: str,
) -> None:
    changes = {"model.dropout_rate": 0.1}
    for number, recorded in ((1, trained), (2, {})):
        seed = {"seed": number}
        make_run(f"W/seed-{number}", OUTPUTS, settings_changes=changes | seed)
        values = run_settings(data_directory, **changes | seed | recorded)
        metadata = tmp_path / f"W/seed-{number}/averaged/4" / store.RECORD / "metadata"
        record = {"run": {"id": "4567"}, "config": config.to_dict(values)}
        metadata.write_text(json.dumps(record))
    systems = [tmp_path / "W", make_run("b", OTHERS)]
    if not difference:
        assert comparer.compare_systems(systems).num_seeds == [2, 1]
        return
    with pytest.raises(ValueError, match=f"differ in more than the seed: {difference}"):
        comparer.compare_systems(systems)


def test_a_file_stands_in_for_a_run(make_run: Any, tmp_path: pathlib.Path) -> None:
    other = write(tmp_path / "other.out", OTHERS)
    result = comparer.compare_systems([make_run("a", OUTPUTS), other])
    assert result.systems[1] == ("other.out", "a file")
    swapped = comparer.compare_systems([other, make_run("b", OUTPUTS)])
    values = [
        comparison.scores[0].differences[0].value for comparison in (result, swapped)
    ]
    assert values[0] == -values[1]


def save_file(path: pathlib.Path, values: config.Config, words: Vocabulary) -> None:
    """Write a model in one file, of step 7."""
    sizes = {"vocab_size": words.size, "seed": 1}
    params = settings.random_params(values.model, **sizes)
    record = {"vocabulary": words.fingerprint, "config": config.to_dict(values)}
    checkpoint = store.Checkpoint(7, {"params": params}, record)
    bundle.Bundle(values, words, checkpoint).save(path, dtype="float32")


def test_a_model_in_one_file_has_the_name_of_its_checkpoint(
    make_run: Any,
    tmp_path: pathlib.Path,
    data_directory: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = prepared.open_prepared(data_directory / "data").vocabulary
    path = tmp_path / "best.safetensors"
    save_file(path, run_settings(data_directory), words)
    translator = mock.Mock(spec=Translator)
    translator.translate = lambda lines: OTHERS[: len(lines)]
    translator.member.checkpoint = bundle.read_checkpoint(path)
    monkeypatch.setattr(comparer.api, "load", lambda *_, **__: translator)
    result = comparer.compare_systems([make_run("a", OUTPUTS), path])
    assert result.systems[1] == ("best.safetensors", "7, step 7, beam 3, alpha 0.6")


def test_a_model_in_one_file_has_the_text_of_its_own_vocabulary_alone(
    tmp_path: pathlib.Path,
    data_directory: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = data_directory / "data"
    values = run_settings(data_directory, **{"data.directory": str(folder)})
    words = prepared.open_prepared(folder).vocabulary
    own, foreign = (tmp_path / f"{name}.safetensors" for name in ("own", "foreign"))
    save_file(own, values, words)
    save_file(foreign, values, settings.letters_vocabulary())
    translator = mock.Mock(spec=Translator)
    translator.translate = lambda lines: OTHERS[: len(lines)]
    translator.member.checkpoint = bundle.read_checkpoint(own)
    monkeypatch.setattr(comparer.api, "load", lambda *_, **__: translator)
    other = write(tmp_path / "other.out", OUTPUTS)
    assert comparer.compare_systems([own, other]).num_lines == len(OUTPUTS)
    with pytest.raises(ValueError, match="no system has a test text: name --source"):
        comparer.compare_systems([foreign, other])


def test_files_alone_need_their_text(tmp_path: pathlib.Path) -> None:
    systems = [write(tmp_path / "a", OUTPUTS), write(tmp_path / "b", OTHERS)]
    with pytest.raises(ValueError, match="no system has a test text: name --source"):
        comparer.compare_systems(systems)
    text = {
        "source": write(tmp_path / "s", SOURCE),
        "references": write(tmp_path / "refs.de", REFERENCES),
    }
    with pytest.raises(ValueError, match="each needs the other"):
        comparer.compare_systems(systems, source=text["source"])
    result = comparer.compare_systems(
        systems,
        **text,
        training_text=write(tmp_path / "train", TRAINING),
        scoring={"text_form": "tokenized", "lowercase_scores": True},
    )
    assert result.text == "refs.de" and result.scores[0].metric == "tokenized_bleu_lc"
    assert result.training_text.startswith("the first 50 lines of ")


def test_kept_outputs_serve_for_files_of_the_same_references(
    make_run: Any, tmp_path: pathlib.Path, translations: list[str]
) -> None:
    runs = [make_run("a", OUTPUTS), make_run("b", OTHERS)]
    source = write(tmp_path / "s", SOURCE)
    same = write(tmp_path / "r", REFERENCES)
    comparer.compare_systems(runs, source=source, references=same)
    assert translations == []
    others = write(tmp_path / "o", REFERENCES[::-1])
    comparer.compare_systems(runs, source=source, references=others)
    assert translations == ["a@averaged", "b@averaged"]
    noisy = write(tmp_path / "noisy", [line.upper() for line in SOURCE])
    comparer.compare_systems(runs, source=noisy, references=same)
    assert translations == ["a@averaged", "b@averaged"] * 2


def test_different_sources_of_equal_references_are_refused(
    make_run: Any, tmp_path: pathlib.Path, translations: list[str]
) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    other_source = [*SOURCE[:4], "une autre ligne", *SOURCE[5:]]
    compared.prepare(
        folder, train=(TRAINING, TRAINING), test=(other_source, REFERENCES)
    )
    changes = {"data.directory": str(folder / "data")}
    runs = [make_run("a", OUTPUTS), make_run("b", OTHERS, settings_changes=changes)]
    with pytest.raises(
        ValueError,
        match=r"^a and b have different source lines, first line 5: .* and 'une autre",
    ):
        comparer.compare_systems(runs)
    source = write(tmp_path / "s", SOURCE)
    references = write(tmp_path / "refs", REFERENCES)
    comparer.compare_systems(runs, source=source, references=references)
    assert translations == ["b@averaged"]  # It has kept outputs of another source.


def test_one_of_several_languages_is_compared(
    make_run: Any, tmp_path: pathlib.Path
) -> None:
    changes = {
        "data.target_locale": "de,fr",
        "data.user_symbols": "<2de>,<2fr>",
    }
    tags = ["<2de>", "<2fr>", "<2fr>"]
    source = [f"{tags[n % 3]} {line}" for n, line in enumerate(SOURCE)]
    checksum = bleu.lines_checksum(source)
    runs = [
        make_run(name, outputs, settings_changes=changes, source=checksum)
        for name, outputs in (("a", OUTPUTS), ("b", OTHERS))
    ]
    text = {
        "source": write(tmp_path / "s", source),
        "references": write(tmp_path / "r", REFERENCES),
    }
    with pytest.raises(
        ValueError, match=r"several target languages.*choose one of de,fr"
    ):
        comparer.compare_systems(runs, **text)
    result = comparer.compare_systems(runs, **text, scoring={"target_locale": "de"})
    assert result.num_lines == 10
    assert result.references == bleu.lines_checksum(REFERENCES[::3])
    [pair] = result.pairs
    shown = [*pair.first_better, *pair.second_better]
    assert shown and {line.source for line in shown} <= set(SOURCE[::3])
    # Lines have the numbers that they have in the file.
    assert all(SOURCE[line.line - 1] == line.source for line in shown)
    rows = [row for table in result.tables for row in table.rows]
    named = {line for row in rows for lines in row.lines or [] for line in lines}
    assert named and {line % 3 for line in named} == {1}
    with pytest.raises(ValueError, match="r has no lines of target_locale=es"):
        comparer.compare_systems(runs, **text, scoring={"target_locale": "es"})
    text["source"] = write(tmp_path / "plain", SOURCE)
    with pytest.raises(ValueError, match="the source of r: line 1 must begin with a"):
        comparer.compare_systems(runs, **text, scoring={"target_locale": "de"})


def test_a_run_of_one_language_gets_no_tags(
    make_run: Any, tmp_path: pathlib.Path
) -> None:
    changes = {"data.target_locale": "de,fr", "data.user_symbols": "<2de>,<2fr>"}
    tagged = [f"<2de> {line}" for line in SOURCE]
    several = make_run(
        "several",
        OUTPUTS,
        settings_changes=changes,
        source=bleu.lines_checksum(tagged),
    )
    single = make_run("single", OTHERS, source=bleu.lines_checksum(SOURCE))
    result = comparer.compare_systems(
        [several, single],
        source=write(tmp_path / "s", tagged),
        references=write(tmp_path / "r", REFERENCES),
        scoring={"target_locale": "de"},
        translate=False,
    )
    alone = comparer.compare_systems([single, single])
    assert result.scores[0].scores[1].value == alone.scores[0].scores[0].value


def test_a_run_translates_only_the_lines_that_are_compared(
    make_run: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    languages = ["de", "fr"]
    tagged = [f"<2{languages[n % 2]}> {line}" for n, line in enumerate(SOURCE)]
    changes = {"data.target_locale": "de,fr", "data.user_symbols": "<2de>,<2fr>"}
    kept = make_run(
        "kept", OUTPUTS, settings_changes=changes, source=bleu.lines_checksum(tagged)
    )
    run = make_run("run", OTHERS, source="of other lines")
    translated: list[str] = []

    def translate(lines: list[str]) -> list[str]:
        translated.extend(lines)
        return [f"ein {line}" for line in lines]

    translator = mock.Mock(spec=Translator)
    translator.translate = translate
    translator.member.checkpoint.step = 1
    monkeypatch.setattr(comparer.api, "load", lambda *_, **__: translator)
    comparer.compare_systems(
        [kept, run],
        source=write(tmp_path / "s", tagged),
        references=write(tmp_path / "r", REFERENCES),
        scoring={"target_locale": "de"},
    )
    assert translated == SOURCE[::2]


def test_training_words_are_those_of_the_language_that_is_compared(
    make_run: Any, tmp_path: pathlib.Path
) -> None:
    """Most lines are Thai, whose words BLEU takes for letters."""
    changes = {"data.target_locale": "de,th", "data.user_symbols": "<2de>,<2th>"}
    tags = ["<2de>", "<2th>", "<2th>"]
    source = [f"{tags[n % 3]} {line}" for n, line in enumerate(SOURCE)]
    references = [line if n % 3 == 0 else "สวัสดี" for n, line in enumerate(REFERENCES)]
    recorded = {
        "source": bleu.lines_checksum(source),
        "references": bleu.lines_checksum(references),
    }
    runs = [
        make_run(name, references, settings_changes=changes, **recorded)
        for name in ("a", "b")
    ]
    german = references[::3]
    result = comparer.compare_systems(
        runs,
        source=write(tmp_path / "s", source),
        references=write(tmp_path / "r", references),
        training_text=write(tmp_path / "train", german),
        scoring={"target_locale": "de"},
    )
    [table] = [table for table in result.tables if table.key == "frequency"]
    num_words = sum(len(line.split()) for line in german)
    assert sum(row.count for row in table.rows) == num_words


def test_a_column_of_a_table_is_a_system(make_run: Any, tmp_path: pathlib.Path) -> None:
    rows = [f"{n}\t{line}" for n, line in enumerate(OTHERS)]
    table = write(tmp_path / "n.tsv", rows)
    plain = write(tmp_path / "plain", OTHERS)
    run = make_run("a", OUTPUTS)
    result = comparer.compare_systems([run, f"{table}#2", plain])
    of_run, of_column, of_file = (score.value for score in result.scores[0].scores)
    assert of_column == of_file != of_run
    with pytest.raises(ValueError, match=r"name one, such as n\.tsv#1"):
        comparer.compare_systems([run, table])


def test_what_makes_no_sense_is_refused(
    make_run: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("a", OUTPUTS)
    short = write(tmp_path / "short", OUTPUTS[:3])
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("HOME", str(tmp_path))
    for systems, options, message in (
        ([run], {}, "2 to 10 systems can be compared, got 1"),
        ([run, short], {}, "short has 3 lines, test has 30 references"),
        ([run, str(tmp_path / "none")], {}, "none: no run, and no file of outputs"),
        ([run, str(tmp_path / "pipe")], {}, "pipe is a pipe or a device; write the"),
        ([run, "~/short"], {}, "short has 3 lines, test has 30 references"),
        ([run, run], {"scoring": {"tokenizer": "zh"}}, "scoring has text_form"),
        ([run, run], {"scoring": {"text_form": "x"}}, "text_form is tokenized or"),
        ([run, run], {"scoring": {"target_locale": "zzz"}}, "target_locale"),
        ([run, run], {"split": "valid"}, "no system has a valid text"),
        ([run, run], {"split": "train"}, "split must be valid or test, got 'train'"),
        ([run, run], {"metrics": ["comet"]}, "a metric is one of"),
    ):
        with pytest.raises(ValueError, match=message):
            comparer.compare_systems(systems, **options)
    with pytest.raises(TypeError, match="must be a list of runs, got 'runs/a'"):
        comparer.compare_systems("runs/a")


def test_a_parser_is_refused(make_run: Any) -> None:
    parser = make_run("p", OUTPUTS, settings_changes=settings.TREEBANK)
    with pytest.raises(ValueError, match="p writes trees; `vaswani evaluate-trees`"):
        comparer.compare_systems([parser, parser])
