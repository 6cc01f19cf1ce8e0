"""The curves in the figures are those of the formulas."""

import io

import numpy as np
import pytest

from vaswani_jax.paper import figures, table1

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")

LENGTHS = (256, 512, 1024)


def axes_of(figure):
    """Return the axes of a figure that can be saved."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    assert file.getvalue().startswith(b"\x89PNG")
    return figure.axes


def curve(axes, name):
    line = next(line for line in axes.lines if line.get_label().startswith(name))
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


@pytest.fixture(scope="module")
def learning_rates():
    [axes] = axes_of(figures.draw_learning_rates())
    return axes


@pytest.mark.parametrize(
    ("name", "d_model"), [("base", 512), ("big", 1024), ("row C4", 256)]
)
def test_the_learning_rate_is_equation_3(learning_rates, name, d_model):
    steps, rates = curve(learning_rates, name)
    expected = d_model**-0.5 * np.minimum(steps**-0.5, steps * 4000**-1.5)
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert (steps[0], steps[-1]) == (100, 300_000)
    assert steps[rates.argmax()] == 4000
    labels = [line.get_label() for line in learning_rates.lines]
    [label] = [label for label in labels if label.startswith(name)]
    assert f"{(d_model * 4000) ** -0.5:.2e}" in label


def test_the_positions_are_sines_and_cosines_from_the_first_down():
    axes, bar = axes_of(figures.draw_positions())
    values = np.asarray(axes.images[0].get_array())
    position, dimension = np.indices(values.shape)
    angle = position / 10_000 ** (dimension // 2 * 2 / values.shape[1])
    expected = np.where(dimension % 2, np.cos(angle), np.sin(angle))
    np.testing.assert_allclose(values, expected, atol=1e-5)
    # Rows and columns are where the labels say.
    left, right, bottom, top = axes.images[0].get_extent()
    assert (left, right, bottom, top) == (-0.5, 63.5, 99.5, -0.5)
    assert axes.get_ylabel() == "position" and bar.get_ylabel() == "value"


def test_table_1_shows_formulas_times_and_where_they_cross():
    names = [layer_type.name for layer_type in table1.LAYER_TYPES]
    operations = {
        name: [n * (n if name == names[0] else 512) * 512.0 for n in LENGTHS]
        for name in names
    }
    seconds = {
        name: [1.0, 4.0, 16.0] if name == names[0] else [2.0, 4.5, 8.0]
        for name in names
    }
    costs = table1.Costs(LENGTHS, 512, 3, 64, 8, operations, {}, seconds)
    formulas, clock = axes_of(figures.draw_table1(costs))
    for axes, values, quantity in (
        (formulas, operations, "operations"),
        (clock, seconds, "seconds"),
    ):
        assert axes.get_ylabel() == quantity
        for name in names:
            n, drawn = curve(axes, name)
            np.testing.assert_array_equal(n, LENGTHS)
            np.testing.assert_array_equal(drawn, values[name])
        assert curve(axes, "n = d = 512")[0][0] == 512
    assert curve(formulas, "attention = recurrence")[0][0] == pytest.approx(512)
    # By logarithms: from ln(4 / 4.5) at 512 to ln(16 / 8) at 1024.
    share = np.log(4.5 / 4) / (np.log(4.5 / 4) + np.log(2))
    assert curve(clock, "attention = recurrence")[0][0] == pytest.approx(512 * 2**share)
