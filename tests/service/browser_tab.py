"""The page of `vaswani serve` in a tab of a real browser."""

import dataclasses
import re

from tests.service.word_server import WordServer

HOSTILE = (
    "<script>alert(1)</script> </textarea><img src=x onerror=alert(2)> &amp; \x00 NUL.",
    "👩‍🔬 emoji 😀 and-more 👍🏽 words.",
    "שלום עולם (hello) 123.",
    "{{constructor}} ${alert(3)} javascript:alert(4) \u202edrawkcab\u202c.",
    "w" * 300 + ".",
)


@dataclasses.dataclass
class Tab:
    """The page in the browser.

    Attributes:
        page: As playwright has it.
        server: Who answers.
        requests: The addresses that it requested.
        messages: The lines of its console.
    """

    page: object
    server: WordServer
    requests: list
    messages: list

    def translate(self, text):
        """Put a text in, have it translated and return the translation."""
        self.put(text)
        self.finish()
        return self.page.locator("#translation").text_content()

    def put(self, text):
        """Put a text in, and ask for its translation without a pause."""
        self.page.locator("#source").evaluate(
            """(node, text) => {
                node.focus();
                node.value = text;
                node.dispatchEvent(new InputEvent("input", {bubbles: true}));
            }""",
            text,
        )
        self.page.keyboard.press("Control+Enter")

    def finish(self):
        """Wait for the whole translation."""
        expect(self, "#progress", re.compile(r"sentences? in "))

    def marked(self):
        """Return the words that are marked on each side."""
        return tuple(
            self.page.locator(f"{sheet} .marked").all_text_contents()
            for sheet in ("#mirror", "#translation")
        )

    def hover(self, side, text):
        """Point at a word: of the text, where the mirror below it has the word."""
        word = self.page.locator(f"{side} .word", has_text=re.compile(f"^{text}$"))
        box = word.first.bounding_box()
        self.page.mouse.move(
            box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=2
        )


def expect(tab, selector, text):
    """Wait until an element has a text."""
    from playwright import sync_api

    sync_api.expect(tab.page.locator(selector)).to_have_text(text, timeout=10_000)


def streamed(server):
    """Return the requests for the text, without those for one sentence's list."""
    return [request for request in server.requests if request.get("stream")]


def check_is_text(tab):
    """Check that no text has become an element."""
    assert tab.page.locator("img").count() == 1
    assert tab.page.locator("script").count() == 1
    assert tab.page.locator("#translation :not(span)").count() == 0
