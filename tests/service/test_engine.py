"""An engine answers as its translator does, whatever shares a batch and when."""

import asyncio
import time

import pytest

from vaswani_jax.inference.line_translator import Hypothesis
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service.engine import Engine
from vaswani_jax.service.limits import Limits, OverloadedError, Search, TooLateError

SEARCH = Search(beam_size=4, n_best=1, length_penalty=0.6)


class Upper(Translator):
    """Translates to upper case."""

    def __init__(self):
        pass

    def hypotheses(self, lines, **search):
        return [[Hypothesis(line.upper(), -1.0, (), ())] for line in lines]


def engine_of(translator) -> Engine:
    return Engine(translator, limits=Limits(), name="upper")


def test_lines_come_back_in_their_order():
    async def run():
        engine = engine_of(Upper())
        engine.start()
        hypotheses = await engine.translate(["a", "b"], search=SEARCH)
        assert [best.text for [best] in hypotheses] == ["A", "B"]
        await engine.drain()

    asyncio.run(run())


def test_a_draining_engine_refuses():
    async def run():
        engine = engine_of(Upper())
        engine.start()
        await engine.drain()
        with pytest.raises(OverloadedError):
            await engine.translate(["a"], search=SEARCH)

    asyncio.run(run())


def test_what_is_too_late_is_not_searched():
    async def run():
        engine = engine_of(Upper())
        engine.start()
        with pytest.raises(TooLateError):
            await engine.translate(["a"], search=SEARCH, deadline=time.monotonic())

    asyncio.run(run())
