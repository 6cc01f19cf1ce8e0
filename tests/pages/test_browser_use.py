"""Keys, links, files, colours and foreign texts of a page in a real browser."""

import dataclasses
import itertools
import pathlib
import re
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tests.chromium import LOW_CONTRAST
from tests.pages import samples
from tests.pages.tabs import HEADS, LAYERS, MISPLACED, PAGE
from vaswani_jax.pages import contents, html

pytestmark = pytest.mark.browser


HOSTILE = "</script><img src=x onerror=alert(1)>"


SVG = "{http://www.w3.org/2000/svg}"


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


def test_a_drawing_that_is_too_large_is_saved_smaller(open_tab):
    page = open_tab(PAGE, "v=matrix").page
    page.evaluate(
        """() => {
            const original = copyDrawing;
            copyDrawing = () => {
                const copy = original();
                copy.setAttribute("width", 40_000);
                return copy;
            };
        }"""
    )
    with page.expect_download() as download:
        page.click("#save-png")
    data = pathlib.Path(download.value.path()).read_bytes()
    [width] = struct.unpack(">I", data[16:20])
    assert 30_000 < width <= 32_767
    page.evaluate(
        "() => { HTMLCanvasElement.prototype.toBlob = (done) => done(null); }"
    )
    page.click("#save-png")
    page.wait_for_selector("#alarm:not([hidden])")
    assert "save it as SVG" in page.locator("#alarm").inner_text()


def test_a_refused_address_is_written_later_and_the_page_draws(open_tab):
    page = open_tab(PAGE, "a=encoder&l=2&h=1").page
    page.evaluate(
        """() => { history.replaceState = () => {
            throw new DOMException("too many", "SecurityError"); }; }"""
    )
    page.fill("#threshold", "0.3")
    assert page.locator("#threshold-value").inner_text() == "0.30"
    page.evaluate("() => { delete history.replaceState; }")
    for _ in range(100):
        if "min=0.3" in page.evaluate("location.hash"):
            break
        page.wait_for_timeout(100)
    assert "min=0.3" in page.evaluate("location.hash")


def test_the_direction_of_a_text_is_not_found_again_for_each_line(tab):
    tab.show("a=encoder&min=0&n=10")
    calls, lines = tab.page.evaluate(
        """() => {
            const original = isRightToLeft;
            let calls = 0;
            isRightToLeft = (tokens) => { calls += 1; return original(tokens); };
            drawChoice();
            isRightToLeft = original;
            return [calls, document.querySelectorAll("line.weight").length];
        }"""
    )
    assert calls < lines


def test_without_a_drawing_nothing_is_saved_and_the_page_stays_dark(tab):
    tab.show("v=matrix&h=none&theme=dark")
    page = tab.page
    number = len(tab.messages)
    assert "Switch on a head" in page.locator("#caption").inner_text()
    assert page.locator("#drawing > *").count() == 0
    for name in ("save-svg", "save-png"):
        assert page.locator(f"#{name}").is_disabled()
    # A drawing that cannot be copied changes no colour either.
    page.evaluate("() => { try { copyDrawing(); } catch {} }")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("html").get_attribute("class") in (None, "")
    assert tab.messages[number:] == []
    tab.show("v=matrix&h=1")
    assert page.locator("#save-svg").is_enabled()
    assert page.locator("#save-png").is_enabled()


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
    assert len(text) > 12_000_000
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
