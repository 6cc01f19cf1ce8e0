"""The other views of a page in a real browser: heads, beam, checkpoints, roles."""

import re

import numpy as np
import pytest

from tests.pages.tabs import HALF_LEVEL, HEADS, LAYERS, PAGE, attention_of

pytestmark = pytest.mark.browser


# The opacity of each pixel of a picture, row by row.
OPACITY = """selector => {
    const canvas = document.querySelector(selector);
    const {width, height} = canvas;
    const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
    return Array.from({length: height}, (_, y) => Array.from(
        {length: width}, (_, x) => data[4 * (y * width + x) + 3]));
}"""


def test_all_heads_are_sorted_by_what_was_asked(tab):
    page = tab.page
    tab.show("v=overview")
    assert page.locator("#other canvas").count() == 3 * LAYERS * HEADS
    # A pixel is as opaque as its weight.
    shown = page.evaluate(OPACITY, "[data-key=open-memory-2-4] canvas")
    array = attention_of().memory[1, 3]
    np.testing.assert_allclose(shown, 255 * array, atol=0.51)

    tab.show("v=overview&sort=entropy")
    rows = np.maximum(attention_of().encoder, 1e-30)
    entropy = -(rows * np.log(rows)).sum(-1).mean(-1) / np.log(rows.shape[-1])
    names = page.locator("#other section").first.locator("span").all_inner_texts()
    values = [float(name.split(": ")[1]) for name in names]
    np.testing.assert_allclose(values, np.sort(entropy.ravel()), atol=0.02)
    for name, value in zip(names, values, strict=True):
        layer, head = map(int, name.split(": ")[0].split("."))
        assert abs(entropy[layer - 1, head - 1] - value) < 0.02

    tab.show("v=overview&sort=importance")
    heads = [head for head in PAGE.heads.heads if head.kind == "decoder"]
    heads.sort(key=lambda head: -head.importance)
    names = page.locator("#other section").nth(1).locator("span").all_inner_texts()
    assert [name.split(":")[0] for name in names] == [
        f"{head.layer}.{head.head}" for head in heads
    ]
    page.click("[data-key=open-decoder-3-4]")
    assert tab.fragment().startswith("a=decoder&l=3&h=4")


def test_the_beam_is_a_tree_of_all_candidates(tab):
    tab.show("v=beam")
    page = tab.page
    search = PAGE.sentences[0].views[-1].search
    fates = [c.fate for position in search.positions for c in position]
    for fate in ("live", "finished", "dropped"):
        assert page.locator(f"#tree .box.{fate}").count() == fates.count(fate)
    path = page.evaluate(
        """() => [...document.querySelectorAll("#tree .box.path")].map(
            box => [Number(box.dataset.position), Number(box.dataset.place)])"""
    )
    assert path == [[0, 0], [1, 0]]
    # A line leads from the box of the hypothesis to that of what extends it.
    drawn = page.evaluate(
        """() => Object.fromEntries(
            [...document.querySelectorAll("#tree .box")].map(box => {
                const {x, y, width, height} = box.querySelector(".outer").getBBox();
                const middle = y + height / 2;
                const {position, place} = box.dataset;
                return [`${position} ${place}`, {
                    left: [x, middle], right: [x + width, middle],
                    number: box.querySelector(".number").textContent}];
            }))"""
    )
    numbers = r"M ([\d.]+) ([\d.]+) C .* ([\d.]+) ([\d.]+)$"
    edges = {}
    for line in page.locator("#tree .edge").all():
        x1, y1, x2, y2 = map(float, re.match(numbers, line.get_attribute("d")).groups())
        edges[x2, y2] = [x1, y1]
    assert len(edges) == len(fates)
    parents = {c.live: n for n, c in enumerate(search.positions[0])}
    for place, candidate in enumerate(search.positions[1]):
        start = edges[tuple(drawn[f"1 {place}"]["left"])]
        assert start == drawn[f"0 {parents[candidate.parent]}"]["right"]
        number = drawn[f"1 {place}"]["number"].replace("−", "-")
        assert number == (
            f"score {candidate.score:.2f}"
            if candidate.fate == "finished"
            else f"log P {candidate.log_prob:.2f}"
        )
    cells = page.locator("#finished tbody tr").first.locator("td").all_inner_texts()
    assert cells[:6] == ["1", "a", "−0.200", "2", "2.000", "−0.100"]
    text = page.locator("#other").inner_text()
    assert "Finished hypotheses" in text
    assert "greedy search finds it too" in text
    assert f"The search stopped: {search.stopped}." in text
    # Arrows go from a candidate to what extends it, and back.
    page.focus("#tree [role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    summary = page.locator("#summary")
    assert summary.inner_text() == (
        "Position 2, candidate 2: “b </s>”, log P −2.60 (−0.10 for this token), "
        "score −1.30. It is finished."
    )
    page.keyboard.press("ArrowLeft")
    assert summary.inner_text().startswith("Position 1, candidate 2: “b”")
    page.click("[data-key=path-1]")
    assert page.locator("#tree .box.path[data-place='1']").count() == 2
    page.check("#hide-dropped")
    assert page.locator("#tree .box.dropped").count() == 0
    assert tab.fragment() == "v=beam&f=2&d=hidden"


def test_the_slider_goes_over_the_checkpoints(tab):
    tab.show("a=encoder&l=2&h=1")
    page = tab.page
    page.focus("#model")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#model-name").inner_text() == "1,000 updates"
    assert page.locator("#target-text").inner_text().endswith(". 0")
    assert tab.fragment() == "c=1000&h=1"
    array = attention_of(model=0).encoder[1, 0]
    weights, _ = tab.table("c=1000&h=1&n=100")
    for (_, row, column), weight in weights.items():
        assert abs(weight - array[row, column]) < HALF_LEVEL
    tab.show("v=training&a=memory&l=2&h=1,3")
    rows = page.locator("table.training tbody tr")
    assert rows.count() == 2
    assert rows.first.locator("canvas").count() == 2
    opacity = page.evaluate(OPACITY, "table.training tbody tr td:last-child canvas")
    array = attention_of(model=0).memory[1, 2]
    np.testing.assert_allclose(opacity, 255 * array, atol=0.51)
    assert rows.nth(1).locator("u").all_inner_texts() == ["1"]


def test_what_heads_do_is_sorted_by_a_column(tab):
    tab.show("v=roles&a=memory")
    page = tab.page
    heads = [head for head in PAGE.heads.heads if head.kind == "memory"]
    text = page.locator("#other").inner_text()
    assert "with the checkpoint of 2,000 updates; the loss" in text
    assert "“positional: previous”: at least 0.90." in text
    assert page.evaluate("modelPhrase({name: 'averaged', step: 8})") == (
        "the averaged model"
    )
    assert page.evaluate("[decimal(-0.00004, 4), decimal(-0.5, 1)]") == [
        "0.0000",
        "−0.5",
    ]
    rows = page.locator("#roles tbody tr")
    first = rows.first.locator("td").all_inner_texts()
    value, chance = heads[0].measures["previous"]
    assert first[:3] == ["1", "1", "positional: previous"]
    assert first[4] == f"{value:.2f} {chance:.2f}"
    assert rows.nth(1).locator("td").nth(2).inner_text() == "no clear role"
    page.click("[data-key=sort-importance]")
    largest = max(heads, key=lambda head: head.importance)
    first = rows.first.locator("td").all_inner_texts()
    assert first[:2] == [str(largest.layer), str(largest.head)]
    header = page.locator("#roles th[aria-sort]")
    assert header.get_attribute("aria-sort") == "descending"
    page.click("[data-key=sort-importance]")
    least = min(heads, key=lambda head: head.importance)
    first = rows.first.locator("td").all_inner_texts()
    assert first[:2] == [str(least.layer), str(least.head)]
    assert tab.fragment() == "v=roles&a=memory&by=-importance"
