"""The page of `vaswani serve` in a real browser: how it is used, and what fails."""

import asyncio
import dataclasses
import json
import re
import threading
import types
import urllib.parse

import pytest

from tests import chromium, ugly_text
from tests.service import shouting, sockets, word_server
from tests.service.shouting import ShoutingEngine
from tests.service.word_server import FILES, WordServer, translate, translate_sentence
from vaswani_jax.service import messages
from vaswani_jax.service.keys import Keys

pytestmark = pytest.mark.browser

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


@pytest.fixture(scope="module")
def browser():
    """Yield a browser for all tests."""
    with chromium.launch() as browser:
        yield browser


@pytest.fixture(scope="module")
def open_tab(browser):
    """Yield a function that opens the page of a server; `tab` is that of most tests."""
    contexts = []

    def open_tab(server, *, width=1200, has_clock=False, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, **options
        )
        contexts.append(context)
        tab = Tab(context.new_page(), server, [], [])
        tab.page.set_default_timeout(10_000)
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        tab.page.on("console", lambda message: tab.messages.append(message.text))
        tab.page.on("pageerror", lambda error: tab.messages.append(str(error)))
        if has_clock:
            tab.page.clock.install()
        tab.page.goto(server.address)
        return tab

    yield open_tab
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def server():
    with WordServer() as server:
        yield server


@pytest.fixture(scope="module")
def shared_tab(open_tab, server):
    return open_tab(server)


@pytest.fixture
def tab(shared_tab):
    """Yield a tab without a text."""
    page, server = shared_tab.page, shared_tab.server
    page.locator("#source").fill("")
    page.locator("#settings").evaluate("node => { node.open = false; }")
    page.mouse.move(0, 0)
    server.gate = None
    server.requests.clear()
    server.left.clear()
    return shared_tab


@pytest.fixture(scope="module")
def mistaken_tab(open_tab):
    """Yield a tab of a server whose files each test changes."""
    with WordServer() as server:
        tab = open_tab(server)
        tab.page.set_default_timeout(1000)
        yield tab


def streamed(server):
    """Return the requests for the text, without those for one sentence's list."""
    return [request for request in server.requests if request.get("stream")]


def test_a_text_streams_in_by_sentences_and_keeps_its_paragraphs(tab):
    text = "\n one two. three four!\n\n\tfive? six\n"
    tab.server.gate = threading.Semaphore(0)
    tab.put(text)
    translation = tab.page.locator("#translation")
    for part in (
        "\n two.′ one′",
        "\n two.′ one′ four!′ three′",
        "\n two.′ one′ four!′ three′\n\n\tfive?′",
    ):
        tab.server.gate.release()
        # What has a line end is compared as it is, without white space made one.
        expect(tab, "#translation", part)
        assert translation.text_content() == part
        assert translation.get_attribute("aria-busy") == "true"
    tab.server.gate.release()
    tab.finish()
    expected = "\n two.′ one′ four!′ three′\n\n\tfive?′ six′\n"
    assert translation.text_content() == expected
    assert translation.get_attribute("aria-busy") == "false"
    assert translation.get_attribute("aria-live") == "polite"
    assert translation.get_attribute("lang") == "en"
    assert translation.get_attribute("dir") == "auto"
    assert tab.page.locator("#source").get_attribute("lang") == "de"
    assert tab.page.locator("#source").input_value() == text
    [request] = streamed(tab.server)
    messages.TranslateRequest.model_validate(request)
    assert request == {
        "model": "first",
        "source": "de",
        "target": "en",
        "beam_size": 4,
        "n_best": 3,
        "text": text,
        "alignment": True,
        "stream": True,
    }


def test_what_is_typed_is_translated_and_an_older_request_aborted(tab):
    tab.server.gate = threading.Semaphore(0)
    source = tab.page.locator("#source")
    source.press_sequentially("one")
    expect(tab, "#progress", "Translating…")
    source.press_sequentially(" two")
    tab.page.wait_for_timeout(50)
    # Letters in a row are one request.
    expect(tab, "#progress", "Translating…")
    tab.server.gate.release(9)
    tab.finish()
    assert [request["text"] for request in streamed(tab.server)] == ["one", "one two"]
    assert tab.server.left == ["one"]
    assert tab.page.locator("#translation").text_content() == "two′ one′"
    # Nothing comes by itself when one does not want it.
    tab.page.locator("#settings summary").click()
    tab.page.locator("#while-typing").uncheck()
    source.press_sequentially(" three")
    tab.page.wait_for_timeout(450)
    assert len(streamed(tab.server)) == 2
    tab.page.locator("#translate").click()
    expect(tab, "#translation", "three′ two′ one′")
    tab.page.locator("#while-typing").check()


def check_marks(tab):
    """Compare the marked words, by pointer, keys and caret, with the server's."""
    tab.translate("😀 one in-two 👍🏽. three four.")
    tab.hover("#translation", "two′")
    assert tab.marked() == (["in-two"], ["two′"])
    expect(tab, "#reading", re.compile("“\u2068two′\u2069” translates “\u2068in-two"))
    tab.hover("#mirror", "in-two")
    assert tab.marked() == (["in-two"], ["two′", "in′"])
    tab.hover("#mirror", "four.")
    assert tab.marked() == (["four."], ["four.′"])
    tab.page.mouse.move(0, 0)
    # The caret is a pointer too.
    caret = "(node, place) => node.setSelectionRange(place, place)"
    tab.page.locator("#source").evaluate(caret, 4)
    expect(tab, "#mirror .marked", "one")
    assert tab.marked() == (["one"], ["one′"])
    tab.page.keyboard.press("Escape")
    assert tab.marked() == ([], [])


def test_words_that_belong_together_are_marked(tab):
    check_marks(tab)
    # The mirror's words lie where the text has them: at a caret's place.
    drawn = tab.page.locator("#mirror").text_content()
    assert drawn == tab.page.locator("#source").input_value()
    tab.page.locator("#translation [tabindex='0']").focus()
    walked = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "End", "Home"):
        tab.page.keyboard.press(key)
        walked.append(tab.marked())
    assert walked == [
        (["in-two"], ["two′"]),
        (["in-two"], ["in′"]),
        (["four."], ["four.′"]),
        (["👍🏽."], ["👍🏽.′"]),
        (["three"], ["three′"]),
        (["👍🏽."], ["👍🏽.′"]),
    ]
    # One stop of the Tab key, however many words.
    assert tab.page.locator("#translation [tabindex='0']").count() == 1
    tab.page.keyboard.press("Tab")
    assert tab.marked() == ([], [])
    pairs = tab.page.locator("#pairs li").all_text_contents()
    _, alignment = translate_sentence("😀 one in-two 👍🏽.")
    assert len(pairs) == len(alignment) == 5
    assert pairs[:3] == ["👍🏽. – 👍🏽.′", "in-two – two′", "in-two – in′"]


def test_the_selected_sentence_has_its_translations_and_a_link(tab):
    tab.translate("one two. nine ten. five")
    page = tab.page
    rows = page.locator("#hypotheses li")
    # The caret is behind the last sentence.
    expect(tab, "#sentence-title", "Sentence 3 of 3")
    page.locator("#previous").click()
    expect(tab, "#sentence-title", "Sentence 2 of 3")
    expect(tab, "#sentence-text", "nine ten.")
    expect(tab, "#hypotheses li:nth-child(3)", "ten.′ nine′**score −1.00")
    assert rows.all_text_contents() == [
        "ten.′ nine′score −0.50",
        "ten.′ nine′*score −0.75",
        "ten.′ nine′**score −1.00",
    ]
    assert "current" in page.locator("#mirror .sentence").nth(1).get_attribute("class")
    asked = [request["text"] for request in tab.server.requests]
    assert asked[0] == "one two. nine ten. five" and "nine ten." in asked
    page.locator("#next").click()
    page.locator("#previous").click()
    expect(tab, "#hypotheses li:nth-child(3)", re.compile("ten"))
    # A sentence is asked about once.
    page.wait_for_timeout(350)
    texts = [request["text"] for request in tab.server.requests]
    assert texts.count("nine ten.") == 1
    link = urllib.parse.urlsplit(page.locator("#attention").get_attribute("href"))
    assert link.path == "/v1/page"
    assert dict(urllib.parse.parse_qsl(link.query)) == {
        "text": "nine ten.",
        "model": "first",
        "source": "de",
        "target": "en",
    }
    # Of a text of one sentence the answer has them already.
    tab.server.requests.clear()
    tab.translate("six seven")
    expect(tab, "#sentence-title", "Sentence")
    assert rows.all_text_contents()[2] == "seven′ six′**score −1.00"
    page.wait_for_timeout(350)
    assert len(tab.server.requests) == 1


def test_languages_models_and_the_search_are_chosen(tab):
    page = tab.page
    assert page.locator("#model").input_value() == "first"
    tab.translate("one two")
    page.locator("#swap").click()
    tab.finish()
    # The translation is the text now.
    expect(tab, "#translation", "one′′ two′′")
    assert page.locator("#source").input_value() == "two′ one′"
    assert page.locator("#model").input_value() == "second"
    request = streamed(tab.server)[-1]
    assert (request["source"], request["target"]) == ("en", "de")
    assert (request["model"], request["beam_size"]) == ("second", 2)
    page.locator("#target-language").select_option("ar")
    assert page.locator("#swap").is_disabled()
    tab.finish()
    assert page.locator("#translation").get_attribute("lang") == "ar"
    page.locator("#source-language").select_option("de")
    page.locator("#settings summary").click()
    assert page.locator("#beam-size option").all_text_contents() == ["4", "1"]
    page.locator("#beam-size").select_option("1")
    assert page.locator("#n-best option").all_text_contents() == ["1"]
    page.locator("#length-penalty").fill("2.5")
    page.locator("#length-penalty").blur()
    page.locator("#translate").click()
    expect(tab, "#search-alert", re.compile("from 0 to 2; it is 2.50"))
    number = len(streamed(tab.server))
    page.locator("#length-penalty").fill("1.5")
    page.locator("#length-penalty").blur()
    page.locator("#translate").click()
    tab.finish()
    [request] = streamed(tab.server)[number:]
    assert (request["beam_size"], request["length_penalty"]) == (1, 1.5)
    assert page.locator("#search-alert").is_hidden()
    page.locator("#length-penalty").fill("")
    page.locator("#beam-size").select_option("4")
    page.locator("#n-best").select_option("3")


def test_characters_are_counted_as_the_server_counts_them(tab):
    most = word_server.MODELS["limits"]["characters"]
    tab.translate("😀" * 3)
    expect(tab, "#count", "3 / 1,500 characters")
    tab.server.requests.clear()
    tab.put("😀" * (most + 1))
    expect(tab, "#text-alert", re.compile("1,501 characters; .* at most 1,500"))
    assert tab.page.locator("#source").get_attribute("aria-invalid") == "true"
    tab.page.wait_for_timeout(500)
    assert tab.server.requests == []
    tab.page.locator("#clear").click()
    assert tab.page.locator("#text-alert").is_hidden()
    assert tab.page.evaluate("document.activeElement.id") == "source"


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


def check_is_text(tab):
    """Check that no text has become an element."""
    assert tab.page.locator("img").count() == 1
    assert tab.page.locator("script").count() == 1
    assert tab.page.locator("#translation :not(span)").count() == 0


BODY = {"error": {"message": "<img src=x onerror=alert(5)>", "field": None}}


@pytest.mark.parametrize(
    ("refusal", "alert", "message"),
    [
        ((422, {"error": {"message": "it is odd", "field": "text"}}, {}), "text", "it"),
        (
            (422, {"error": {"message": "beam_size is 9", "field": "beam_size"}}, {}),
            "search",
            "Beam_size is 9.",
        ),
        ((413, {}, {}), "text", "The text is too long for this server."),
        ((500, BODY, {}), "translation", "<img src=x onerror=alert(5)>."),
        ((504, "nonsense", {}), "translation", "The translation took too long."),
        ((503, {}, {"Retry-After": "7200"}), "translation", "The server is busy."),
        ((404, BODY, {"Content-Type": "x/y"}), "translation", "<img src=x"),
    ],
)
def test_a_refusal_is_told_where_it_belongs(tab, refusal, alert, message):
    tab.server.refusals = [refusal]
    tab.put("one two")
    node = tab.page.locator(f"#{alert}-alert")
    node.wait_for()
    assert message.lower() in node.text_content().lower()
    assert node.get_attribute("role") == "alert"
    assert tab.page.locator("[role=alert]:visible").count() == 1
    check_is_text(tab)
    # The next answer takes it away.
    assert tab.translate("one two three") == "three′ two′ one′"
    assert tab.page.locator("[role=alert]:visible").count() == 0


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (b"", "The answer broke off."),
        (b"event: done\r\ndata: {nonsense\r\n\r\n", "The answer broke off."),
        (b'event: error\ndata: {"error": {"message": "too late"}}\n\n', "Too late."),
    ],
)
def test_a_stream_that_breaks_off_is_told(tab, ending, message):
    tab.server.endings = [ending]
    tab.put("one. two.")
    expect(tab, "#translation-alert", re.compile(re.escape(message)))
    # What has come stays; more can be asked for.
    assert tab.page.locator("#translation").text_content() == "one.′"
    assert tab.page.locator("#copy").is_disabled()
    tab.page.locator("#retry").click()
    tab.finish()
    assert tab.page.locator("#translation-alert").is_hidden()


def test_a_busy_server_is_asked_once_more_after_its_time(tab):
    busy = (503, {"error": {"message": "busy"}}, {"Retry-After": "0.2"})
    tab.server.refusals = [busy]
    assert tab.translate("one two") == "two′ one′"
    assert len(streamed(tab.server)) == 2
    tab.server.refusals = [busy, busy]
    tab.put("one two three")
    expect(tab, "#translation-alert", "Busy.")
    assert len(streamed(tab.server)) == 4


def test_a_network_that_is_away_is_told_and_its_return_seen(tab):
    tab.page.context.set_offline(True)
    tab.put("one two")
    expect(tab, "#translation-alert", re.compile("cannot be reached"))
    tab.page.context.set_offline(False)
    tab.finish()
    expect(tab, "#translation", "two′ one′")
    assert tab.page.locator("#translation-alert").is_hidden()


def test_a_server_that_needs_a_key_gets_it_from_this_tab_alone(open_tab):
    with WordServer(root_path="/below/a proxy".replace(" ", "-")) as server:
        server.key = "a-key-of-24-characters-!"
        tab = open_tab(server)
        expect(tab, "#key-alert", "This server needs an API key.")
        page = tab.page
        page.get_by_label("API key").fill("another")
        page.keyboard.press("Enter")
        expect(tab, "#key-alert", "This server needs a key.")
        page.get_by_label("API key").fill(server.key)
        page.keyboard.press("Enter")
        page.locator("#key-alert").wait_for(state="hidden")
        assert tab.translate("one two") == "two′ one′"
        with page.expect_download() as download:
            page.locator("#attention").click()
        assert download.value.suggested_filename == "attention.html"
        page.reload()
        assert tab.translate("three") == "three′"
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        # Below a proxy's path every address is below it too.
        addresses = [url for url in tab.requests if not url.startswith("blob:")]
        assert all(url.startswith(server.address) for url in addresses)
        assert server.key not in "".join(tab.requests)


def test_a_server_that_starts_or_ends_says_so(open_tab):
    with WordServer() as server:
        server.status = "starting"
        tab = open_tab(server, has_clock=True)
        clock = tab.page.clock
        expect(tab, "#server-state", re.compile("is starting"))
        tab.page.locator("#source").fill("one two")
        server.status = "ready"
        clock.fast_forward(2000)
        # What was typed meanwhile is translated.
        tab.page.locator("#server-state").wait_for(state="hidden")
        tab.page.locator("#source-language:enabled").wait_for()
        clock.fast_forward(500)
        tab.finish()
        server.status = "draining"
        tab.put("three")
        expect(tab, "#progress", "The server is busy: trying again in 1 s")
        clock.fast_forward(1000)
        expect(tab, "#server-state", re.compile("is shutting down"))
        server.status = "ready"
        clock.fast_forward(2000)
        expect(tab, "#translation", "three′")


def test_the_service_itself_answers_the_page(open_tab):
    engine = ShoutingEngine(**{"data.target_locale": "de"})
    key = "a-key-of-24-characters-!"
    service = shouting.service_of(engine, root_path="/below", keys=Keys([key]))
    with sockets.served(service) as port:
        address = f"http://127.0.0.1:{port}/below/"
        tab = open_tab(types.SimpleNamespace(address=address))
        page = tab.page
        page.get_by_label("API key").fill(key)
        page.keyboard.press("Enter")
        page.locator("#key-alert").wait_for(state="hidden")
        assert tab.translate("😀 a b. c d\n\ne f\n") == "😀 A B. C D\n\nE F\n"
        tab.hover("#translation", "B.")
        assert tab.marked() == (["b."], ["B."])
        tab.hover("#mirror", "f")
        assert tab.marked() == (["f"], ["F"])
        page.locator("#previous").click()
        expect(tab, "#hypotheses li:nth-child(2)", "😀 A B. C D!score −2.00")
        most = shouting.LIMITS.characters
        expect(tab, "#count", f"16 / {most} characters")
        # A client that asks for something else leaves its place to others.
        engine.gate = asyncio.Event()
        tab.put("a")
        expect(tab, "#progress", "Translating…")
        sockets.wait_until(lambda: engine.lines[-1] == "a")
        tab.put("")
        sockets.wait_until(lambda: engine.cancelled == 1)
        engine.gate.set()
        engine.error = ValueError("it is <b>too</b> long")
        tab.put("a b")
        expect(tab, "#translation-alert", "It is <b>too</b> long.")
        assert all(url.startswith(address) for url in tab.requests)
        failures = "Failed to load resource"
        assert [m for m in tab.messages if not m.startswith(failures)] == []


def test_everything_is_reached_by_tab_and_named(tab):
    tab.translate("one two. three. four.")
    page = tab.page
    page.locator("#settings summary").click()
    # From the middle one goes to both sentences beside it.
    page.locator("#translation .word", has_text="three").focus()
    name = "(node) => node.id || node.classList[0] || node.textContent"
    controls = page.evaluate(
        f"""() => [...document.querySelectorAll(
            "a, button, select, input, textarea, summary, [tabindex='0']")]
            .filter(node => node.checkVisibility() && !node.disabled).map({name})"""
    )
    page.locator(".skip").focus()
    reached, rings = [], []
    for _ in controls:
        reached.append(page.evaluate(f"({name})(document.activeElement)"))
        rings.append(
            page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        )
        page.keyboard.press("Tab")
    assert reached == controls
    # The script's own focus on the first has no ring.
    assert set(rings[1:]) == {"solid"}
    snapshot = page.locator("body").aria_snapshot()
    for part in (
        '- textbox "Text"',
        '- group "Translation": two.′ one′ three.′ four.′',
        '- combobox "From"',
        '- combobox "To"',
        '- combobox "Model"',
        '- button "Swap the languages"',
        '- button "Copy"',
        '- heading "Sentence 2 of 3"',
        '- link "Where the model looks (opens a new tab)"',
        '- spinbutton "Length penalty"',
        '- checkbox "Translate while typing" [checked]',
    ):
        assert part in snapshot, snapshot


def test_texts_are_read_in_light_and_dark_and_on_a_phone(tab, open_tab, server):
    phone = open_tab(server, width=360)
    # The mirror's text stands for the text that lies on it.
    show_mirror = "node => { node.style.color = 'inherit'; }"
    grounds = set()
    for device in (tab, phone):
        device.translate("one two. " + HOSTILE[-1])
        device.page.locator("#settings summary").click()
        device.page.locator("#mirror").evaluate(show_mirror)
        device.page.locator("#translation .word").first.focus()
        for id_ in ("server-alert", "key-form", "key-alert", "server-state"):
            show = "node => { node.hidden = false; node.append('What is wrong.'); }"
            device.page.locator(f"#{id_}").evaluate(show)
        for scheme in ("light", "dark"):
            device.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert device.page.evaluate(chromium.LOW_CONTRAST) == [], scheme
            grounds.add(
                device.page.evaluate("getComputedStyle(document.body).backgroundColor")
            )
            duration = "getComputedStyle(document.querySelector('.word'))"
            assert device.page.evaluate(f"{duration}.transitionDuration") == "0s"
    assert len(grounds) == 2
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 360
    cut = "[source, translation, hypotheses].filter(n => n.scrollWidth > n.clientWidth)"
    assert phone.page.evaluate(cut) == []
    sides = [phone.page.locator(".pane").nth(n).bounding_box() for n in (0, 1)]
    assert sides[1]["y"] >= sides[0]["y"] + sides[0]["height"] - 1
    sides = [tab.page.locator(".pane").nth(n).bounding_box() for n in (0, 1)]
    assert sides[1]["y"] == sides[0]["y"] and sides[1]["x"] > sides[0]["x"]
    tab.page.reload()


def test_a_translation_is_copied(tab):
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = tab.translate("one two.\n\nthree 😀")
    tab.page.locator("#copy").click()
    expect(tab, "#progress", "Copied")
    assert tab.page.evaluate("navigator.clipboard.readText()") == text


@pytest.mark.parametrize(
    ("name", "file", "sound", "mistaken"),
    [
        (
            "halves of characters counted",
            "texts.js",
            "place += character.length;",
            "place += 1;",
        ),
        (
            "the last word alone",
            "panes.js",
            "of linkedWords(sentences[index], side, word)) {",
            "of linkedWords(sentences[index], side, word).slice(0, 1)) {",
        ),
        (
            "the words of the first sentence",
            "panes.js",
            "linkedWords(sentences[index]",
            "linkedWords(sentences[0]",
        ),
        (
            "a mirror that is another text",
            "panes.js",
            "text.slice(sentence.end)",
            "text",
        ),
    ],
)
def test_a_mistake_in_the_marks_is_seen(mistaken_tab, name, file, sound, mistaken):
    mistaken_tab.server.edits = {file: (sound, mistaken)}
    mistaken_tab.page.goto(mistaken_tab.server.address)
    with pytest.raises(Exception):  # noqa: B017 (whatever the mistake breaks)
        check_marks(mistaken_tab)
        text = mistaken_tab.page.locator("#mirror").text_content()
        assert text == mistaken_tab.page.locator("#source").input_value(), name


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


def test_the_server_of_words_speaks_as_the_service():
    result = translate("one-two three.\n4", n_best=2)
    answer = {"model": "", "source": "", "target": "", "results": [result]}
    for message, value in (
        (messages.TranslateAnswer, answer),
        (messages.ModelsAnswer, word_server.MODELS),
        (messages.LanguagesAnswer, word_server.LANGUAGES),
    ):
        message.model_validate_json(json.dumps(value))


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
