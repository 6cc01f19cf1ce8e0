"""Pictures are files of the right kind, with a font for every character."""

import importlib
import pathlib

import pytest

from tests.plots import figures
from vaswani_jax.plots import canvas

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.png", figures.PNG), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")],
)
def test_the_end_of_the_name_is_the_kind_of_the_file(
    tmp_path: pathlib.Path, name: str, beginning: bytes
) -> None:
    contents = set()
    for _ in range(2):
        figure = canvas.new_figure(2.0, 1.0)
        figure.subplots().plot([1, 2])
        canvas.save(figure, tmp_path / name)
        contents.add((tmp_path / name).read_bytes())
    [content] = contents  # No date, no random name.
    assert content.startswith(beginning)
    assert (b"<svg" in content) == name.endswith("SVG")


def test_axes_in_inches_fill_their_figure() -> None:
    axes = canvas.new_axes((-1.0, 2.0), (0.5, 1.0))
    assert axes.figure.get_size_inches().tolist() == [3.0, 0.5]
    inch = axes.transData.transform((1.0, 1.0)) - axes.transData.transform((0.0, 0.0))
    assert inch.tolist() == pytest.approx([axes.figure.dpi] * 2)
    assert axes.transData.transform((-1.0, 0.5)).tolist() == pytest.approx([0, 0])


def test_a_character_that_the_font_lacks_comes_from_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert canvas.font_families("▁où") == [canvas.DEFAULT_FONT]
    script_letter = "\U0001d49c"
    first, second = canvas.font_families(f"a{script_letter}")
    assert first == canvas.DEFAULT_FONT != second
    assert not caplog.records


def test_a_character_that_no_font_has_is_logged_and_drawn_as_a_box(
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = importlib.import_module("matplotlib.font_manager").fontManager
    names = (canvas.DEFAULT_FONT, canvas.FONT_OF_BOXES)
    fonts = [font for font in manager.ttflist if font.name in names]
    monkeypatch.setattr(manager, "ttflist", fonts)
    families = canvas.font_families("\ta中国")
    assert families == list(names)
    [record] = caplog.records
    assert "no installed font has 中国: a box" in record.message
    figure = canvas.new_figure(2.0, 1.0)
    figure.text(0.1, 0.1, "a中国", family=families)
    canvas.save(figure, tmp_path / "a.png")  # Without a warning of matplotlib.
