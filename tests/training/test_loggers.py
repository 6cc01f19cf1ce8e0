"""What Weights & Biases, MLflow and trackio get; stand-ins take their places."""

import contextlib
import importlib.machinery
import pathlib
import sys
import types
from typing import Any
from unittest import mock

import pytest

from tests import settings
from vaswani_jax.core import config, training_config
from vaswani_jax.training import loggers, preemption


@pytest.fixture(params=training_config.LOGGERS)
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for a logger's package, which records its calls."""
    module: Any = types.ModuleType(request.param)
    module.__spec__ = importlib.machinery.ModuleSpec(request.param, None)
    for name in ("init", "start_run", "set_experiment", "log_metrics", "log_params"):
        setattr(module, name, mock.Mock())
    module.end_run = mock.Mock()
    module.start_run.return_value.info.run_id = "id of the server"
    monkeypatch.setitem(sys.modules, request.param, module)
    return module


def settings_of(package: Any) -> config.Config:
    return settings.small_settings(**{"training.loggers": package.__name__})


def start_of(package: Any) -> mock.Mock:
    """The call that starts a run."""
    start = package.start_run if package.__name__ == "mlflow" else package.init
    assert isinstance(start, mock.Mock)
    return start


def test_a_logger_gets_the_metrics_and_is_closed(
    tmp_path: pathlib.Path, package: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    small = settings_of(package)
    loggers.require(small)
    run = package.init.return_value
    log = package.log_metrics if package.__name__ == "mlflow" else run.log
    end = package.end_run if package.__name__ == "mlflow" else run.finish
    end.side_effect = lambda *_: print("View the run")
    with loggers.open_loggers(small, tmp_path) as [metrics_logger]:
        metrics_logger(3, {"valid/bleu[de]": 2.5})
        end.assert_not_called()
    # MLflow refuses brackets.
    name = "valid/bleu.de" if package.__name__ == "mlflow" else "valid/bleu[de]"
    if package.__name__ == "wandb":
        # Its own steps could not come again.
        run.define_metric.assert_called_with("*", step_metric="step")
        log.assert_called_once_with({name: 2.5, "step": 3})
    else:
        log.assert_called_once_with({name: 2.5}, step=3)
    end.assert_called_once_with()
    # Scores go to the standard output.
    if package.__name__ != "wandb":
        assert capsys.readouterr().out == ""


def test_a_run_that_resumes_has_its_identifier_again(
    tmp_path: pathlib.Path, package: Any
) -> None:
    starts = []
    for _ in range(3):
        with loggers.open_loggers(settings_of(package), tmp_path):
            starts.append(start_of(package).call_args.kwargs)
        if len(starts) == 2:
            (tmp_path / "checkpoints" / "1").mkdir(parents=True)
    # Before the first checkpoint it begins again: these are others' metrics.
    unsaved, first, second = starts
    if package.__name__ == "mlflow":
        assert (first["run_id"], second["run_id"]) == (None, "id of the server")
        assert first["run_name"] == tmp_path.name
        [parameters] = package.log_params.call_args.args
    else:
        key = "id" if package.__name__ == "wandb" else "name"
        assert first[key] == second[key] and second["resume"] == "allow"
        assert unsaved[key] != first[key]
        assert first["name"].startswith(tmp_path.name)
        parameters = first["config"]
    assert parameters["model.d_ff"] == 10


def test_a_run_in_the_current_directory_has_its_name(
    tmp_path: pathlib.Path, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with loggers.open_loggers(settings_of(package), pathlib.Path()):
        options = start_of(package).call_args.kwargs
    name = options["run_name" if package.__name__ == "mlflow" else "name"]
    assert name.startswith(tmp_path.name)


@pytest.mark.parametrize("text", ["", "[1]", '{"wandb": '])
def test_damaged_identifiers_start_no_other_run(
    tmp_path: pathlib.Path, package: Any, text: str
) -> None:
    (tmp_path / loggers.FILE).write_text(text)
    with (
        pytest.raises(ValueError, match=r"loggers\.json is damaged, so the loggers"),
        loggers.open_loggers(settings_of(package), tmp_path),
    ):
        pass
    start_of(package).assert_not_called()


def test_a_logger_that_cannot_be_opened_is_refused_in_one_line(
    tmp_path: pathlib.Path, package: Any
) -> None:
    start_of(package).side_effect = RuntimeError("no API key:\nlog in first")
    with (
        pytest.raises(ValueError) as refused,
        loggers.open_loggers(settings_of(package), tmp_path),
    ):
        pass
    assert str(refused.value) == (
        f"config.training.loggers={package.__name__} cannot be opened (RuntimeError: "
        "no API key: log in first): check its environment variables, or leave it out"
    )


@pytest.mark.parametrize("error", [None, preemption.Stopped(15, 3), KeyError("a")])
def test_a_logger_that_cannot_be_closed_hides_no_outcome(
    tmp_path: pathlib.Path,
    package: Any,
    error: Exception | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    end = package.init.return_value.finish
    if package.__name__ == "mlflow":
        end = package.end_run
    end.side_effect = ConnectionError("no server")
    expected = pytest.raises(type(error)) if error else contextlib.nullcontext()
    with expected, loggers.open_loggers(settings_of(package), tmp_path):
        if error:
            raise error
    [message] = caplog.messages
    assert f"loggers={package.__name__} could not be closed: Conn" in message
    if package.__name__ == "mlflow":
        status = {"Stopped": ("KILLED",), "KeyError": ("FAILED",)}
        assert end.call_args.args == status.get(type(error).__name__, ())
