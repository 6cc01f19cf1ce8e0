"""Training from Python: it returns what it reached, and raises what programs print."""

import pathlib
import signal

import jax
import pytest

import vaswani_jax
from tests import interpreter, settings
from vaswani_jax.core import compilation_cache, files
from vaswani_jax.evaluation import scores
from vaswani_jax.plots import canvas, learning_curves


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir for the tests of this module, one after the other."""
    return tmp_path_factory.mktemp("run")


@pytest.fixture(autouse=True)
def _no_compilation_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of other modules compile as they did before."""
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)


def count_modules(params: object) -> dict[str, float]:
    return {"valid/modules": len(params)}  # type: ignore[arg-type]


def test_a_signal_raises_and_the_next_call_resumes(workdir: pathlib.Path) -> None:
    small = settings.small_settings()

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
    small = settings.small_settings()
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
    workdir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
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


def test_a_configuration_is_loaded_by_name() -> None:
    config = vaswani_jax.load_config("demo", {"training.num_steps": 10})
    assert config.training.num_steps == 10
    assert config.data.source == "cldr"
    assert vaswani_jax.load_config("table3:A1").model.num_heads == 1
    with pytest.raises(ValueError, match=r"unknown key config.training.steps"):
        vaswani_jax.load_config("demo", {"training.steps": 10})


def test_training_loads_nothing_of_the_paper() -> None:
    program = (
        "import sys, vaswani_jax; vaswani_jax.train; "
        "print([name for name in sys.modules if name.startswith('vaswani_jax.paper')])"
    )
    assert interpreter.output_of(program) == "[]"
