"""The lines and the matrix of a page in a real browser: numbers, pointer and taps."""

import dataclasses

import numpy as np
import pytest

from tests.pages import samples
from tests.pages.tabs import HALF_LEVEL, HEADS, LAYERS, MISPLACED, PAGE, attention_of
from vaswani_jax.pages import contents, html

pytestmark = pytest.mark.browser


SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target_in", "target_in"),
    "memory": ("target_out", "source"),
}


ALL_HEADS = [
    (sentence, kind, layer, head)
    for sentence in (1, 2)
    for kind in contents.KINDS
    for layer in range(1, LAYERS + 1)
    for head in range(1, HEADS + 1)
]


def wrong_numbers(tab, heads):
    """Return which heads have a table that is not the array that it was made of."""
    tab.show("v=beam")
    tables = tab.tables(
        [f"s={s}&a={a}&l={layer}&h={h}&min=0&n=100" for s, a, layer, h in heads]
    )
    return [
        head
        for head, (weights, texts) in zip(heads, tables, strict=True)
        if not is_right(head, weights, texts)
    ]


def is_right(place, weights, texts):
    """Return whether a table has the weights of a head, and its subwords."""
    sentence, kind, layer, head = place
    attention = attention_of(sentence=sentence - 1)
    array = getattr(attention, kind)[layer - 1, head - 1]
    rows, columns = (getattr(attention, side) for side in SIDES[kind])
    expected = {
        (head, row, column): [spelled(rows[row]), spelled(columns[column])]
        for row, column in np.ndindex(array.shape)
    }
    if any(key not in expected or texts[key][1:] != expected[key] for key in texts):
        return False
    shown = np.zeros(array.shape)
    for (_, row, column), weight in weights.items():
        shown[row, column] = weight
        if not abs(float(texts[head, row, column][0]) - weight) < 0.0005 + 1e-9:
            return False
    return bool(np.abs(shown - array).max() < HALF_LEVEL)


def spelled(token):
    return token.replace("▁", "_")


def test_every_number_of_the_table_is_that_of_the_array(tab):
    assert wrong_numbers(tab, ALL_HEADS) == []
    assert tab.page.locator("#alarm").is_hidden()


@pytest.mark.parametrize(
    ("name", "sound", "mistaken"),
    [
        ("heads swapped", "heads + head - 1)", "heads + heads - head)"),
        ("layer off by one", "((layer - 1) *", "((layer % 3) *"),
        ("query and key swapped", "query * width + key", "key * width + query"),
        ("bytes cut", "letter.charCodeAt(0)", "Math.min(127, letter.charCodeAt(0))"),
        (
            "subwords of another sentence",
            "view.attention[side];",
            "PAGE.sentences[0].views[0].attention[side];",
        ),
    ],
)
def test_a_mistake_in_the_script_is_seen(open_tab, monkeypatch, name, sound, mistaken):
    read = html.read
    assert read("weights.js").count(sound) == 1
    monkeypatch.setattr(html, "read", lambda file: read(file).replace(sound, mistaken))
    assert wrong_numbers(open_tab(PAGE), [(1, "encoder", 2, 2), (2, "memory", 1, 1)]), (
        name
    )


@pytest.mark.parametrize("name", ["transposed", "cut"])
def test_a_page_warns_of_rows_that_do_not_sum_to_1(open_tab, name):
    attention = attention_of()
    encoder = {
        "transposed": attention.encoder.swapaxes(-1, -2),
        "cut": np.minimum(attention.encoder, 0.5),
    }[name]
    view = PAGE.sentences[0].views[-1]
    view = dataclasses.replace(
        view, attention=dataclasses.replace(attention, encoder=encoder)
    )
    sentence = dataclasses.replace(PAGE.sentences[0], views=(view,))
    page = dataclasses.replace(PAGE, sentences=(sentence,), models=PAGE.models[-1:])
    alarm = open_tab(page).page.locator("#alarm")
    assert alarm.is_visible()
    assert "row of the encoder weights does not sum to 1" in alarm.inner_text()


def test_a_token_under_the_pointer_leaves_its_lines_of_the_chosen_heads(tab):
    tab.show("a=memory&l=2&h=2,5&min=0.1")
    page = tab.page
    levels = np.rint(attention_of().memory[1] * 255) / 255

    def lines():
        return {
            tuple(map(int, line))
            for line in page.evaluate(
                """() => [...document.querySelectorAll("line.weight")].map(
                    line => ["head", "row", "column"].map(n => line.dataset[n]))"""
            )
        }

    def expected(row=None, column=None):
        return {
            (head, q, k)
            for head in (2, 5)
            for q, k in np.argwhere(levels[head - 1] >= 0.1)
            if row in (None, q) and column in (None, k)
        }

    assert lines() == expected()
    assert page.evaluate(MISPLACED) == 0
    # A line is as opaque as its weight, in the colour of the chip of its head.
    drawn = page.evaluate(
        """() => [...document.querySelectorAll("line.weight")].map(line => [
            ...["head", "row", "column"].map(n => Number(line.dataset[n])),
            Number(line.getAttribute("stroke-opacity")),
            getComputedStyle(line).stroke])"""
    )
    chips = {
        head: page.evaluate(
            """key => getComputedStyle(
                document.querySelector(`[data-key=${key}]`)).backgroundColor""",
            f"chip-{head}",
        )
        for head in (2, 5)
    }
    assert len(set(chips.values())) == 2
    for head, row, column, opacity, colour in drawn:
        assert abs(opacity - levels[head - 1, row, column]) < 0.001
        assert colour == chips[head]
    place = tab.place("#lines")
    page.hover("#rows [data-index='3']")
    # The looking row stands below, as in the figures of `vaswani plot`.
    _, upper, _, height = tab.place("#columns")
    assert tab.place("#rows")[1] > upper + height
    assert page.evaluate(
        """() => [...document.querySelectorAll("line.weight")].every(
            line => Number(line.getAttribute("y1")) > line.getAttribute("y2"))"""
    )
    assert "The lower row looks at the upper." in page.locator("#caption").inner_text()
    assert lines() == expected(row=3) != expected()
    summary = page.locator("#summary").inner_text()
    largest = levels[4, 3].argmax()
    word = samples.SOURCE[largest].replace("▁", "")
    assert summary.startswith("“nie” in layer 2 looks at: head 2: ")
    assert f"head 5: {word} {levels[4, 3, largest]:.2f}" in summary
    probability = np.exp(PAGE.sentences[0].views[-1].log_probs[3])
    assert f"predicted with probability {probability:.2f}." in summary
    # On the other side stand a cell for each head, and the largest weight.
    assert page.locator("#image .cell").count() == 2 * len(samples.SOURCE)
    numbers = page.locator("#image .number").all_text_contents()
    high = levels[[1, 4], 3].max(axis=0)
    assert numbers == [f"{weight:.2f}" for weight in high if weight >= 0.1]
    assert tab.place("#lines") == place
    page.hover("#columns [data-index='1']")
    assert lines() == expected(column=1)
    assert tab.place("#lines") == place
    page.hover("#title")
    assert lines() == expected()
    # A click pins, whatever the pointer does, and a second one unpins.
    page.click("#rows [data-index='3']")
    page.hover("#title")
    assert lines() == expected(row=3)
    assert "q=4" in tab.fragment()
    page.click("#rows [data-index='3']")
    assert lines() == expected()
    page.hover("#title")
    assert lines() == expected()


def test_a_tap_pins_a_token_and_opens_a_row_of_the_matrix(open_tab):
    tab = open_tab(PAGE, "a=memory&l=2&h=2,5", width=360, has_touch=True)
    page = tab.page
    place = tab.place("#lines")
    for side, letter, index in (
        ("rows", "q", 3),
        ("columns", "k", 1),
        ("rows", "q", 6),
    ):
        page.tap(f"#{side} [data-index='{index}']")
        assert f"{letter}={index + 1}" in tab.fragment().split("&")
        selected = page.locator("#lines [aria-selected=true]").all()
        assert [token.get_attribute("data-key") for token in selected] == [
            f"{side}-{index}"
        ]
        rows = page.locator("line.weight").all()
        name = {"rows": "data-row", "columns": "data-column"}[side]
        assert {line.get_attribute(name) for line in rows} == {str(index)}
    assert tab.place("#lines") == place
    page.tap("#rows [data-index='6']")
    assert tab.fragment() == "a=memory&h=2,5"
    tab.show("v=matrix&a=memory&l=2&h=2")
    cell = "#matrix .cell[data-row='5'][data-column='2']"
    page.tap(cell)
    weight = attention_of().memory[1, 1][5, 2]
    assert page.locator("#reading text").text_content() == f"{weight:.2f}"
    assert "v=matrix" in tab.fragment()
    page.tap(cell)
    assert tab.fragment() == "a=memory&h=2&q=6"


def group(matrix, rows, columns):
    """Sum over the subwords of an attended word, average over an attending one's."""
    summed = np.stack([matrix[:, list(c)].sum(axis=1) for c in columns], axis=1)
    return np.stack([summed[list(r)].mean(axis=0) for r in rows])


def test_words_have_the_sum_of_what_their_subwords_get(tab):
    rows = [(0,), (1,), (2,), (3,), (4, 5, 6), (7,)]
    columns = [(0,), (1,), (2,), (3,), (4,), (5, 6, 7), (8,)]
    array = attention_of().memory[0, 3]
    expected = group(array, rows, columns)
    shown = np.zeros(expected.shape)
    weights, texts = tab.table("a=memory&l=1&h=4&u=words&min=0&n=100")
    for (_, row, column), weight in weights.items():
        shown[row, column] = weight
    # A word of three subwords may be wrong by three halves of a level.
    assert np.abs(shown - expected).max() < 3 * HALF_LEVEL
    assert {text[2] for text in texts.values()} >= {"perfect.", "law"}
    # The decoder reads the words after its begin mark.
    tab.show("a=decoder&l=1&h=4&u=words")
    names = tab.page.locator("#rows [role=option] title").all_text_contents()
    assert names == ["<s>", "Das", "Gesetz", "wird", "nie", "vollkommen."]


def test_hidden_marks_take_their_share_or_leave_it_to_the_others(tab):
    array = attention_of().memory[0, 3][:-1, :-1]
    totals = array.sum(axis=1, keepdims=True)
    # The rounding of a row of which little is left would be all that it shows.
    assert totals.min() < 0.1 < np.sort(totals.ravel())[2]
    for marks, expected in [
        ("hidden", array),
        ("rescaled", np.where(totals < 0.1, array, array / totals)),
    ]:
        weights, _ = tab.table(f"a=memory&l=1&h=4&m={marks}&min=0&n=100")
        shown = np.zeros(expected.shape)
        for (_, row, column), weight in weights.items():
            shown[row, column] = weight
        assert np.abs(shown - expected).max() < 0.02
        caption = tab.page.locator("#caption").inner_text()
        assert ("rescaled to sum to 1" in caption) == (marks == "rescaled")
        assert ("sum to less than 1" in caption) == (marks == "hidden")


def test_the_matrix_has_the_number_under_the_pointer(tab):
    tab.show("v=matrix&a=memory&l=3&h=2")
    page = tab.page
    array = attention_of().memory[2, 1]
    cells = page.locator("#matrix .cell")
    assert cells.count() == array.size
    # A cell is below its column's token and beside its row's, as opaque as its weight.
    misplaced = page.evaluate(
        """() => {
            const centre = (node) => {
                const box = node.getBoundingClientRect();
                return {x: box.x + box.width / 2, y: box.y + box.height / 2};
            };
            const label = (side, index) => centre(document.querySelector(
                `#matrix text[data-side=${side}][data-index="${index}"]`));
            return [...document.querySelectorAll("#matrix .cell")].filter(cell => {
                const {x, y} = centre(cell);
                return Math.abs(x - label("columns", cell.dataset.column).x) > 4
                    || Math.abs(y - label("rows", cell.dataset.row).y) > 4;
            }).length;
        }"""
    )
    assert misplaced == 0
    shown = page.evaluate(
        """() => [...document.querySelectorAll("#matrix .cell")].map(cell => [
            Number(cell.dataset.row), Number(cell.dataset.column),
            Number(cell.getAttribute("fill-opacity"))])"""
    )
    for row, column, opacity in shown:
        assert abs(opacity - array[row, column]) < HALF_LEVEL + 0.001
    page.hover("#matrix .cell[data-row='5'][data-column='2']")
    assert page.locator("#reading text").text_content() == f"{array[5, 2]:.2f}"
    assert page.locator("#summary").inner_text() == (
        f"“kommen” looks at “will” with weight {np.rint(array[5, 2] * 255) / 255:.3f} "
        "in head 2 of layer 3."
    )
    page.focus("#matrix")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert page.locator("#summary").inner_text().startswith("“voll” looks at “never”")
    page.keyboard.press("Enter")
    assert tab.fragment() == "a=memory&l=3&h=2&q=5"
