"""The sentences of all texts of a request go to the engine together."""

import asyncio
import time

from tests.service.shouting import ShoutingEngine
from vaswani_jax.service import translations
from vaswani_jax.service.limits import Search
from vaswani_jax.service.models import ServedModel


def job_of(engine, texts):
    served = ServedModel(engine)
    return translations.TranslationJob(
        served=served,
        direction=served.directions[0],
        texts=texts,
        search=Search(beam_size=2, n_best=1, length_penalty=0.6),
        prefixes=[""] * len(texts),
        has_alignment=False,
        deadline=time.monotonic() + 10,
    )


def test_one_call_has_all_sentences():
    engine = ShoutingEngine()
    texts = ["A dog barks. It runs.", "", "One\ntwo"]
    results = asyncio.run(translations.translate(job_of(engine, texts)))
    assert engine.lines == ["A dog barks.", "It runs.", "One", "two"]
    assert len(engine.searches) == 1
    assert [len(result.sentences) for result in results] == [2, 0, 2]


def test_a_stream_that_is_left_cancels_what_it_waits_for():
    engine = ShoutingEngine()
    engine.gate.clear()

    async def run():
        events = translations.stream(job_of(engine, ["A dog barks. It runs."]))
        first = asyncio.ensure_future(anext(events))
        while len(engine.lines) < 2:
            await asyncio.sleep(0.001)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert engine.cancelled == 2

    asyncio.run(run())
