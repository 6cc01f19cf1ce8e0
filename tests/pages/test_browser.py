"""A page in a real browser: its numbers, its keys, its colours and its files."""

import dataclasses
import itertools
import pathlib
import re
import shutil
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tests.pages import samples
from vaswani_jax.pages import contents, html

pytestmark = pytest.mark.browser

LAYERS, HEADS = 3, 5
SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target_in", "target_in"),
    "memory": ("target_out", "source"),
}
HOSTILE = "</script><img src=x onerror=alert(1)>"
HALF_LEVEL = 1 / 510 + 1e-6
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def browser():
    """Yield Debian's chromium, which has no network."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the extra browser is not installed"
    )
    path = shutil.which("chromium")
    if not path:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield browser
        browser.close()


@dataclasses.dataclass
class Tab:
    """A page in the browser, with its requests and messages.

    Attributes:
        page: The page as playwright has it.
        address: Of the file.
        requests: The addresses that the page requested.
        messages: The lines of its console.
        devtools: The browser's own measurements; None if the tab is not timed.
    """

    page: object
    address: str
    requests: list
    messages: list
    devtools: object = None

    def seconds(self):
        """Return the processor time that the page has taken."""
        metrics = self.devtools.send("Performance.getMetrics")["metrics"]
        [seconds] = [m["value"] for m in metrics if m["name"] == "TaskDuration"]
        return seconds

    def show(self, fragment):
        """Show a state by its address, as a link does, with no token pointed at."""
        self.page.mouse.move(0, 0)
        self.page.evaluate(
            """fragment => new Promise(resolve => {
                document.activeElement.blur();
                if (location.hash.slice(1) === fragment) return resolve();
                addEventListener("hashchange", () => setTimeout(resolve), {once: true});
                location.hash = fragment;
            })""",
            fragment,
        )

    def place(self, selector):
        """Return where an element stands in the document, however far it is scrolled.

        Returns:
            x, y, width and height.
        """
        return self.page.evaluate(
            """selector => {
                const box = document.querySelector(selector).getBoundingClientRect();
                return [box.x + scrollX, box.y + scrollY, box.width, box.height];
            }""",
            selector,
        )

    def fragment(self):
        return self.page.evaluate("location.hash.slice(1)")

    def tables(self, fragments):
        """Return each state's table: weights by head, row and column, and texts."""
        tables = self.page.evaluate(
            """async fragments => {
                const tables = [];
                for (const fragment of fragments) {
                    const drawn = new Promise(resolve =>
                        addEventListener("hashchange", resolve, {once: true}));
                    location.hash = fragment;
                    await drawn;
                    const rows = [...document.querySelectorAll("#largest tbody tr")];
                    tables.push(rows.map(row => [
                        Number(row.dataset.head), Number(row.dataset.row),
                        Number(row.dataset.column), row.querySelector("data").value,
                        row.querySelector("data").textContent,
                        row.cells[1].textContent, row.cells[2].textContent]));
                }
                return tables;
            }""",
            fragments,
        )
        return [
            (
                {tuple(row[:3]): float(row[3]) for row in rows},
                {tuple(row[:3]): row[4:] for row in rows},
            )
            for rows in tables
        ]

    def table(self, fragment):
        """Return the table of one state."""
        self.show("")
        [table] = self.tables([fragment])
        return table


@pytest.fixture(scope="module")
def open_tab(browser, tmp_path_factory):
    """Yield a function that opens a page; all tabs are closed at the end."""
    directory = tmp_path_factory.mktemp("pages")
    tabs = []

    def open_tab(page, fragment="", *, width=1200, is_timed=False, **options):
        text = page if isinstance(page, str) else html.render(page)
        path = directory / f"{len(tabs)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, offline=True, **options
        )
        tab = Tab(context.new_page(), path.as_uri(), [], [])
        if is_timed:
            tab.devtools = context.new_cdp_session(tab.page)
            tab.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.page.set_default_timeout(10_000)
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        tab.page.on("console", lambda message: tab.messages.append(message.text))
        tab.page.on("pageerror", lambda error: tab.messages.append(str(error)))
        tab.page.goto(f"{tab.address}#{fragment}")
        tabs.append(tab)
        return tab

    yield open_tab
    for tab in tabs:
        tab.page.context.close()


def penalized(search, penalty):
    """Return a search whose scores are those of a length penalty."""

    def divide(part):
        return dataclasses.replace(part, score=part.log_prob / penalty)

    return dataclasses.replace(
        search,
        positions=tuple(tuple(map(divide, each)) for each in search.positions),
        finished=tuple(
            dataclasses.replace(divide(part), penalty=penalty)
            for part in search.finished
        ),
    )


def small_page(*, num_models=2, num_sentences=2):
    """Return a page of 3 layers and 5 heads; the second sentence is another one."""
    rng = np.random.default_rng(7)
    page = samples.page(num_models=num_models, num_sentences=num_sentences)
    sentences = []
    for number, sentence in enumerate(page.sentences):
        source = samples.SOURCE if not number else ("▁It", "▁is", "▁so", "</s>")
        words = samples.SOURCE_WORDS if not number else (0, 1, 2, -1)
        views = tuple(
            dataclasses.replace(
                view,
                text=f"{view.text} {model}",
                search=penalized(view.search, 2.0),
                attention=samples.attention(
                    rng, source=source, layers=LAYERS, heads=HEADS
                ),
            )
            for model, view in enumerate(sentence.views)
        )
        sentences.append(dataclasses.replace(sentence, source_words=words, views=views))
    return dataclasses.replace(
        page,
        sentences=tuple(sentences),
        heads=samples.heads(rng, layers=LAYERS, num_heads=HEADS),
    )


PAGE = small_page()


@pytest.fixture(scope="module")
def tab(open_tab):
    return open_tab(PAGE)


def attention_of(*, sentence=0, model=-1):
    return PAGE.sentences[sentence].views[model].attention


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


# The lines that do not end at the tokens whose weight they are.
MISPLACED = """() => {
    const across = lines.isUpright ? "x" : "y";
    const centre = (side, index) => {
        const text = document.querySelector(`#${side} [data-index="${index}"] .ground`);
        const box = text.getBBox();
        return box[across] + box[across === "x" ? "width" : "height"] / 2;
    };
    return [...document.querySelectorAll("line.weight")].filter(line => {
        const {row, column} = line.dataset;
        const ends = [[1, "rows", row], [2, "columns", column]];
        return ends.some(([end, side, index]) => Math.abs(
            line.getAttribute(`${across}${end}`) - centre(side, index)) > 11);
    }).length;
}"""


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


def test_every_control_is_reached_by_tab(tab):
    tab.show("a=encoder")
    page = tab.page
    page.focus("#skip")
    # A group of radio buttons, and a list of tokens, is one stop.
    name = """node => node.name || (node.closest("[role=listbox]") ?? node).id
        || node.dataset.key || node.tagName"""
    controls = page.evaluate(
        f"""() => [...document.querySelectorAll(
            "a[href], button, select, input, summary, [role=option], "
            + ".scroll[tabindex]")]
            .filter(node => node.checkVisibility()).map({name})"""
    )
    reached = []
    for _ in range(len(controls)):
        reached.append(page.evaluate(f"() => ({name})(document.activeElement)"))
        page.keyboard.press("Tab")
    assert set(controls) <= set(reached)
    assert {"rows", "columns", "layers", "kinds", "chip-5", "threshold"} < set(reached)


def test_keys_move_pin_and_switch(tab):
    tab.show("a=encoder&l=2&h=1")
    page = tab.page
    page.focus("#rows [tabindex='0']")
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.key") == "columns-1"
    page.keyboard.press("Enter")
    assert "k=2" in tab.fragment()
    option = page.locator("#columns [data-index='1']")
    assert option.get_attribute("aria-selected") == "true"
    page.keyboard.press("]")
    page.keyboard.press("4")
    assert tab.fragment() == "l=3&h=1,4&k=2"
    # The focus stays where it was when the drawing is another.
    assert page.evaluate("document.activeElement.dataset.key") == "columns-1"
    page.keyboard.press("[")
    page.keyboard.press("1")
    page.keyboard.press("Escape")
    assert tab.fragment() == "h=4"


def test_a_screen_reader_hears_what_is_there(tab):
    tab.show("a=encoder&l=2&h=1&q=2&n=10&min=0.9")
    snapshot = tab.page.locator("#main").aria_snapshot()
    assert '- img "Encoder self-attention, layer 2 of 3, head 1 of 5.' in snapshot
    assert '- listbox "Tokens that look":' in snapshot
    assert '- option "law" [selected]' in snapshot
    assert '- listbox "Tokens that are looked at":' in snapshot
    assert "“law” in layer 2 looks at: head 1:" in snapshot
    assert "- status:" in snapshot
    assert '- columnheader "looks at"' in snapshot
    controls = tab.page.locator(".controls").aria_snapshot()
    assert '- group "Layer":' in controls
    assert '- button "Head 1" [pressed]' in controls
    assert '- slider "Hide weights below' in controls


def test_a_link_brings_the_same_drawing(tab, open_tab):
    tab.show("")
    page = tab.page
    page.select_option("#sentence", "1")
    page.check("#kinds-memory", force=True)
    page.check("#layers-3", force=True)
    page.check("#units-words", force=True)
    page.check("#layouts-columns", force=True)
    page.select_option("#marks", "rescaled")
    page.select_option("#largest-count", "20")
    page.click("[data-key=chip-2]")
    page.click("#rows [data-index='2']")
    fragment = tab.fragment()
    assert fragment == "a=memory&l=3&h=1,3,4,5&u=words&m=rescaled&o=columns&n=20&q=3"
    other = open_tab(PAGE, fragment)
    page.hover("#title")
    assert other.fragment() == fragment
    for part in ("#lines", "#largest", "#summary", ".controls"):
        pictures = [
            re.sub(' tabindex="-?[0-9]"', "", t.page.locator(part).inner_html())
            for t in (tab, other)
        ]
        assert pictures[0] == pictures[1]
    # A word in the place of a number, and what the page does not have.
    other.show("t=never&l=99&h=7&a=nothing&s=-1")
    assert other.page.locator("#rows [aria-selected=true]").text_content() == (
        "▁never_never"
    )


def test_the_drawing_is_saved_as_svg_and_png(tab):
    tab.show("a=memory&l=1&h=1,2&q=2&min=0.01&theme=dark")
    page = tab.page
    lines = page.locator("line.weight").count()
    with page.expect_download() as download:
        page.click("#save-svg")
    path = pathlib.Path(download.value.path())
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert download.value.suggested_filename == (
        "lines-sentence-1-memory-layer-1-heads-1-2.svg"
    )
    # A figure is light, whatever the page is.
    [ground, *_] = root.findall(f"{SVG}rect")
    assert ground.get("fill") == "rgb(255, 255, 255)"
    assert len(root.findall(f".//{SVG}line")) == lines > 0
    assert "var(" not in text and "class=" not in text
    assert {line.get("stroke") for line in root.iter(f"{SVG}line")} <= {
        "rgb(0, 114, 178)",
        "rgb(230, 159, 0)",
    }
    assert "Encoder-decoder attention, layer 1 of 3, heads 1 and 2 of 5." in text
    with page.expect_download() as download:
        page.click("#save-png")
    data = pathlib.Path(download.value.path()).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    sizes = struct.unpack(">II", data[16:24])
    assert sizes == tuple(2 * int(root.get(name)) for name in ("width", "height"))


# The contrast of each visible text with what lies behind it, where it is below 4.5.
LOW_CONTRAST = """() => {
    const parse = (color) => {
        const parts = color.match(/[\\d.]+/g)?.map(Number);
        return parts && [...parts.slice(0, 3), parts[3] ?? 1];
    };
    const over = (top, below) => top.slice(0, 3).map(
        (part, index) => part * top[3] + below[index] * (1 - top[3]));
    const luminance = (color) => {
        const [r, g, b] = color.map((part) => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (node) => {
        const layers = [];
        for (let one = node; one; one = one.parentElement) {
            // A box of the drawing lies behind its text.
            const plate = node.tagName === "text" && one === node.parentElement
                && one.querySelector(
                    ":scope > .ground, :scope > .outer, :scope > .plate");
            if (plate) layers.push(parse(getComputedStyle(plate).fill));
            layers.push(parse(getComputedStyle(one).backgroundColor));
        }
        return layers.filter(Boolean).reverse().reduce(
            (below, top) => over(top, below), [255, 255, 255]);
    };
    const low = [];
    for (const node of document.querySelectorAll("body *")) {
        const text = [...node.childNodes].some(
            (child) => child.nodeType === 3 && child.textContent.trim());
        if (!text || !node.checkVisibility()) continue;
        if (["SCRIPT", "STYLE", "title", "OPTION"].includes(node.tagName)) continue;
        const style = getComputedStyle(node);
        const below = ground(node);
        const color = parse(node.tagName === "text" ? style.fill : style.color);
        const [high, less] = [luminance(over(color, below)), luminance(below)]
            .sort((one, other) => other - one);
        const ratio = (high + 0.05) / (less + 0.05);
        if (ratio < 4.5) low.push([node.tagName, node.textContent.slice(0, 30), ratio]);
    }
    return low;
}"""


# The tab stop and the name of each box that scrolls sideways.
WIDE = """() => [...document.querySelectorAll(".scroll")]
    .filter(box => box.scrollWidth > box.clientWidth)
    .map(box => [box.tabIndex, box.getAttribute("aria-label")])"""
# The colours of all heads, also of those that the page does not have.
CHIPS = """() => Array.from({length: 8}, (_, index) => {
    const probe = document.createElement("span");
    document.body.append(probe);
    probe.className = `chip chip-${index + 1}`;
    const colour = getComputedStyle(probe).borderTopColor;
    probe.remove();
    return colour;
})"""


def lightness_and_hue(*rgb):
    """Return a colour of sRGB as CIE L*a*b*, whose distances are delta E."""
    share = np.array(rgb) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1, 1.089])
    # Of the darkest colours the formula has another part; only black is one.
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_texts_are_read_in_light_and_dark_and_on_a_phone(tab, open_tab):
    phone = open_tab(PAGE, width=360)
    grounds = set()
    for theme in ("light", "dark"):
        for view in ("lines", "matrix", "overview", "beam", "training", "roles"):
            fragment = f"v={view}&h=1,2&q=2&theme={theme}"
            tab.show(fragment)
            assert tab.page.evaluate(LOW_CONTRAST) == [], fragment
            phone.show(fragment)
            width = phone.page.evaluate("document.documentElement.scrollWidth")
            assert width == 360, fragment
            # What scrolls sideways is reached by keys and has a name.
            wide = phone.page.evaluate(WIDE)
            assert all(tabindex == 0 and name for tabindex, name in wide), fragment
            assert wide or view not in ("roles", "training", "beam")
        tab.show(f"theme={theme}")
        colours = [
            lightness_and_hue(*map(int, re.findall(r"\d+", colour)))
            for colour in tab.page.evaluate(CHIPS)
        ]
        assert len(colours) == 8
        for one, other in itertools.combinations(colours, 2):
            assert np.linalg.norm(one - other) >= 20
        grounds.add(
            tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        )
    assert len(grounds) == 2
    tab.show("theme=light")
    assert tab.page.evaluate(LOW_CONTRAST) == []
    # A phone has the tokens side by side.
    phone.show("")
    assert phone.page.evaluate("lines.isUpright") is False
    assert tab.page.evaluate("lines.isUpright") is True


def test_the_page_follows_the_system_and_the_printer(tab):
    page = tab.page
    tab.show("a=encoder&h=3")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) != light
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    duration = "getComputedStyle(document.querySelector('.ground')).transitionDuration"
    assert page.evaluate(duration) == "0s"
    page.emulate_media(media="print", reduced_motion="no-preference")
    assert page.locator(".controls").is_hidden()
    assert page.locator("#lines").is_visible()
    page.emulate_media(media="screen")
    assert page.evaluate(duration) != "0s"


def other_texts(source, target, *, search=None):
    """Return a page of one sentence with other subwords, each a word of its own."""
    rng = np.random.default_rng(1)
    attention = samples.attention(
        rng, source=source, target=target, layers=LAYERS, heads=HEADS
    )
    view = contents.View(
        text=" ".join(target),
        attention=attention,
        target_words=(*range(len(target) - 1), -1),
        log_probs=tuple([-0.1] * len(target)),
        search=search,
    )
    sentence = contents.Sentence(
        line=1,
        text=" ".join(source),
        source_words=(*range(len(source) - 1), -1),
        views=(view,),
    )
    return dataclasses.replace(
        PAGE,
        title=source[0],
        command=source[0],
        source_language="ar",
        models=PAGE.models[:1],
        sentences=(sentence,),
    )


def test_a_hostile_token_stays_text(open_tab):
    search = samples.search()
    (first, *others), last = search.positions
    winner = dataclasses.replace(search.finished[0], text="o" * 300)
    search = dataclasses.replace(
        search,
        positions=((dataclasses.replace(first, token=HOSTILE), *others), last),
        finished=(winner, *search.finished[1:]),
    )
    page = other_texts(
        (HOSTILE, "▁a", "</s>"), (HOSTILE, "o" * 300, "</s>"), search=search
    )
    tab = open_tab(page, width=360)
    for view in ("lines", "matrix", "overview", "beam", "roles"):
        tab.show(f"v={view}&a=memory&t={HOSTILE.replace('=', '%3D')}")
        assert tab.page.locator("img").count() == 0
        # Nor does a text without a space widen a phone's page.
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
    tab.show("a=memory&h=1")
    assert tab.page.locator("h1").text_content() == HOSTILE
    title = tab.page.locator("#columns title").first
    assert title.text_content() == HOSTILE
    assert HOSTILE in tab.page.locator("#largest").inner_text()
    assert tab.messages == []


def test_text_from_right_to_left_begins_at_the_right(open_tab):
    tab = open_tab(
        other_texts(
            ("▁القانون", "▁لن", "▁يكون", "</s>"),
            ("▁e\u0301te\u0301", "▁स्त्री", "</s>"),
        ),
        "a=memory",
    )
    places = tab.page.evaluate(
        """() => Object.fromEntries(["rows", "columns"].map(side => [side,
            [...document.querySelectorAll(`#${side} text`)].map(
                text => text.getBoundingClientRect().x)]))"""
    )
    assert places["rows"] == sorted(places["rows"])
    assert places["columns"] == sorted(places["columns"], reverse=True)
    assert tab.page.evaluate(MISPLACED) == 0
    tab.show("a=memory&o=columns")
    assert tab.page.evaluate(MISPLACED) == 0
    tab.show("a=memory")
    texts = tab.page.locator("#columns text")
    assert texts.first.get_attribute("lang") == "ar"
    assert tab.page.locator("#rows text").first.text_content() == "_e\u0301te\u0301"
    # The mark that begins a word stands before it; a number does not move into it.
    assert texts.first.text_content() == "\u2067_القانون\u2069"
    tab.show("a=memory&h=1&q=1&min=0")
    summary = tab.page.locator("#summary").inner_text()
    assert re.search("\u2067\\w+\u2069 0[.][0-9][0-9]", summary)
    # What is cut is cut between letters, never off their marks.
    cut = tab.page.evaluate("fitText('e\u0301'.repeat(50), 60, 13)")
    assert re.fullmatch("(e\u0301)+…", cut)
    tab.page.focus("#columns [data-index='0']")
    tab.page.keyboard.press("ArrowLeft")
    assert tab.page.evaluate("document.activeElement.dataset.key") == "columns-1"
    tab.show("v=beam")
    assert "no record of a search for this" in tab.page.locator("#other").inner_text()


def test_50_sentences_of_64_tokens_open_within_2_seconds(open_tab):
    tokens = (*(f"▁{n}" for n in range(63)), "</s>")
    page = other_texts(tokens, tokens)
    text = html.render(dataclasses.replace(page, sentences=page.sentences * 50))
    assert html.check_size(text) > 12_000_000
    # Seconds of the processor, which other work of the machine does not lengthen.
    tab = open_tab(text, is_timed=True)
    assert tab.page.locator("#rows [role=option]").count() == 64
    assert tab.page.locator("#sentence option").count() == 50
    assert 0 < tab.seconds() < 2


def test_data_of_another_version_is_refused(open_tab):
    text = html.render(PAGE).replace('{"version":1,', '{"version":2,')
    tab = open_tab(text)
    assert "cannot read data of version 2" in tab.page.locator("#alarm").inner_text()


def test_a_page_asks_for_its_file_alone_and_says_nothing(tab, open_tab):
    other = open_tab(PAGE)
    for view in ("lines", "matrix", "overview", "beam", "training", "roles"):
        other.show(f"v={view}")
    with other.page.expect_download():
        other.show("v=matrix&h=1")
        other.page.click("#save-png")
    for one in (tab, other):
        files = [url for url in one.requests if not url.startswith(("data:", "blob:"))]
        assert [url.split("#")[0] for url in files] == [one.address]
        assert one.messages == []
