"""Boxes, arrows and titles stand where they are drawn."""

import pytest
from matplotlib.patches import FancyBboxPatch

from tests.plots import figures
from vaswani_jax.plots.diagram import Canvas

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")


def test_a_long_title_stands_above_the_drawing() -> None:
    canvas = Canvas.with_title(3.0, 2.0, title="W" * 60)
    figures.check_nothing_is_clipped(canvas.figure)
    [title] = canvas.figure.axes[0].texts
    assert title.get_window_extent().y0 / canvas.figure.dpi >= 2.0
    assert title.get_text().count("\n") == 3


def test_a_box_has_its_name_and_its_detail_inside() -> None:
    canvas = Canvas(3.0, 2.0)
    canvas.box(
        (1.5, 0.5), (1.5, 0.6), "Two\nLines", kind="norm", detail="8 → 2", copies=3
    )
    axes = canvas.figure.axes[0]
    front = [box for box in axes.patches if box.get_label() == "Two\nLines"]
    assert len(axes.patches) == 3 and len(front) == 1
    assert isinstance(front[0], FancyBboxPatch)
    frame = front[0].get_window_extent()
    for text in axes.texts:
        extent = text.get_window_extent()
        assert frame.x0 < extent.x0 and extent.x1 < frame.x1
        assert frame.y0 < extent.y0 and extent.y1 < frame.y1
    first, second = (text.get_window_extent() for text in axes.texts)
    assert not first.overlaps(second)
