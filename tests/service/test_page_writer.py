"""A page is one sentence's, and few wait for theirs."""

import asyncio
import threading
import time

import pytest

from tests import settings
from tests.pages import samples
from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.pages import build
from vaswani_jax.service import page_writer
from vaswani_jax.service.limits import OverloadedError, TooLateError
from vaswani_jax.service.models import Models, ServedModel

PAGE = page_writer.WrittenPage("", "")
SERVED = ServedModel(ShoutingEngine())


def write(writer, *, seconds=60.0):
    return writer.write(SERVED, "a b", target=None, deadline=time.monotonic() + seconds)


def test_the_policy_is_that_of_the_page(monkeypatch):
    monkeypatch.setattr(build, "make_page", lambda *call, **options: samples.page())
    page = asyncio.run(write(page_writer.PageWriter()))
    assert page.text.startswith("<!doctype html>")
    policy = page.policy.removesuffix("; frame-ancestors 'none'")
    assert policy in page.text


def test_a_server_prepares_the_page_of_each_model_before_it_answers(monkeypatch):
    lines = []

    def make_page(translator, page_lines, **options):
        lines.append(page_lines)
        if len(lines) > 1:
            raise ValueError("models of an ensemble differ")
        return samples.page()

    monkeypatch.setattr(build, "make_page", make_page)
    engine = ShoutingEngine(name="two", **settings.TWO_TARGETS)
    states = []

    def prepare(served):
        states.append(served.engine.is_running)
        page_writer.prepare(served)

    served = ServedModel(engine)
    models = Models([served, SERVED], limits=shouting.LIMITS, prepare=prepare)
    asyncio.run(models.start())
    assert lines == [["<2de> ."], ["."]]
    assert states == [False, False]
    assert engine.is_running


def test_only_some_may_wait(monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(page_writer, "_write", lambda *call: gate.wait(60) and PAGE)
    writer = page_writer.PageWriter()

    async def run():
        waiting = [asyncio.ensure_future(write(writer)) for _ in range(4)]
        await asyncio.sleep(0.01)
        with pytest.raises(OverloadedError):
            await write(writer)
        # A client that leaves makes room, unless its page is written already.
        waiting[-1].cancel()
        await asyncio.sleep(0.01)
        late = asyncio.ensure_future(write(writer, seconds=0.02))
        with pytest.raises(TooLateError):
            await late
        gate.set()
        await asyncio.gather(*waiting[:-1])

    asyncio.run(run())
