"""Processes that would train another run, or in another workdir, are refused."""

import dataclasses
import pathlib
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests import settings
from tests.training.small_runs import OVERRIDES, train
from vaswani_jax.core import corpora, files, processes
from vaswani_jax.data import vocabulary
from vaswani_jax.training import process_checks
from vaswani_jax.training.resume import Run

pytestmark = pytest.mark.usefixtures("steps_once")


def test_processes_of_other_runs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = settings.small_settings(**OVERRIDES)

    def check(
        file: str = "news.en",
        weight: float = 1.0,
        params: Any = None,
        best_metric: str = "bleu",
        **changes: Any,
    ) -> None:
        corpus = {"name": "news", "source": file, "target": "n.de", "weight": weight}
        data = dataclasses.replace(
            small.data,
            corpora=corpora.corpora_text([corpus]),
            text_directory=f"text/{file}",
        )
        training = dataclasses.replace(small.training, best_metric=best_metric)
        values = {"training_text": "1", "valid_text": "2", "tokenizer": "13a"}
        words = mock.Mock(spec=vocabulary.Vocabulary)
        words.fingerprint = changes.pop("words", "abc")
        run = Run(
            dataclasses.replace(small, data=data, training=training),
            files.Directory(pathlib.Path("run")),
            words,
            **values | changes,
        )
        process_checks.check_processes_agree(run, params)

    sent: list[np.ndarray] = []

    def gathered(same: np.ndarray) -> np.ndarray:
        sent.append(same)
        # What process 0 has sent, and two others like this one.
        return np.stack([sent[0], same, same])

    monkeypatch.setattr(processes, "num_processes", lambda: 3)
    monkeypatch.setattr(processes, "gather_from_all", gathered)
    params = {"embedding": np.ones((3, 2), np.float32)}
    check(params=params)
    # On this host the text lies elsewhere.
    check(file="/mnt/news.en", params={"embedding": np.ones((3, 2), np.float32)})
    other_params = {"embedding": np.zeros((3, 2), np.float32)}
    same = {"params": params}
    for other, names in (
        (same | {"weight": 2.0}, "settings"),
        (same | {"words": "abd"}, "vocabulary"),
        (
            same | {"training_text": "3", "valid_text": ""},
            "training text, validation text",
        ),
        (same | {"tokenizer": "ja-mecab"}, "BLEU's tokeniser"),
        ({"params": other_params}, "the parameters of --init_from"),
        ({"params": None}, "the parameters of --init_from"),
    ):
        message = rf"^processes \[1, 2\] differ from process 0 in {names}: "
        with pytest.raises(ValueError, match=message):
            check(**other)
    sent.clear()
    # BLEU chooses nothing here.
    check(best_metric="loss")
    check(best_metric="loss", tokenizer="ja-mecab")


def test_processes_of_another_workdir_are_refused_before_training(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(settings.small_settings(**OVERRIDES, **{"training.num_steps": 2}), tmp_path)
    shapes: list[tuple[int, ...]] = []

    def gathered(same: np.ndarray) -> np.ndarray:
        shapes.append(same.shape)
        is_run = same.shape == () and same.dtype == np.int32
        return np.stack([same, same + 1 if is_run else same])

    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    monkeypatch.setattr(processes, "gather_from_all", gathered)
    message = rf"^processes \[1\] see another --workdir={tmp_path} than process 0: "
    with pytest.raises(ValueError, match=message):
        train(settings.small_settings(**OVERRIDES), tmp_path)
    # What the run is was compared first.
    assert shapes[0] == (6,)
