"""The page of a comparison is whole, escaped, without a network, and readable."""

import html.parser
import json
import pathlib

import pytest

from tests import chromium
from tests.evaluation import compared
from vaswani_jax.evaluation import comparison, comparison_text
from vaswani_jax.evaluation.comparison import System, SystemComparison
from vaswani_jax.pages import comparison_page

UGLY = '</p><script>alert("x")</script> ‏שלום & <b>'


@pytest.fixture(scope="module")
def result() -> SystemComparison:
    ugly = [UGLY, *compared.SEEDS[0].outputs[0][1:]]
    systems = [*compared.SEEDS, compared.HALF, System(UGLY, [ugly], UGLY)]
    return comparison.compare(systems, compared.TEXT, metrics=["bleu"], num_lines=2)


class _Tags(html.parser.HTMLParser):
    """Checks that every element is closed, and gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_shows_text_as_text(result: SystemComparison) -> None:
    page = comparison_page.render(result)
    tags = _Tags()
    tags.feed(page)
    assert tags.open == [] and "script" not in tags.names and "b" not in tags.names
    assert UGLY in tags.text and compared.HALF.origin in tags.text
    # Of the last system one line alone is not that of the first.
    assert tags.names.count("article") == 5 * 4 + 1
    assert tags.names.count("svg") == 4
    assert tags.text.count("no difference") >= 1
    assert tags.text.count("different: A is better") >= 1
    for words in ("http:", "https:", "src=", "@import", "url("):
        assert words not in page


def test_the_page_of_seeds_says_what_it_shows() -> None:
    result = comparison.compare(
        [compared.RECIPE, compared.HALF], compared.TEXT, metrics=["bleu"], num_lines=1
    )
    tags = _Tags()
    tags.feed(comparison_page.render(result))
    assert tags.open == []
    [scores] = result.scores
    for words in (
        scores.spreads[0].format_range(),
        comparison_text.describe_difference(scores.differences[0]),
        "the mean over a system's seeds; a line shows the mean chrF2",
        "B has one seed: no test can say how another would score",
    ):
        assert words in tags.text


def test_of_text_without_spaces_the_letters_that_differ_are_marked() -> None:
    result = comparison.compare(
        compared.WITHOUT_SPACES, compared.CHINESE, metrics=["chrf"]
    )
    page = comparison_page.render(result)
    for words in ("高兴", "开心"):
        assert f">他很<mark>{words}</mark>。</dd>" in page


@pytest.mark.parametrize("ending", [".html", ".json", ".txt"])
def test_the_ending_decides_the_form(
    result: SystemComparison, tmp_path: pathlib.Path, ending: str
) -> None:
    path = comparison_page.write_comparison(result, tmp_path / f"c{ending}")
    text = path.read_text(encoding="utf-8")
    if ending == ".json":
        assert json.loads(text) == json.loads(json.dumps(result.as_dict()))
    elif ending == ".txt":
        assert text == f"{result.format()}\n"
    else:
        assert text.startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == [f"c{ending}"]


def test_another_ending_is_refused(result: SystemComparison) -> None:
    with pytest.raises(
        ValueError, match=r"path=c\.pdf must end in \.html or \.json or"
    ):
        comparison_page.write_comparison(result, "c.pdf")


@pytest.mark.browser
def test_a_browser_shows_it_wide_on_a_phone_and_dark(
    result: SystemComparison, tmp_path: pathlib.Path
) -> None:
    path = comparison_page.write_comparison(result, tmp_path / "c.html")
    with chromium.launch() as browser:
        for width, scheme in ((1280, "light"), (390, "light"), (390, "dark")):
            context = browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme=scheme,
                offline=True,
            )
            tab, messages = context.new_page(), []
            tab.on("console", lambda message, told=messages: told.append(message.text))
            tab.goto(path.as_uri())
            assert messages == []
            assert tab.evaluate("document.documentElement.scrollWidth") == width
            assert tab.evaluate(chromium.LOW_CONTRAST) == []
            assert tab.locator("svg.interval circle").count() == 4
            assert tab.locator("details[open]").count() == 1
            ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
            context.close()
