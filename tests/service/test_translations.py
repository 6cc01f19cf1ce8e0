"""The sentences of all texts of a request go to the engine together."""

import asyncio
import contextlib
import dataclasses
import gc
import time

import pytest

from tests import settings
from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.inference.results import Hypothesis, Output
from vaswani_jax.service import texts, translations
from vaswani_jax.service.limits import Search, TooLateError
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


LONG_TEXT = "A dog barks. It runs.\n" * 100
NUM_SENTENCES = 200


def test_a_stream_costs_the_same_for_each_sentence(monkeypatch):
    counts = []
    add = texts.Joining.add

    def count(*call, **options):
        counts.append(1)
        return add(*call, **options)

    monkeypatch.setattr(texts.Joining, "add", count)
    limits = dataclasses.replace(shouting.LIMITS, queue=NUM_SENTENCES)
    job = job_of(ShoutingEngine(limits=limits), [LONG_TEXT])

    async def run():
        return [event async for event in translations.stream(job)]

    assert len(asyncio.run(run())) == NUM_SENTENCES + 1
    # Each sentence is joined once for its event, and once for the whole answer.
    assert len(counts) == 2 * NUM_SENTENCES


def test_others_have_a_turn_between_the_sentences_of_a_stream():
    limits = dataclasses.replace(shouting.LIMITS, queue=NUM_SENTENCES)
    job = job_of(ShoutingEngine(limits=limits), [LONG_TEXT])
    num_turns = 0

    async def take_turns():
        nonlocal num_turns
        while True:
            await asyncio.sleep(0)
            num_turns += 1

    async def run():
        other = asyncio.create_task(take_turns())
        turns = []
        async for _ in translations.stream(job):
            turns.append(num_turns)
        other.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await other
        return turns

    turns = asyncio.run(run())
    assert len(set(turns)) == NUM_SENTENCES + 1


def test_a_streams_sentences_share_one_admission_and_have_turns_in_order():
    engine = ShoutingEngine()
    calls = []
    translate, attend = engine.translate, engine.attend

    async def note_translate(lines, **options):
        calls.append((lines[0], options["turn"], options["admission"]))
        return await translate(lines, **options)

    async def note_attend(lines, targets, **options):
        calls.append((lines[0], options["turn"], options["admission"]))
        return await attend(lines, targets, **options)

    engine.translate, engine.attend = note_translate, note_attend
    job = dataclasses.replace(
        job_of(engine, ["A dog barks. It runs.", "One"]), has_alignment=True
    )

    async def run():
        return [event async for event in translations.stream(job)]

    asyncio.run(run())
    expected = {("A dog barks.", 0), ("It runs.", 1), ("One", 2)}
    assert {call[:2] for call in calls} == expected and len(calls) == 6
    assert len({id(admission) for *_, admission in calls}) == 1


def test_a_language_code_holds_for_all_sentences_that_follow():
    engine = ShoutingEngine()
    text = ">>fra<< A dog barks. It runs.\n>>deu<< One. Two."
    job = dataclasses.replace(job_of(engine, [text]), has_alignment=True)
    [result] = asyncio.run(translations.translate(job))
    lines = [">>fra<< A dog barks.", ">>fra<< It runs.", ">>deu<< One.", ">>deu<< Two."]
    assert engine.lines[:4] == lines
    # The codes that were added are no part of the text.
    sentence = result.sentences[1]
    assert text[sentence.source_begin : sentence.source_end] == "It runs."
    for begin, end, *_ in sentence.alignment:
        assert sentence.source_begin <= begin < end <= sentence.source_end


def test_the_language_code_of_a_sentence_decides_whether_a_space_divides_it():
    engine = ShoutingEngine()
    text = ">>jpn<< A dog. It runs.\n>>fra<< One. Two."
    job = job_of(engine, [text])
    [result] = asyncio.run(translations.translate(job))
    # The engine repeats the codes, as no model does.
    [translation] = result.translations
    assert translation.text == (
        ">>JPN<< A DOG.>>JPN<< IT RUNS.\n>>FRA<< ONE. >>FRA<< TWO."
    )

    async def run():
        return [event async for event in translations.stream(job)]

    *sentences, [streamed] = asyncio.run(run())
    assert streamed == result
    begins = [sentence.target_begin for sentence in sentences]
    assert begins == [entry.target_begin for entry in result.sentences]


def test_the_tag_of_a_corpus_holds_for_all_sentences_that_follow():
    engine = ShoutingEngine(**settings.TAGGED)
    texts = ["<x> A dog barks. It runs.\n>>fra<< One.\n<x> Two. Three.", "Four."]
    job = job_of(engine, texts)
    asyncio.run(translations.translate(job))
    assert engine.lines == [
        *("<x> A dog barks.", "<x> It runs.", ">>fra<< One.", ">>fra<< <x> Two."),
        *(">>fra<< <x> Three.", "Four."),
    ]


def test_a_space_divides_codes_and_tags_from_the_sentences_that_follow():
    engine = ShoutingEngine(**settings.TAGGED)
    texts = ["<x>\nOne. Two.", ">>fra<<\nA dog. It runs.", ">>fra<<<x>\nOne."]
    asyncio.run(translations.translate(job_of(engine, texts)))
    assert engine.lines == [
        *("<x>", "<x> One.", "<x> Two."),
        *(">>fra<<", ">>fra<< A dog.", ">>fra<< It runs."),
        *(">>fra<<<x>", ">>fra<< <x> One."),
    ]


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_first_line_with_text_has_the_prefix(is_stream):
    prefixes = {}

    class Noting(ShoutingEngine):
        def _hypothesis(self, line, prefix, rank):
            prefixes[line] = prefix
            return super()._hypothesis(line, prefix, rank)

    texts = [">>fra<<\nHello. You.", "<x>\n\nOne", "Two", ">>fra<<<x>"]
    job = dataclasses.replace(
        job_of(Noting(**settings.TAGGED), texts), prefixes=["Bon", "Un", "Deux", "Ha"]
    )

    async def run():
        if not is_stream:
            return await translations.translate(job)
        return [event async for event in translations.stream(job)]

    asyncio.run(run())
    assert prefixes == {
        ">>fra<<": "",
        ">>fra<< Hello.": "Bon",
        ">>fra<< You.": "",
        "<x>": "",
        "<x> One": "Un",
        "Two": "Deux",
        ">>fra<<<x>": "Ha",  # No line of this text has words.
    }


def test_the_first_word_after_an_inherited_tag_is_aligned():
    # The engine's vocabulary knows this tag, which is a corpus's here.
    corpus = {**settings.TAGGED["data.corpora"][0], "tag": "<2de>"}
    changes = {"data.user_symbols": "<2de>", "data.corpora": [corpus]}
    engine = ShoutingEngine(**settings.TAGGED | changes)
    text = "<2de>\nab cd"
    job = dataclasses.replace(job_of(engine, [text]), has_alignment=True)
    [result] = asyncio.run(translations.translate(job))
    pairs = result.sentences[1].alignment
    assert [text[begin:end] for begin, end, *_ in pairs] == ["ab", "cd"]


def test_a_sentence_says_that_its_translation_is_cut():
    class Endless(ShoutingEngine):
        def _hypothesis(self, line, prefix, rank):
            ids = (5, 5) if "runs" in line else (5, 2)
            return Hypothesis(line, -1.0, (), (Output((5,), ids, -1.0),))

    job = job_of(Endless(), ["A dog barks. It runs."])
    [result] = asyncio.run(translations.translate(job))
    answers = [entry.model_dump(exclude_unset=True) for entry in result.sentences]
    assert "cut" not in answers[0] and answers[1]["cut"] is True


def test_errors_of_a_stream_that_nobody_awaits_are_not_logged(caplog):
    engine = ShoutingEngine()
    engine.error = TooLateError()
    job = job_of(engine, ["A dog barks. It runs. One."])

    async def run():
        with pytest.raises(TooLateError):
            async for _ in translations.stream(job):
                pass

    asyncio.run(run())
    gc.collect()
    assert not caplog.records
