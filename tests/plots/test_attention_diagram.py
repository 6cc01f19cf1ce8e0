"""Figure 2 has the steps and shapes of the model's attention."""

import itertools

import pytest
from matplotlib.patches import FancyBboxPatch

from tests import settings
from tests.plots import figures
from vaswani_jax.plots import attention_diagram

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")


def test_figure_2_has_the_steps_and_shapes_of_the_model() -> None:
    model = settings.small_settings().model
    parts = attention_diagram.read(model, 11)
    figure = attention_diagram.draw(parts, title="runs/a")
    figures.check_nothing_is_clipped(figure)
    [axes] = figure.axes
    boxes = [
        patch
        for patch in axes.patches
        if isinstance(patch, FancyBboxPatch) and patch.get_label()
    ]
    middle = figure.get_size_inches()[0] / 2
    for is_left, names in (
        (True, ["Scale\n1 / √4", "MatMul", "Mask", "SoftMax", "MatMul"]),
        (False, [*["Linear"] * 3, "Scaled Dot-Product Attention", "Concat", "Linear"]),
    ):
        column = [box for box in boxes if (box.get_x() < middle) == is_left]
        column.sort(key=FancyBboxPatch.get_y)
        assert [box.get_label() for box in column] == names
    texts = [text.get_text() for text in axes.texts]
    for text, count in {
        "[B, T, 2, 4]": 2,  # Q
        "[B, S, 2, 4]": 2,  # K
        "[B, S, 2, 6]": 2,  # V
        "[B, 2, T, S]": 3,  # weights
        "[B, T, 2, 6]": 2,  # heads
        "[B, T, 12]": 1,  # joined
        "[B, T, 8]": 2,  # of queries, and the output
        "[B, S, 8]": 2,
        "8 → 2·4": 2,
        "8 → 2·6": 1,
        "h = 2": 1,
    }.items():
        assert texts.count(text) == count, text
    extents = [text.get_window_extent() for text in axes.texts]
    for first, second in itertools.combinations(extents, 2):
        assert not first.overlaps(second)
