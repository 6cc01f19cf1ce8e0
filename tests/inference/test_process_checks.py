"""Processes that would translate otherwise than process 0 are refused."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import processes
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.process_checks import check_processes_agree
from vaswani_jax.inference.translator import Translator


def make_translator(
    *, step: int = 3, weight: float = 1.0, symbols: Sequence[str] = (), **changes: Any
) -> Translator:
    small = settings.small_settings(**changes)
    vocabulary = settings.letters_vocabulary().extend(symbols)
    params = {"weight": np.float32([weight])}
    member = Member(small.model, Checkpoint(step, {"params": params}, {}))
    return Translator(small, vocabulary, members=[member])


def check(
    *rescorers: Translator,
    texts: Sequence[Sequence[str]] = (["a b", "c"],),
    num_hypotheses: int = 1,
    **changes: Any,
) -> None:
    check_processes_agree(
        [make_translator(**changes), *rescorers],
        texts=texts,
        flags={"num_hypotheses": num_hypotheses},
    )


def test_processes_of_other_models_or_texts_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digests: list[np.ndarray] = []

    def gathered(local: np.ndarray) -> np.ndarray:
        digests.append(local)
        return np.stack([digests[0], local])  # Process 0 has sent the first.

    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    monkeypatch.setattr(processes, "gather_from_all", gathered)
    check()
    check()
    others: list[tuple[dict[str, Any], str]] = [
        ({"texts": [["a b", "d"]]}, "input"),
        ({"texts": [["a b"], ["c"]]}, "input"),
        ({"symbols": ["%1"]}, "vocabulary"),
        ({"step": 4}, "models"),
        ({"weight": 2.0}, "models"),
        ({"search.beam_size": 2}, "settings"),
        ({"num_hypotheses": 2}, "flags"),
    ]
    for other, name in others:
        message = rf"^processes \[1\] differ from process 0 in {name}: "
        with pytest.raises(ValueError, match=message):
            check(**other)
    digests.clear()
    check(make_translator(step=7))
    with pytest.raises(ValueError, match="differ from process 0 in models: "):
        check(make_translator(step=8))


def test_a_process_alone_reads_no_text() -> None:
    def texts() -> Iterator[list[str]]:
        pytest.fail("a text is read")
        yield []

    check_processes_agree([make_translator()], texts=texts(), flags={})
