"""An engine answers as its translator does, whatever shares a batch and when."""

import asyncio
import dataclasses
import gc
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from tests.service import small_models
from vaswani_jax.data import readings
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.results import Hypothesis, PairScore
from vaswani_jax.service.engine import Engine
from vaswani_jax.service.limits import Limits, OverloadedError, Search, TooLateError

SEARCH = Search(beam_size=3, n_best=1, length_penalty=0.5)


def run(
    check: Callable[[Engine, small_models.Reverser], Coroutine[Any, Any, None]],
    *,
    limits: Limits = small_models.LIMITS,
    num_threads: int = 1,
    num_requests: int = 0,
) -> None:
    """Run a check with an engine that reverses lines; it drains at the end.

    Args:
        check: Takes the engine and its model.
        limits: The limits of requests.
        num_threads: How many batches are computed at a time.
        num_requests: How many requests the server has not answered.
    """

    async def main() -> None:
        model = small_models.Reverser(limits=limits)
        engine = Engine(
            small_models.translator(),
            limits=limits,
            name="reverser",
            num_threads=num_threads,
        )
        engine.translator = model
        engine.start(count_requests=lambda: num_requests)
        try:
            await check(engine, model)
        finally:
            model.gate.set()
            await engine.drain()

    asyncio.run(asyncio.wait_for(main(), 10))


async def wait_for_search(model: small_models.Reverser) -> None:
    """Wait until a batch is searched, so that whatever comes has to wait."""
    assert await asyncio.to_thread(model.is_searching.wait, 60)


def texts(hypotheses: Sequence[Sequence[Hypothesis]]) -> list[list[str]]:
    return [[each.text for each in n_best] for n_best in hypotheses]


@dataclasses.dataclass
class Arrival:
    """A request: what it asks, how many turns of the loop after the one before."""

    lines: list[str]
    search: Search
    turns: int
    has_prefix: bool
    glossary: dict[str, str] | None
    is_cancelled: bool


ARRIVALS = strategies.lists(
    strategies.builds(
        Arrival,
        lines=strategies.lists(
            strategies.text("ab c", max_size=40).map(str.strip), max_size=5
        ),
        search=strategies.builds(
            Search,
            beam_size=strategies.just(3),
            n_best=strategies.integers(1, 3),
            length_penalty=strategies.sampled_from([0.0, 0.25, 2.0]),
        ),
        turns=strategies.integers(0, 3),
        has_prefix=strategies.booleans(),
        glossary=strategies.sampled_from([None, {}, {"a": "b", "b c": "d"}]),
        is_cancelled=strategies.booleans(),
    ),
    max_size=12,
)


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(arrivals=ARRIVALS, num_threads=strategies.sampled_from([1, 3]))
def test_each_request_gets_its_own_results(
    arrivals: list[Arrival], num_threads: int
) -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        tasks = []
        for arrival in arrivals:
            for _ in range(arrival.turns):
                await asyncio.sleep(0)
            prefixes = ["h"] * len(arrival.lines) if arrival.has_prefix else None
            coroutine = engine.translate(
                arrival.lines,
                search=arrival.search,
                prefixes=prefixes,
                glossary=arrival.glossary,
            )
            tasks.append(asyncio.create_task(coroutine))
        for task, arrival in zip(tasks, arrivals, strict=True):
            if arrival.is_cancelled:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result, arrival in zip(results, arrivals, strict=True):
            if arrival.is_cancelled and isinstance(result, asyncio.CancelledError):
                continue
            assert not isinstance(result, BaseException), result
            alone = model.hypotheses(
                arrival.lines,
                prefixes=["h"] * len(arrival.lines) if arrival.has_prefix else None,
                glossary=arrival.glossary,
                **dataclasses.asdict(arrival.search),
            )
            assert result == alone
        assert engine.figures().waiting == 0

    limits = dataclasses.replace(small_models.LIMITS, queue=1000)
    run(check, limits=limits, num_threads=num_threads)


def test_a_long_glossary_holds_no_other_request() -> None:
    is_answered = threading.Event()

    async def check(engine: Engine, model: small_models.Reverser) -> None:
        find_phrases = model.find_phrases

        def wait(*arguments: Any, **options: Any) -> Any:
            assert is_answered.wait(5)
            return find_phrases(*arguments, **options)

        model.find_phrases = wait
        slow = asyncio.create_task(
            engine.translate(["a b"], search=SEARCH, glossary={"a": "b"})
        )
        await asyncio.sleep(0)
        await engine.translate(["a b"], search=SEARCH)
        is_answered.set()
        assert texts(await slow)

    run(check)


def test_no_line_waits_until_readings_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(is_known: Callable[[str], bool]) -> dict[str, str]:
        raise AssertionError("readings are found when a line needs them")

    async def check(engine: Engine, model: small_models.Reverser) -> None:
        # The subwords of other tests may have found theirs.
        subwords = Subwords(model.vocabulary.source.model)
        model.vocabulary = Vocabulary.shared(subwords)
        monkeypatch.setattr(model, "programs", list)  # None is compiled.
        engine.warm()
        monkeypatch.setattr(readings, "find_readings", fail)
        hypotheses = await engine.translate(["a\u200e b"], search=SEARCH)
        assert texts(hypotheses) == [["b a"]]

    run(check)


def test_threads_compute_batches_at_the_same_time() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        tasks = []
        for line in ("a b", "c d"):
            model.is_searching.clear()
            tasks.append(asyncio.create_task(engine.translate([line], search=SEARCH)))
            await asyncio.sleep(0)
            await wait_for_search(model)
        assert engine.figures().running == 2
        model.gate.set()
        results = await asyncio.gather(*tasks)
        assert [texts(result) for result in results] == [[["b a"]], [["d c"]]]

    run(check, num_threads=2)


def test_sentences_of_waiting_requests_share_a_batch() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        first = asyncio.create_task(engine.translate(["a"], search=SEARCH))
        await wait_for_search(model)
        others = [
            asyncio.create_task(engine.translate([line], search=SEARCH))
            for line in ("b c", "d e", "f g")
        ]
        await asyncio.sleep(0)
        model.gate.set()
        results = await asyncio.gather(first, *others)
        assert [texts(result) for result in results] == [
            *([["a"]], [["c b"]], [["e d"]], [["g f"]])
        ]
        assert list(map(len, model.batches)) == [1, 3]
        figures = engine.figures()
        assert (figures.batches, figures.sentences, figures.rows) == (2, 4, 16)
        assert figures.waited_seconds > 0
        assert figures.tokens < figures.padded_tokens

    run(check)


PATIENT = dataclasses.replace(small_models.LIMITS, wait_seconds=1000.0)


def test_a_batch_waits_for_all_requests_that_are_read() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        two = [engine.translate([line], search=SEARCH) for line in ("b c", "d e")]
        tasks = list(map(asyncio.create_task, two))
        assert not await asyncio.to_thread(model.is_searching.wait, 0.2)
        await asyncio.gather(*tasks, engine.translate(["f g"], search=SEARCH))
        assert list(map(len, model.batches)) == [3]

    run(check, limits=PATIENT, num_requests=3)


def test_a_batch_waits_for_the_clients_that_have_just_been_answered() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        begun = asyncio.create_task(engine.translate(["a"], search=SEARCH))
        await wait_for_search(model)
        two = [engine.translate([line], search=SEARCH) for line in ("b c", "d e")]
        tasks = list(map(asyncio.create_task, two))
        await asyncio.sleep(0)
        model.gate.set()
        await asyncio.gather(begun, *tasks)
        model.is_searching.clear()
        first = asyncio.create_task(engine.translate(["f g"], search=SEARCH))
        assert not await asyncio.to_thread(model.is_searching.wait, 0.2)
        await asyncio.gather(first, engine.translate(["h a"], search=SEARCH))
        assert list(map(len, model.batches)) == [1, 2, 2]

    run(check, limits=PATIENT)


def test_a_batch_does_not_wait_for_requests_that_are_computed() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        tasks = [
            asyncio.create_task(engine.translate([line], search=SEARCH))
            for line in ("a b", "c d")
        ]
        await wait_for_search(model)
        tasks.append(asyncio.create_task(engine.translate(["e f"], search=SEARCH)))
        while engine.figures().running < 3:
            await asyncio.sleep(0.01)
        model.gate.set()
        await asyncio.gather(*tasks)

    run(check, limits=PATIENT, num_threads=2, num_requests=2)


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        accepted = [asyncio.create_task(engine.translate(["a"], search=SEARCH))]
        await wait_for_search(model)
        for number in (5, 3):
            lines = ["b"] * number
            accepted.append(asyncio.create_task(engine.translate(lines, search=SEARCH)))
        await asyncio.sleep(0)
        assert engine.figures().waiting == 8
        with pytest.raises(OverloadedError) as error:
            await engine.translate(["c"], search=SEARCH)
        assert error.value.retry_seconds >= 1
        assert engine.figures().refused == 1
        model.gate.set()
        assert list(map(len, await asyncio.gather(*accepted))) == [1, 5, 3]
        # An empty queue takes more than it would hold otherwise.
        assert len(await engine.translate(["b"] * 9, search=SEARCH)) == 9

    run(check)


def test_a_request_that_is_cancelled_frees_its_place() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        first = asyncio.create_task(engine.translate(["a"], search=SEARCH))
        await wait_for_search(model)
        second = asyncio.create_task(engine.translate(["b"] * 8, search=SEARCH))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert engine.figures().waiting == 0
        assert engine.figures().cancelled == 8
        model.gate.set()
        await first
        assert len(model.batches) == 1

    run(check)


def test_what_is_too_late_is_not_searched() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        with pytest.raises(TooLateError):
            await engine.translate(["a"], search=SEARCH, deadline=time.monotonic())
        model.gate.clear()
        first = asyncio.create_task(engine.translate(["a"], search=SEARCH))
        await wait_for_search(model)
        batches = len(model.batches)
        with pytest.raises(TooLateError):
            await engine.translate(
                ["b"], search=SEARCH, deadline=time.monotonic() + 0.01
            )
        model.gate.set()
        assert texts(await first) == [["a"]]
        assert len(model.batches) == batches + 1
        assert engine.figures().late >= 1

    run(check)


def test_an_error_fails_the_requests_of_its_batch_alone() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.error = RuntimeError("RESOURCE_EXHAUSTED: out of memory")
        with pytest.raises(RuntimeError, match="out of memory"):
            await engine.translate(["a", "b"], search=SEARCH)
        model.error = None
        assert texts(await engine.translate(["a b"], search=SEARCH)) == [["b a"]]
        assert engine.figures().failures == 1

    run(check)


def test_a_sentence_without_a_result_fails_its_request_alone() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        [[model.impossible, *_]] = model.vocabulary.encode(["h"])
        model.gate.clear()
        tasks = [asyncio.create_task(engine.translate(["a"], search=SEARCH))]
        await wait_for_search(model)
        tasks += [
            asyncio.create_task(engine.translate([line], search=SEARCH))
            for line in ("h", "b", "c")
        ]
        await asyncio.sleep(0)
        model.gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert list(map(len, model.batches)) == [1, 3]
        assert isinstance(results[1], ValueError)
        assert [texts(results[i]) for i in (0, 2, 3)] == [[["a"]], [["b"]], [["c"]]]

    run(check)


def test_draining_answers_what_was_accepted_and_refuses_the_rest() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        accepted = [
            asyncio.create_task(engine.translate([line], search=SEARCH))
            for line in ("a b", "c d", "e")
        ]
        await wait_for_search(model)
        draining = asyncio.create_task(engine.drain())
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await engine.translate(["f"], search=SEARCH)
        model.gate.set()
        await draining
        results = await asyncio.gather(*accepted)
        assert [texts(result) for result in results] == [[["b a"]], [["d c"]], [["e"]]]

    run(check)


def test_an_engine_that_did_not_start_refuses() -> None:
    engine = Engine(
        small_models.translator(), limits=small_models.LIMITS, name="asleep"
    )
    with pytest.raises(OverloadedError):
        asyncio.run(engine.translate(["a"], search=SEARCH))
    asyncio.run(engine.drain())


def test_pairs_are_computed_in_parts_and_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def score(
        sources: list[str], targets: list[str], *, first_line: int
    ) -> list[PairScore]:
        calls.append(len(sources))
        if "bad" in targets:
            raise ValueError(f"line {first_line + targets.index('bad')} is bad")
        return [
            PairScore(float(first_line + index), pair, ())
            for index, pair in enumerate(zip(sources, targets, strict=True))
        ]

    async def check(engine: Engine, model: small_models.Reverser) -> None:
        monkeypatch.setattr(model, "score", score)
        sources, targets = list("abcdefghijkl"), list("mnopqrstuvwx")
        scores = await engine.score(sources, targets)
        assert [score.log_prob for score in scores] == list(range(1, 13))
        assert [score.tokens for score in scores] == list(
            zip(sources, targets, strict=True)
        )
        assert calls == [8, 4]
        with pytest.raises(ValueError, match="line 10 is bad"):
            await engine.score(sources, [*targets[:9], "bad", *targets[10:]])
        assert engine.figures().waiting == 0

    run(check, limits=dataclasses.replace(small_models.LIMITS, queue=20))


def test_an_engine_that_has_ended_can_be_freed() -> None:
    models = []

    async def check(engine: Engine, model: small_models.Reverser) -> None:
        await engine.translate(["a b"], search=SEARCH)
        models.append(weakref.ref(model))

    run(check)
    gc.collect()
    assert models[0]() is None


def test_a_call_that_comes_in_parts_is_refused_as_a_whole() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        with engine.admit(6) as admission:
            with pytest.raises(OverloadedError), engine.admit(3):
                pass
            for turn in range(6):
                with engine.admit(2):  # There is room for two more.
                    pass
                await engine.translate(
                    ["a"], search=SEARCH, admission=admission, turn=turn
                )
            assert admission.num_left == 0
        # What does not come leaves its room to others.
        for _ in range(2):
            with engine.admit(8) as admission:
                pass
            assert admission.num_left == 0

    run(check)


def test_an_admitted_call_finds_room_in_a_full_queue() -> None:
    async def check(engine: Engine, model: small_models.Reverser) -> None:
        model.gate.clear()
        with engine.admit(2) as admission:
            others = [asyncio.create_task(engine.translate(["a"], search=SEARCH))]
            await wait_for_search(model)
            lines = ["b"] * 6
            others.append(asyncio.create_task(engine.translate(lines, search=SEARCH)))
            await asyncio.sleep(0)
            with pytest.raises(OverloadedError):
                await engine.translate(["c"], search=SEARCH)
            ours = asyncio.create_task(
                engine.translate(["c"] * 2, search=SEARCH, admission=admission)
            )
            await asyncio.sleep(0)
            model.gate.set()
            assert len(await ours) == 2
            assert list(map(len, await asyncio.gather(*others))) == [1, 6]

    run(check)
