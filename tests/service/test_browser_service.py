"""The page of `vaswani serve` in a real browser: how it is used."""

import asyncio
import json
import re
import threading
import types
import urllib.parse

import pytest

from tests.service import shouting, sockets, word_server
from tests.service.browser_tab import expect, streamed
from tests.service.shouting import ShoutingEngine
from tests.service.word_server import translate, translate_sentence
from vaswani_jax.service import messages
from vaswani_jax.service.keys import Keys

pytestmark = pytest.mark.browser


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


def test_the_words_of_an_older_text_are_not_marked(tab):
    tab.page.locator("#settings summary").click()
    tab.page.locator("#while-typing").uncheck()
    tab.translate("one two. three four.")
    tab.messages.clear()
    tab.page.locator("#source").evaluate(
        """node => {
            node.value = "five. six.";
            node.dispatchEvent(new InputEvent("input", {bubbles: true}));
        }"""
    )
    words = tab.page.locator("#translation .word")
    for word in ("one′", "three′"):
        tab.hover("#translation", word)
        assert tab.marked() == ([], [])
    words.last.focus()
    for key in ("ArrowLeft", "ArrowUp", "Home"):
        tab.page.keyboard.press(key)
        assert tab.marked() == ([], [])
    assert words.count() == 4
    # What is selected follows the caret in the next text.
    tab.translate("five. six.")
    expect(tab, "#sentence-title", "Sentence 2 of 2")
    source = tab.page.locator("#source")
    source.evaluate("node => node.setSelectionRange(0, 0)")
    expect(tab, "#sentence-title", "Sentence 1 of 2")
    assert tab.messages == []
    tab.page.locator("#while-typing").check()


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
    # Three are more than this beam: the most that it can find.
    assert page.locator("#n-best").input_value() == "2"
    assert request["n_best"] == 2
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


def test_other_translations_keep_the_code_of_an_earlier_sentence(open_tab):
    engine = ShoutingEngine(**{"data.target_locale": "de"})
    with sockets.served(shouting.service_of(engine)) as port:
        address = f"http://127.0.0.1:{port}/"
        tab = open_tab(types.SimpleNamespace(address=address))
        tab.translate(">>fra<< A dog barks. It runs.")
        expect(tab, "#sentence-title", "Sentence 2 of 2")
        expect(tab, "#sentence-text", "It runs.")
        expect(tab, "#hypotheses li:nth-child(2)", ">>FRA<< IT RUNS.!score −2.00")
        link = urllib.parse.urlsplit(
            tab.page.locator("#attention").get_attribute("href")
        )
        assert urllib.parse.parse_qs(link.query)["text"] == [">>fra<< It runs."]
        assert tab.messages == []


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


def test_the_server_of_words_speaks_as_the_service():
    result = translate("one-two three.\n4", n_best=2)
    answer = {"model": "", "source": "", "target": "", "results": [result]}
    for message, value in (
        (messages.TranslateAnswer, answer),
        (messages.ModelsAnswer, word_server.MODELS),
        (messages.LanguagesAnswer, word_server.LANGUAGES),
    ):
        message.model_validate_json(json.dumps(value))
