"""Training from Python: it returns what it reached, and raises what programs print."""

import dataclasses
import json
import pathlib
import shutil
import signal

import jax
import numpy as np
import pytest

import vaswani_jax
from tests import interpreter, settings
from vaswani_jax.checkpoints import store
from vaswani_jax.core import compilation_cache, config, files, seeds
from vaswani_jax.evaluation import scores
from vaswani_jax.plots import canvas, learning_curves
from vaswani_jax.training import step

# One shape of batches, so that one step is compiled. A search compiles one loop for
# its first 16 tokens, and more for longer outputs.
ONE_SHAPE = {"data.num_buckets": 1, "search.max_tokens": 16}


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir for the tests of this module, one after the other."""
    return tmp_path_factory.mktemp("run")


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than these trainings."""
    monkeypatch.setattr(canvas, "is_available", lambda: False)


@pytest.fixture(autouse=True)
def _no_compilation_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of other modules compile as they did before."""
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)


def count_modules(params: object) -> dict[str, float]:
    return {"valid/modules": len(params)}  # type: ignore[arg-type]


def test_a_signal_raises_and_the_next_call_resumes(workdir: pathlib.Path) -> None:
    small = settings.small_settings(**ONE_SHAPE)

    def stop(params: object) -> dict[str, float]:
        signal.raise_signal(signal.SIGTERM)
        return {}

    with pytest.raises(vaswani_jax.Stopped, match="stopped by SIGTERM at step 2"):
        vaswani_jax.train(small, workdir, evaluators=[stop])
    assert not jax.config.values["jax_cpu_enable_async_dispatch"]  # As for programs.
    # The signals have their own meaning again.
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    reported = []

    def report(evaluation: scores.Evaluation) -> None:
        written = list((workdir / "evaluations").glob("*.json"))
        reported.append((evaluation.split, len(written)))

    result = vaswani_jax.train(
        small, workdir, evaluators=[count_modules], on_evaluation=report
    )
    # Each is handed over before the next split is translated.
    assert reported == [("valid", 1), ("test", 2)]
    assert result.step == small.training.num_steps == 4
    assert result.metrics["valid/modules"] == len(["embedding", "encoder", "decoder"])
    assert result.metrics["valid/loss"] > 0
    assert [evaluation.split for evaluation in result.evaluations] == ["valid", "test"]
    for directory in (result.checkpoints, result.best, result.averaged):
        assert list(directory.iterdir())
    # What has ended is returned again.
    repeated = vaswani_jax.train(small, workdir)
    assert (repeated.step, repeated.metrics) == (result.step, result.metrics)
    assert repeated.evaluations == result.evaluations


def test_the_learning_curves_are_drawn_or_the_log_says_what_draws_them(
    workdir: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")
    monkeypatch.setattr(canvas, "is_available", lambda: True)
    small = settings.small_settings(**ONE_SHAPE)
    curves = workdir / "curves.png"
    curves.unlink(missing_ok=True)
    vaswani_jax.train(small, workdir)
    assert curves.read_bytes().startswith(b"\x89PNG")
    curves.unlink()
    caplog.set_level("INFO", logger="vaswani_jax")

    def fail(runs: object) -> None:
        raise RuntimeError("out of ink")

    # A finished run stays one.
    monkeypatch.setattr(learning_curves, "draw", fail)
    assert vaswani_jax.train(small, workdir).step == 4
    assert "curves.png is not drawn: out of ink" in caplog.text

    monkeypatch.setattr(canvas, "is_available", lambda: False)
    caplog.clear()
    vaswani_jax.train(small, workdir)
    lines = [line for line in caplog.messages if "curves.png" in line]
    assert lines == ["no curves.png: pip install 'vaswani-jax[plot]' draws it"]
    assert not curves.exists()


def test_what_programs_refuse_raises_with_the_same_sentence(
    workdir: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("SACREBLEU_SEED", "")
        with pytest.raises(ValueError, match="SACREBLEU_SEED must be a whole number"):
            vaswani_jax.train(settings.small_settings(), tmp_path)
    with files.held(tmp_path), pytest.raises(ValueError, match="is in use by process"):
        vaswani_jax.train(settings.small_settings(), tmp_path)
    wider = settings.small_settings(**{"model.d_ff": 12})
    with pytest.raises(
        ValueError, match=r"cannot resume with: config.model.d_ff is 12"
    ):
        vaswani_jax.train(wider, workdir)
    with pytest.raises(ValueError, match="--init_from: there is no directory"):
        vaswani_jax.train(
            settings.small_settings(), tmp_path, init_from=str(tmp_path / "none")
        )


def test_a_config_of_another_program_is_not_replaced(tmp_path: pathlib.Path) -> None:
    other = tmp_path / "config.json"
    other.write_text('{"model_type": "marian"}')
    with pytest.raises(ValueError, match=r"config\.json is not the record of a run"):
        vaswani_jax.train(settings.small_settings(**ONE_SHAPE), tmp_path)
    assert other.read_text() == '{"model_type": "marian"}'


class KilledError(Exception):
    """A training was killed."""


def kill_before_updates(patch: pytest.MonkeyPatch) -> None:
    """Let every training fail when it has recorded its start."""

    def kill(*args: object) -> None:
        raise KilledError

    patch.setattr(step, "place_on_devices", kill)


def finish(workdir: pathlib.Path) -> config.Config:
    """Train the run of this module, unless a test has; return its settings."""
    small = settings.small_settings(**ONE_SHAPE)
    if not store.steps(workdir / "averaged"):
        vaswani_jax.train(small, workdir)
    return small


@pytest.mark.parametrize("store_prefix", ["", "file://"])
def test_a_run_from_given_parameters_does_not_restart_from_random_ones(
    workdir: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    store_prefix: str,
) -> None:
    small = finish(workdir)
    kill_before_updates(monkeypatch)
    tuned = f"{store_prefix}{tmp_path}/tuned"
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "one"))
    with pytest.raises(KilledError):
        vaswani_jax.train(small, tuned, init_from=str(workdir))
    # Another machine has the record from the store.
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "two"))
    with pytest.raises(ValueError, match="has no checkpoint") as refused:
        vaswani_jax.train(small, tuned)
    assert str(refused.value) == (
        f"{tuned} has no checkpoint, and began from the parameters of {workdir}: "
        "without --init_from it would begin from random ones; add "
        f"--init_from={workdir}, or name another --workdir"
    )
    with pytest.raises(KilledError):
        vaswani_jax.train(small, tuned, init_from=str(workdir))


@pytest.mark.parametrize(
    ("checkpoint", "missing", "fetched"),
    [
        ("", [], "averaged"),
        ("", ["averaged"], "best"),
        ("", ["averaged", "best"], "checkpoints"),
        ("@best", [], "best"),
        ("@newest", [], "checkpoints"),
    ],
)
def test_of_a_run_on_a_store_only_the_checkpoints_to_start_from_are_fetched(
    workdir: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    checkpoint: str,
    missing: list[str],
    fetched: str,
) -> None:
    small = finish(workdir)
    stored = tmp_path / "store/run"
    shutil.copytree(workdir, stored, ignore=shutil.ignore_patterns(*missing))
    kill_before_updates(monkeypatch)
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    with pytest.raises(KilledError):
        vaswani_jax.train(
            small, tmp_path / "tuned", init_from=f"file://{stored}{checkpoint}"
        )
    [copy] = (path for path in (tmp_path / "mirrors").iterdir() if path.is_dir())
    folders = {path.name for path in copy.iterdir()}
    assert folders & {"averaged", "best", "checkpoints"} == {fetched}


def test_a_configuration_is_loaded_by_name() -> None:
    demo = vaswani_jax.load_config("demo", {"training.num_steps": 10})
    assert demo.training.num_steps == 10
    assert demo.data.source == "cldr"
    assert vaswani_jax.load_config("table3:A1").model.num_heads == 1
    with pytest.raises(ValueError, match=r"unknown key config.training.steps"):
        vaswani_jax.load_config("demo", {"training.steps": 10})


def test_training_loads_nothing_of_the_paper() -> None:
    program = (
        "import sys, vaswani_jax; vaswani_jax.train; "
        "print([name for name in sys.modules if name.startswith('vaswani_jax.paper')])"
    )
    assert interpreter.output_of(program) == "[]"


@pytest.fixture(scope="module")
def text_settings(tmp_path_factory: pytest.TempPathFactory) -> config.Config:
    """Settings of a text in files, which is the same for every seed."""
    folder = tmp_path_factory.mktemp("text")
    for split, count in (("train", 48), ("valid", 8), ("test", 8)):
        for side in ("source", "target"):
            lines = (f"{'abcd'[n % 4]} {'efgh'[n % 3]} a\n" for n in range(count))
            (folder / f"{split}.{side}").write_text("".join(lines))
    return settings.small_settings(
        **{
            "data.source": "text",
            "data.text_directory": str(folder),
            **{
                f"data.{split}_{side}": f"{split}.{side}"
                for split in ("train", "valid", "test")
                for side in ("source", "target")
            },
            "data.target_locale": "de",
            "data.vocab_size": 18,
            **ONE_SHAPE,
        }
    )


def assert_same_run(workdir: pathlib.Path, expected: pathlib.Path) -> None:
    """Compare the states of two runs bit for bit, and their scores."""
    for folder, names in (("checkpoints", ["params", "optimizer"]), ("averaged", None)):
        restored, other = (
            store.restore(run / folder, 4, names=names or ["params"])
            for run in (workdir, expected)
        )
        jax.tree.map(np.testing.assert_array_equal, restored.items, other.items)
    ids = set()
    for path in (expected / "evaluations").iterdir():
        texts = [path.read_text(), (workdir / "evaluations" / path.name).read_text()]
        if path.suffix == ".json":  # It names its run.
            texts = [json.loads(text) for text in texts]
            ids |= {record.pop("run") for record in texts}
        assert texts[0] == texts[1]
    assert len(ids) == 2


def test_runs_of_seeds_are_those_of_train_and_resume(
    text_settings: config.Config, tmp_path: pathlib.Path
) -> None:
    seeds_directory, run_directory = tmp_path / "several", tmp_path / "single"
    starts = []

    def stop(params: object) -> dict[str, float]:
        if (seeds_directory / "seed-4").exists():
            signal.raise_signal(signal.SIGTERM)
        return {}

    first = dataclasses.replace(text_settings, seed=3)
    with pytest.raises(vaswani_jax.Stopped, match="at step 2"):
        vaswani_jax.train_seeds(first, seeds_directory, num_seeds=2, evaluators=[stop])
    assert not list((seeds_directory / "seed-4").glob("evaluations/*"))
    result = vaswani_jax.train_seeds(
        first,
        seeds_directory,
        num_seeds=3,
        on_evaluation=lambda seed, evaluation: starts.append((seed, evaluation.split)),
    )
    assert list(result.runs) == [3, 4, 5] == list(seeds.find_runs(seeds_directory))
    assert starts == [(n, split) for n in (3, 4, 5) for split in ("valid", "test")]
    # What was finished is not trained again.
    lines = (seeds_directory / "seed-3/starts.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 4]
    expected = vaswani_jax.train(dataclasses.replace(first, seed=4), run_directory)
    assert_same_run(seeds_directory / "seed-4", run_directory)
    assert result.runs[4].evaluations == expected.evaluations
    # The text is prepared once.
    manifests = {
        (seeds_directory / f"seed-{n}/data/manifest.json").stat().st_ino for n in (3, 4)
    }
    assert len(manifests) == 1
    bleu = [result.runs[n].evaluations[1].scores[0].value for n in (3, 4, 5)]
    assert result.spreads()["test/sacrebleu"].values == bleu
    shown = result.format().splitlines()
    assert shown[0] == "mean of the seeds 3, 4, 5"
    assert any(line.startswith("test/sacrebleu ") for line in shown)


@pytest.mark.parametrize("store_prefix", ["", "file://"])
@pytest.mark.parametrize(
    ("step", "num_worse", "key", "was", "now"),
    [
        (4, 0, "model.dropout_rate", 0.3, 0.1),
        (2, 3, "model.dropout_rate", 0.3, 0.1),
        (4, 0, "training.num_steps", 4, 2),
        (2, 0, "model.dropout_rate", 0.3, 0.1),
        (2, 3, "training.patience", 3, 5),
        (2, 3, "search.beam_size", 3, 4),
    ],
    ids=[
        *("last step", "patience", "an earlier end", "a later end", "more patience"),
        "other scores",
    ],
)
def test_finished_seeds_of_other_settings_are_refused_before_any_trains(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    store_prefix: str,
    step: int,
    num_worse: int,
    key: str,
    was: float,
    now: float,
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    trained, changed = (
        settings.small_settings(
            **{"training.patience": 3, "training.num_steps": num_steps, key: value}
        )
        for num_steps, value in ((step if num_worse == 0 else 4, was), (4, now))
    )
    write_record(tmp_path / "several/seed-2", trained, step=step, num_worse=num_worse)
    workdir = f"{store_prefix}{tmp_path}/several"
    with pytest.raises(ValueError, match="is finished, and was") as refused:
        vaswani_jax.train_seeds(changed, workdir, num_seeds=2)
    assert str(refused.value) == (
        f"{workdir}/seed-2 is finished, and was trained with other settings: "
        f"config.{key} is {now}, was {was}. Runs of one directory differ in "
        "their seeds alone: restore the settings, or name another --workdir"
    )
    assert not (tmp_path / "several/seed-1").exists()


def test_a_longer_decay_is_refused_for_finished_seeds(tmp_path: pathlib.Path) -> None:
    cosine = {"schedule": "cosine", "learning_rate": 0.01, "warmup_steps": 1}
    trained, longer = (
        settings.small_settings(
            **{f"optimizer.{key}": value for key, value in cosine.items()},
            **{"training.num_steps": num_steps},
        )
        for num_steps in (4, 8)
    )
    write_record(tmp_path / "seed-2", trained, step=4, num_worse=0)
    with pytest.raises(ValueError, match=r"training\.num_steps is 8, was 4"):
        vaswani_jax.train_seeds(longer, tmp_path, num_seeds=2)


def test_a_seed_that_cannot_resume_is_named_before_any_trains(
    tmp_path: pathlib.Path,
) -> None:
    trained, changed = (
        settings.small_settings(**{"seed": 2, "data.target_tokens_per_batch": tokens})
        for tokens in (40, 50)
    )
    write_record(tmp_path / "seed-2", trained, step=2, num_worse=0)
    message = (
        r"seed-2/checkpoints has a run at step 2 that cannot resume with: config\."
    )
    with pytest.raises(ValueError, match=f"{message}data.target_tokens_per_batch is"):
        vaswani_jax.train_seeds(
            dataclasses.replace(changed, seed=1), tmp_path, num_seeds=2
        )
    assert not (tmp_path / "seed-1").exists()


def write_record(
    run: pathlib.Path, trained: config.Config, *, step: int, num_worse: int
) -> None:
    """Write what tells of a checkpoint without its arrays."""
    checkpoint = run / f"checkpoints/{step}"
    (checkpoint / store.RECORD).mkdir(parents=True)
    (checkpoint / store.SEAL).write_text("{}")
    record = {"config": config.to_dict(trained), "best": {"num_worse": num_worse}}
    (checkpoint / store.RECORD / "metadata").write_text(json.dumps(record))


def test_finished_seeds_are_averaged_and_scored_as_a_later_call_says(
    text_settings: config.Config, tmp_path: pathlib.Path
) -> None:
    vaswani_jax.train_seeds(text_settings, tmp_path, num_seeds=1)
    later = dataclasses.replace(
        text_settings,
        training=dataclasses.replace(text_settings.training, average_checkpoints=1),
        search=dataclasses.replace(text_settings.search, beam_size=1),
    )
    result = vaswani_jax.train_seeds(later, tmp_path, num_seeds=1)
    names = {path.name for path in (result.runs[1].workdir / "evaluations").iterdir()}
    assert "test-averaged-beam1-alpha0.6.json" in names
    mean = store.read_record(result.runs[1].averaged, 4)
    assert mean["averaged"] == [4]


def test_generated_text_is_that_of_the_seed(tmp_path: pathlib.Path) -> None:
    small = settings.small_settings(**ONE_SHAPE)
    result = vaswani_jax.train_seeds(small, tmp_path / "several", num_seeds=2)
    expected = vaswani_jax.train(
        dataclasses.replace(small, seed=2), tmp_path / "single"
    )
    assert_same_run(result.runs[2].workdir, expected.workdir)
    sources = [run.evaluations[1].source for run in result.runs.values()]
    assert sources[0] != sources[1]


def test_seeds_that_need_their_own_data_share_no_directory(
    tmp_path: pathlib.Path,
) -> None:
    shared = settings.small_settings(**{"data.directory": str(tmp_path / "data")})
    with pytest.raises(ValueError, match=r"config\.data\.directory=.*leave it out"):
        vaswani_jax.train_seeds(shared, tmp_path / "several", num_seeds=2)
    assert list(tmp_path.iterdir()) == []


def test_a_seed_out_of_range_is_refused_before_work_starts(
    tmp_path: pathlib.Path,
) -> None:
    large = settings.small_settings(seed=20_240_101_123_456)
    with pytest.raises(ValueError, match=r"config\.seed must be .* got 20240101123456"):
        vaswani_jax.train(large, tmp_path)
    assert not (tmp_path / "data").exists()


def test_seeds_and_one_run_do_not_share_a_directory(
    text_settings: config.Config, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "seed-1/config.json").write_text("{}")
    with pytest.raises(ValueError, match="holds one run; several seeds need another"):
        vaswani_jax.train_seeds(text_settings, tmp_path / "seed-1", num_seeds=2)
    with pytest.raises(ValueError, match="from 1 to 100, got 0"):
        vaswani_jax.train_seeds(text_settings, tmp_path, num_seeds=0)
    with pytest.raises(ValueError, match=r"seed-1 \(train --seeds and compare"):
        vaswani_jax.train(text_settings, tmp_path)
