"""Debian's chromium for the tests of pages, and what it is asked about colours."""

import contextlib
import shutil

import pytest


@contextlib.contextmanager
def launch():
    """Yield the browser; skips the test where there is none."""
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
