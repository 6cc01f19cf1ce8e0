"""A page in a browser as tests see it, and the page that most of them open."""

import dataclasses

import numpy as np

from tests.pages import samples

LAYERS, HEADS = 3, 5
HALF_LEVEL = 1 / 510 + 1e-6


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


def attention_of(*, sentence=0, model=-1):
    return PAGE.sentences[sentence].views[model].attention


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
