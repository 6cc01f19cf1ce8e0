"""A browser, and tabs in it that are closed at the end."""

import pytest

from tests import chromium
from tests.pages.tabs import PAGE, Tab
from vaswani_jax.pages import html


@pytest.fixture(scope="module")
def browser():
    """Yield Debian's chromium, whose tabs have no network."""
    with chromium.launch() as browser:
        yield browser


@pytest.fixture(scope="module")
def open_tab(browser, tmp_path_factory):
    """Yield a function that opens a page; all tabs are closed at the end."""
    directory = tmp_path_factory.mktemp("pages")
    tabs = []

    def open_tab(page, fragment="", *, width=1200, is_timed=False, **options):
        text = page if isinstance(page, str) else html.render(page)
        path = directory / f"{len(tabs)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, offline=True, **options
        )
        tab = Tab(context.new_page(), path.as_uri(), [], [])
        if is_timed:
            tab.devtools = context.new_cdp_session(tab.page)
            tab.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.page.set_default_timeout(10_000)
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        tab.page.on("console", lambda message: tab.messages.append(message.text))
        tab.page.on("pageerror", lambda error: tab.messages.append(str(error)))
        tab.page.goto(f"{tab.address}#{fragment}")
        tabs.append(tab)
        return tab

    yield open_tab
    for tab in tabs:
        tab.page.context.close()


@pytest.fixture(scope="module")
def tab(open_tab):
    return open_tab(PAGE)
