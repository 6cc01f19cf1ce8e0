"""A process of its own judges, and says in one line why it cannot."""

import dataclasses
import io
import subprocess
from typing import Any

import pytest

from tests.hardware import demo_on_tpus, tiny_run
from vaswani_jax.core import types
from vaswani_jax.data import batching
from vaswani_jax.hardware import topology, worker, workload

V5E = topology.parse("v5e:8")


def answer(
    monkeypatch: pytest.MonkeyPatch, stdout: str, *, status: int = 0
) -> dict[str, str]:
    """Replace the process by one that prints something; return its environment."""
    environment: dict[str, str] = {}

    def run(command: list[str], **options: object) -> object:
        environment.update(options["env"])  # type: ignore[call-overload]
        return subprocess.CompletedProcess(command, status, stdout=stdout)

    monkeypatch.setattr(worker.subprocess, "run", run)
    return environment


def judge() -> list[dict[str, object]]:
    return worker.run(demo_on_tpus.run(), [V5E])


TREES = types.TreeIds(num_labels=2, word_starts=b"\xff\x00")


@pytest.mark.parametrize(
    "vocab_size",
    [40, types.VocabSizes(40, 30), types.VocabSizes(40, 30, TREES)],
    ids=["shared", "separate", "trees"],
)
def test_the_process_judges_the_run_that_it_was_sent(
    monkeypatch: pytest.MonkeyPatch,
    vocab_size: types.VocabSize,
) -> None:
    oblong = workload.Shape(bucket=batching.Bucket(64, 24, 40), batches=7)
    work = tiny_run.run_of()
    work = dataclasses.replace(
        work, vocab_size=vocab_size, shapes=[*work.shapes, oblong]
    )
    judged: list[workload.Workload] = []

    def run(command: list[str], **options: Any) -> object:
        lines = io.TextIOWrapper(io.BytesIO(options["input"].encode()))
        with monkeypatch.context() as process:
            process.setattr(worker.sys, "stdin", lines)
            process.setattr(worker.logging, "basicConfig", lambda **options: None)
            process.setattr(worker.jax.config, "update", lambda *arguments: None)
            process.setattr(
                worker.verdict,
                "judge",
                lambda work, hardware: judged.append(work),
            )
            worker.main()
        return subprocess.CompletedProcess(command, 0, stdout='{"verdicts": [{}]}')

    monkeypatch.setattr(worker.subprocess, "run", run)
    worker.run(work, [V5E])
    assert judged == [work]


def test_the_last_line_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = answer(
        monkeypatch, 'libtpu says hello\n{"verdicts": [{"fits": true}]}'
    )
    assert judge() == [{"fits": True}]
    assert environment["JAX_PLATFORMS"] == "cpu"


def test_a_refusal_is_an_error_here(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, '{"error": "cudnn needs a GPU"}')
    with pytest.raises(ValueError, match="cudnn needs a GPU"):
        judge()


@pytest.mark.parametrize(("stdout", "status"), [("", 0), ("words\n", -6)])
def test_a_compiler_that_ends_is_told_with_its_hardware(
    monkeypatch: pytest.MonkeyPatch, stdout: str, status: int
) -> None:
    answer(monkeypatch, stdout, status=status)
    with pytest.raises(worker.WorkerError, match=rf"v5e:2x4: .* status {status};"):
        judge()


def test_the_process_reads_the_request_and_refuses_in_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Without its extra, or because a TPU has no cuDNN.
    work = demo_on_tpus.run(
        **{"model.attention": "cudnn", "model.dtype": "bfloat16"},
    )
    with pytest.raises(ValueError, match=r"vaswani-jax\[tpu\]|cudnn needs a GPU"):
        worker.run(work, [V5E])
