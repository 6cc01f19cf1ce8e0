"""Clients of servers: of a model that shouts, and of pages in a browser."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests import chromium
from tests.service import shouting
from tests.service.browser_tab import Tab
from tests.service.word_server import WordServer


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """A client of one model, from English to German."""
    with shouting.client_of() as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    """Yield a browser for a module: while it is open, asyncio.run cannot be called."""
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
