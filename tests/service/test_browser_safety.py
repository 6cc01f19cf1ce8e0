"""The page of `vaswani serve` shows texts as texts, and asks its own server alone."""

import re
import urllib.parse

import pytest

from tests import ugly_text
from tests.service.browser_tab import HOSTILE, check_is_text, expect
from tests.service.word_server import FILES, translate

pytestmark = pytest.mark.browser


def test_hostile_texts_stay_texts(tab):
    text = "\n".join(HOSTILE)
    [result] = [translate(text, n_best=1)]
    assert tab.translate(text) == result["translations"][0]["text"]
    check_is_text(tab)
    # All that people write, in ten scripts.
    text = "\n\n".join(line for line in ugly_text.LINES if "\r" not in line)[:1400]
    assert tab.translate(text) == translate(text, n_best=1)["translations"][0]["text"]
    drawn = tab.page.locator("#mirror").text_content()
    assert drawn == tab.page.locator("#source").input_value() == text
    # The text is as high as its mirror, so that no line of it is hidden.
    heights = "node => [node.scrollHeight, node.clientHeight]"
    scroll_height, height = tab.page.locator("#source").evaluate(heights)
    assert scroll_height <= height
    check_is_text(tab)


def test_text_that_is_read_as_html_is_seen(mistaken_tab):
    mistaken_tab.server.edits = {
        "panes.js": (
            'element("span", attributes, letters.slice(begin, end))',
            "Object.assign(element('span', attributes), "
            "{innerHTML: letters.slice(begin, end)})",
        )
    }
    mistaken_tab.page.goto(mistaken_tab.server.address)
    mistaken_tab.translate("<b>bold</b>")
    with pytest.raises(AssertionError):
        check_is_text(mistaken_tab)


def test_a_page_asks_its_own_server_alone_and_says_nothing(tab):
    tab.translate("one two. <img src=//example.org/x> https://example.org three")
    tab.page.locator("#previous").click()
    expect(tab, "#sentence-title", re.compile("Sentence"))
    addresses = [urllib.parse.urlsplit(url) for url in tab.requests]
    origins = {f"{url.scheme}://{url.netloc}" for url in addresses}
    assert origins == {tab.server.origin}
    assert {"/", "/app.css", "/app.js", "/icon.svg", "/v1/translate"} <= {
        url.path for url in addresses
    }
    # Chromium itself writes of each answer of 4xx and 5xx.
    errors = [m for m in tab.messages if not m.startswith("Failed to load resource")]
    assert errors == []


def test_files_are_small_and_have_no_html_in_scripts():
    for path in FILES.iterdir():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 450, path.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|"
            r"new Function|\sstyle=|\son[a-z]+=|https?://(?!www\.w3\.org)",
            text,
        ), path.name
    assert re.findall(r"<script[^>]*>(.*?)</script>", index_text()) == [""]


def index_text():
    return (FILES / "index.html").read_text(encoding="utf-8")
