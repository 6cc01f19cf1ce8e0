"""The curves have the values of metrics.jsonl, and names that can be read."""

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from tests.plots import figures
from vaswani_jax.plots import learning_curves
from vaswani_jax.plots.learning_curves import LoggedRun

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")

RECORDS = [
    {"step": 10, "time/elapsed_seconds": 30.0, "train/loss": 7.5},
    {"step": 20, "time/elapsed_seconds": 45.0, "train/loss": 5.5},
    {"step": 20, "time/elapsed_seconds": 90.0, "valid/loss": 5.0, "valid/bleu": 1.5},
    {"step": 40, "time/elapsed_seconds": 150.0, "valid/loss": 4.0, "valid/bleu": 20.0},
]
for _record in RECORDS[:2]:
    _record["train/learning_rate"] = 1e-5 * _record["step"]
LOSS, BLEU, RATE = "loss (nats per token)", "BLEU (validation)", "learning rate"
F1 = "F1 (validation)"


def write(workdir: pathlib.Path, records: list[dict[str, Any]]) -> pathlib.Path:
    """Write records as training does."""
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (workdir / "metrics.jsonl").write_text(lines)
    return workdir


def curves(figure: Any) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """Return the points of each curve by the labels of its axes, then by its name."""
    rows = np.reshape(figure.axes, (-1, 2))
    return {
        (row[0].get_ylabel(), bottom.get_xlabel()): {
            line.get_label(): np.asarray(line.get_xydata()) for line in axes.lines
        }
        for row in rows
        for axes, bottom in zip(row, rows[-1], strict=True)
    }


def test_the_curves_are_the_records(tmp_path: pathlib.Path) -> None:
    run = learning_curves.read("runs/a", write(tmp_path, RECORDS))
    drawn = curves(learning_curves.draw([run]))
    assert drawn.keys() == {
        (quantity, over)
        for quantity in (LOSS, BLEU, RATE)
        for over in ("updates", "minutes of training")
    }
    expected: dict[str, dict[str, list[list[float]]]] = {
        LOSS: {
            "runs/a, training": [[10, 0.5, 7.5], [20, 0.75, 5.5]],
            "runs/a, validation": [[20, 1.5, 5.0], [40, 2.5, 4.0]],
        },
        BLEU: {"runs/a, validation": [[20, 1.5, 1.5], [40, 2.5, 20.0]]},
        RATE: {"runs/a, training": [[10, 0.5, 1e-4], [20, 0.75, 2e-4]]},
    }
    for (quantity, over), lines in drawn.items():
        column = 0 if over == "updates" else 1
        assert lines.keys() == expected[quantity].keys()
        for name, points in lines.items():
            columns = np.array(expected[quantity][name])[:, [column, 2]]
            np.testing.assert_allclose(points, columns, rtol=1e-12)


def test_the_axes_of_bleu_and_rate_start_at_zero_and_show_the_highest_mark() -> None:
    figure = learning_curves.draw([LoggedRun("a", RECORDS)])
    for axes, highest in ((figure.axes[2], 20.0), (figure.axes[4], 2e-4)):
        bottom, top = axes.get_ylim()
        assert bottom == 0 and 1.05 * highest < top < 1.2 * highest


def test_a_run_on_trees_has_f1_instead_of_bleu() -> None:
    records = [
        {
            "valid/f1" if key == "valid/bleu" else key: value
            for key, value in each.items()
        }
        for each in RECORDS
    ]
    drawn = curves(learning_curves.draw([LoggedRun("a", records)]))
    assert {quantity for quantity, _ in drawn} == {LOSS, F1, RATE}
    validation = drawn[F1, "updates"]["a, validation"]
    np.testing.assert_array_equal(validation, [[20, 1.5], [40, 20.0]])


def test_two_runs_have_two_named_curves_that_differ_in_grey_too() -> None:
    slower_records = [record | {"step": 2 * record["step"]} for record in RECORDS]
    figure = learning_curves.draw(
        [LoggedRun("_a", RECORDS), LoggedRun("runs/$b$", slower_records)]
    )
    figures.check_nothing_is_clipped(figure)
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["_a", "runs/$b$"]
    [first, second] = figure.axes[2].lines
    assert list(second.get_xdata()) == [2 * step for step in first.get_xdata()]
    handles = legend.legend_handles
    for line, handle in zip((first, second), handles, strict=True):
        assert line.get_marker() == handle.get_marker()
        assert line.get_color() == handle.get_color()
    assert first.get_marker() != second.get_marker()
    # Training and validation differ by the stroke.
    training, validation = figure.axes[0].lines[:2]
    assert training.get_linestyle() != validation.get_linestyle()
    stroke_names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert stroke_names == ["training", "validation"]


def test_no_name_is_clipped_and_no_two_of_many_runs_look_alike() -> None:
    names = ["gs://bucket/" + "a_long_name/" * 30, *(f"runs/{n}" for n in range(20))]
    figure = learning_curves.draw([LoggedRun(name, RECORDS) for name in names])
    figures.check_nothing_is_clipped(figure)
    looks = {(line.get_color(), line.get_marker()) for line in figure.axes[2].lines}
    assert len(looks) == len(names)
    figures.check_nothing_is_clipped(
        learning_curves.draw([LoggedRun(names[0], RECORDS)])
    )


def test_a_value_that_was_not_finite_is_a_gap() -> None:
    records = [RECORDS[0], RECORDS[1] | {"train/loss": None}]
    figure = learning_curves.draw([LoggedRun("a", records)])
    # Nothing was validated yet, so there is no row for BLEU.
    drawn = curves(figure)
    assert {quantity for quantity, _ in drawn} == {LOSS, RATE}
    values = drawn[LOSS, "updates"]["a, training"][:, 1]
    np.testing.assert_array_equal(values, [7.5, np.nan])


def test_a_run_that_is_training_can_be_drawn(tmp_path: pathlib.Path) -> None:
    write(tmp_path, RECORDS)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 50, "time/ela')
    assert learning_curves.read("a", tmp_path).records == RECORDS


def test_a_single_record_is_visible() -> None:
    figure = learning_curves.draw([LoggedRun("a", RECORDS[:1])])
    assert figure.axes[0].lines[0].get_marker() not in ("", "None")
    figures.check_nothing_is_clipped(figure)


def test_what_has_no_records_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"^--workdir=a has no metrics.jsonl: no run"):
        learning_curves.read("a", tmp_path)
    write(tmp_path, [])
    with pytest.raises(ValueError, match=r"^--workdir=a has logged nothing yet: "):
        learning_curves.read("a", tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl, line 1 is damaged"):
        learning_curves.read("a", tmp_path)
