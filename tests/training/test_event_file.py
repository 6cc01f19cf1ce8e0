"""tensorboardX, which we did not write, reads what we write."""

import math
import pathlib
import time
import types

import numpy as np
import pytest

from tests.training.event_records import read_events
from vaswani_jax.training import event_file

# Lengths and steps of one, two and five groups of seven bits.
SCALARS = {
    1: {"train/loss": 9.25, "x" * 200: -1e-30},
    300: {"valid/bleu": 28.4, "größe": math.inf, "valid/huge": -1e40},
    2**33: {"train/loss": 0.0},
}


def test_scalars_come_back_with_their_names_and_steps(tmp_path: pathlib.Path) -> None:
    events = event_file.create(tmp_path / "tensorboard", first_step=1)
    for step, values in SCALARS.items():
        events.write(step, values)
    events.close()
    (path,) = (tmp_path / "tensorboard").iterdir()
    version, start, *written = read_events(path)
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (1, start.session_log.START)
    values_by_step = {
        event.step: {value.tag: value.simple_value for value in event.summary.value}
        for event in written
    }
    with np.errstate(over="ignore"):
        float32 = {
            step: {name: float(np.float32(value)) for name, value in values.items()}
            for step, values in SCALARS.items()
        }
    assert values_by_step == float32
    assert all(event.wall_time > 1.7e9 for event in written)


def test_files_keep_their_order_if_the_clock_goes_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{event_file.PREFIX}9999999999.another_program").touch()
    later = 2_000_000_000_000_000_000
    clock = iter([1_764_583_200_000_000_000, 1_764_583_100_000_000_000, 10**9, later])
    falling = types.SimpleNamespace(**vars(time) | {"time_ns": lambda: next(clock)})
    monkeypatch.setattr(event_file, "time", falling)
    first_steps = [1, 5, 9, 13]
    for step in first_steps:
        event_file.create(tmp_path, first_step=step).close()
    # TensorBoard's order.
    paths = sorted(tmp_path.glob("*[0-9]"))
    starts = [list(read_events(path))[1] for path in paths]
    assert [start.step for start in starts] == first_steps
    # Beyond the others, the time counts again.
    assert paths[-1].name == f"{event_file.PREFIX}{later}"
