"""The page of `vaswani serve` shows what fails, and goes on."""

import re
import threading
import time

import pytest

from tests.service.browser_tab import check_is_text, expect, streamed
from tests.service.word_server import WordServer

pytestmark = pytest.mark.browser


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
def test_a_refusal_is_shown_where_it_belongs(tab, refusal, alert, message):
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
def test_a_stream_that_breaks_off_is_reported(tab, ending, message):
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


def test_a_network_that_is_away_is_reported_and_its_return_seen(tab):
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


def test_a_ready_server_that_refuses_its_lists_is_asked_after_pauses(open_tab):
    with WordServer() as server:
        server.refused_paths = {"/v1/models"}
        tab = open_tab(server, has_clock=True)
        expect(tab, "#server-alert", "Too many requests.")
        # No pause ends while the clock stands.
        tab.page.clock.pause_at(time.time() + 60)
        count = sum(url.endswith("/v1/models") for url in tab.requests)
        tab.page.wait_for_timeout(500)
        # Those that were on their way, and the one whose pause has ended.
        paths = [url.removeprefix(server.origin) for url in tab.requests]
        assert paths.count("/v1/models") <= count + 2
        server.refused_paths = set()
        tab.page.clock.fast_forward(10_000)
        tab.page.clock.resume()
        tab.page.locator("#source-language:enabled").wait_for()
        assert tab.page.locator("#server-alert").is_hidden()


def test_the_translations_of_an_older_text_are_not_shown_below_another(open_tab):
    with WordServer() as server:
        server.answer_gate = threading.Semaphore(0)
        tab = open_tab(server)
        tab.page.locator("#source-language:enabled").wait_for()
        with tab.page.expect_request(
            lambda request: '"text":"three four."' in (request.post_data or "")
        ):
            tab.translate("one two. three four.")
        # Without a list of its own, the new text sends no request for one.
        tab.page.locator("#settings summary").click()
        tab.page.locator("#n-best").select_option("1")
        assert tab.translate("five six. seven eight.") == "six.′ five′ eight.′ seven′"
        server.answer_gate.release(9)
        tab.page.wait_for_timeout(300)
        rows = tab.page.locator("#hypotheses li").all_text_contents()
        assert rows == ["eight.′ seven′score −0.50"]
