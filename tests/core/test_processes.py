"""Work of a process alone, as the main one, and as another of several."""

import re
import types

import jax
import numpy as np
import pytest

from vaswani_jax.core import processes


@pytest.fixture(autouse=True)
def unconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test joins any processes."""

    def initialize(**arguments: object) -> None:
        pytest.fail(f"connects with {arguments}")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)


def connect(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
    processes.connect(
        coordinator=coordinator,
        num_processes=num_processes,
        process_id=process_id,
        handles_sigterm=False,
    )


@pytest.mark.parametrize(
    ("coordinator", "num_processes", "process_id"),
    [
        (None, 2, 0),
        ("host", 2, 0),
        ("80", 2, 0),
        ("host:0", 2, 0),
        ("host:65536", 2, 0),
        ("host:port", 2, 0),
        ("host:80", None, 0),
        ("host:80", 2, None),
        ("auto", 2, None),
    ],
)
def test_what_names_no_process_is_refused(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
    values = re.escape(f"got {coordinator!r}, {num_processes} and {process_id}")
    with pytest.raises(ValueError, match=f"--coordinator=HOST:PORT goes .*{values}"):
        connect(coordinator, num_processes, process_id)


def test_the_last_of_two_processes_is_number_1() -> None:
    with pytest.raises(ValueError, match="must be below --num_processes=2, got 2"):
        connect("host:80", 2, 2)


@pytest.mark.parametrize(
    ("counts", "listing"),
    [
        ([2, 4], "process 0: 2, process 1: 4"),
        # A process without GPUs sees none of the others', and they none of it.
        ([4, 4, 0], "process 0: 4, process 1: 4, process 2: 0"),
        ([4, 4], None),
    ],
)
def test_processes_with_different_numbers_of_devices_are_refused(
    monkeypatch: pytest.MonkeyPatch, counts: list[int], listing: str | None
) -> None:
    devices = [
        types.SimpleNamespace(process_index=index)
        for index, count in enumerate(counts)
        for _ in range(count)
    ]
    monkeypatch.setattr(jax.distributed, "initialize", lambda **arguments: None)
    monkeypatch.setattr(jax, "process_count", lambda: len(counts))
    monkeypatch.setattr(jax, "devices", lambda: devices)
    if listing is None:
        connect("host:80", len(counts), 0)
        return
    with pytest.raises(ValueError, match=re.escape(f"of devices ({listing}): each")):
        connect("host:80", len(counts), 0)


def test_a_process_alone_is_the_main_one() -> None:
    assert processes.num_processes() == 1
    assert processes.is_main_process()
    assert processes.run_on_main(lambda: 5, OSError) == 5
    assert [processes.broadcast_from_main(flag) for flag in (True, False)] == [
        True,
        False,
    ]
    np.testing.assert_array_equal(processes.gather_from_all(np.arange(3)), [[0, 1, 2]])


def test_a_failure_of_the_main_process_is_its_own() -> None:
    def fail() -> None:
        raise FileNotFoundError("no such file")

    with pytest.raises(FileNotFoundError, match="no such file"):
        processes.run_on_main(fail, OSError)
    with pytest.raises(FileNotFoundError):
        processes.run_on_main(fail, ValueError)


@pytest.mark.parametrize("has_failed", [False, True])
def test_another_process_does_nothing_and_fails_with_the_main_one(
    monkeypatch: pytest.MonkeyPatch, has_failed: bool
) -> None:
    """As if process 0 were another; it says whether it has failed."""
    calls: list[str] = []
    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    monkeypatch.setattr(processes, "is_main_process", lambda: False)
    monkeypatch.setattr(
        processes, "gather_from_all", lambda flag: np.array([has_failed, bool(flag)])
    )
    if has_failed:
        with pytest.raises(OSError, match="the main process failed"):
            processes.run_on_main(lambda: calls.append("x"), OSError, ValueError)
    else:
        assert processes.run_on_main(lambda: calls.append("x"), OSError) is None
    assert calls == []
    # What this process would say does not matter.
    assert processes.broadcast_from_main(not has_failed) == has_failed


def test_processes_that_differ_from_the_main_one_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = {"input": "a b", "models": "7", "settings": "x"}
    digests: list[np.ndarray] = []

    def gathered(local: np.ndarray) -> np.ndarray:
        # Process 0 has sent the first, and process 2 sends the same.
        digests.append(local)
        return np.stack([digests[0], local, digests[0]])

    monkeypatch.setattr(processes, "num_processes", lambda: 3)
    monkeypatch.setattr(processes, "gather_from_all", gathered)
    processes.refuse_differences(parts)
    processes.refuse_differences(dict(parts))
    message = r"^processes \[1\] differ from process 0 in input, settings: all need "
    with pytest.raises(ValueError, match=message):
        processes.refuse_differences(parts | {"input": "a c", "settings": "y"})


def test_a_process_alone_differs_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "gather_from_all", pytest.fail)
    processes.refuse_differences({"input": "a b"})
