"""The page of `vaswani serve` can be used by keyboard, in the dark and on a phone."""

import pytest

from tests import chromium
from tests.service.browser_tab import HOSTILE

pytestmark = pytest.mark.browser


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
