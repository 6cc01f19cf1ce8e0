"""Sentences share batches and wait as the queue promises."""

import hypothesis
from hypothesis import strategies

from tests.service.test_shapes import SEARCH, shapes_of
from vaswani_jax.inference.phrases import Phrase
from vaswani_jax.inference.pieces import Piece
from vaswani_jax.service import batches

SHAPES = shapes_of()
WAIT_SECONDS = 0.5


def empty_queue() -> batches.Queue:
    return batches.Queue(SHAPES, wait_seconds=WAIT_SECONDS)


def sentence(
    request: batches.Request,
    index: int = 0,
    *,
    length: int = 8,
    prefix: int = 0,
    has_phrases: bool = False,
    beam_size: int = 4,
) -> batches.Sentence:
    return batches.Sentence(
        request=request,
        index=index,
        piece=Piece(
            *(index, 0, [5] * (length - 1), [6] * prefix),
            # Only those with ids are searched.
            (Phrase("a"), Phrase("b", ids=(7,))) if has_phrases else (Phrase("a"),),
        ),
        beam_size=beam_size,
        length_penalty=0.6,
        n_best=1,
    )


def call(request: batches.Request, index: int = 0) -> batches.Call:
    return batches.Call(
        request=request, index=index, function=lambda: None, num_sentences=3
    )


def take_all(queue: batches.Queue) -> list[batches.Batch]:
    all_batches = []
    while queue.num_sentences:
        all_batches.append(queue.take())
    return all_batches


LENGTHS = strategies.integers(1, SEARCH.max_source_tokens)
KINDS = strategies.tuples(
    LENGTHS,
    strategies.sampled_from([0, 0, 2, 40]),
    strategies.sampled_from([False, False, True]),
    strategies.sampled_from([1, 4]),
)
REQUESTS = strategies.lists(
    strategies.lists(KINDS, min_size=1, max_size=40), min_size=1, max_size=12
)


@hypothesis.settings(max_examples=40)
@hypothesis.given(requests=REQUESTS, calls=strategies.integers(0, 3))
def test_every_job_is_in_one_batch_of_its_kind(
    requests: list[list[tuple[int, int, bool, int]]], calls: int
) -> None:
    queue = empty_queue()
    jobs: list[batches.Job] = []
    for arrival, kinds in enumerate(requests):
        request = batches.Request(arrival=float(arrival))
        for index, (length, prefix, has_phrases, beam_size) in enumerate(kinds):
            jobs.append(
                sentence(
                    *(request, index),
                    length=length,
                    prefix=prefix,
                    has_phrases=has_phrases,
                    beam_size=beam_size,
                )
            )
    jobs += [call(batches.Request(arrival=99.0)) for _ in range(calls)]
    for job in jobs:
        queue.add(job)
    assert queue.num_sentences == sum(job.num_sentences for job in jobs)
    all_batches = []
    waiting = dict.fromkeys(jobs)
    while queue.num_sentences:
        oldest = next(iter(waiting))
        two = [queue.take() for _ in range(2) if queue.num_sentences]
        assert any(oldest in batch.jobs for batch in two)
        for batch in two:
            for job in batch.jobs:
                del waiting[job]
        all_batches += two
    assert sorted(map(id, jobs)) == sorted(
        id(j) for batch in all_batches for j in batch.jobs
    )
    for batch in all_batches:
        sentences = [j for j in batch.jobs if isinstance(j, batches.Sentence)]
        if not sentences:
            assert len(batch.jobs) == 1 and batch.lengths is None
            continue
        assert len(sentences) == len(batch.jobs)
        assert batch.lengths is not None
        assert batch.num_rows in SHAPES.search_rows[batch.lengths]
        assert len({job.beam_size for job in sentences}) == 1
        assert max(job.length for job in sentences) <= batch.lengths.source
        for job in sentences:
            is_constrained = bool(job.piece.prefix) or job.piece.has_phrases
            assert is_constrained == bool(batch.lengths.prefix)
            assert len(job.piece.prefix) <= batch.lengths.prefix


def test_a_long_request_does_not_hold_up_a_short_one() -> None:
    queue = empty_queue()
    long = batches.Request(arrival=0.0)
    for index in range(128):
        queue.add(sentence(long, index, length=60))
    queue.take()
    short = sentence(batches.Request(arrival=1.0), length=5)
    queue.add(short)
    assert any(short in batch.jobs for batch in [queue.take(), queue.take()])


def test_sentences_of_a_stream_do_not_hold_up_a_short_request() -> None:
    queue = empty_queue()
    for turn in range(128):  # A stream asks for each sentence by itself.
        queue.add(sentence(batches.Request(arrival=0.0, turn=turn), length=60))
    queue.take()
    short = sentence(batches.Request(arrival=1.0), length=5)
    queue.add(short)
    assert any(short in batch.jobs for batch in [queue.take(), queue.take()])


def test_short_requests_do_not_hold_up_a_long_one() -> None:
    queue = empty_queue()
    long = batches.Request(arrival=0.0)
    for index in range(10):
        queue.add(sentence(long, index, length=300))
    num_waiting = 10
    for turn in range(20):
        queue.add(sentence(batches.Request(arrival=1.0 + turn), length=5))
        num_waiting -= sum(job.request is long for job in queue.take().jobs)
    assert num_waiting <= 1


def test_sentences_of_similar_length_share_a_batch() -> None:
    queue = empty_queue()
    for arrival in range(32):
        request = batches.Request(arrival=float(arrival))
        queue.add(sentence(request, length=[6, 15][arrival % 2]))
    lengths = [
        {job.length for job in batch.jobs if isinstance(job, batches.Sentence)}
        for batch in take_all(queue)
    ]
    assert lengths == [{6}, {15}]


def test_a_lone_sentence_is_ready_at_once() -> None:
    queue = empty_queue()
    assert queue.ready_time() is None
    for arrival in (3.0, 4.0):
        queue.add(sentence(batches.Request(arrival=arrival)))
        assert queue.ready_time(num_requests=1) == arrival
        queue.take()


def test_a_sentence_waits_for_requests_that_are_expected() -> None:
    queue = empty_queue()
    queue.add(sentence(batches.Request(arrival=5.0)))
    assert queue.ready_time(num_requests=3) == 5.0 + WAIT_SECONDS
    queue.add(sentence(batches.Request(arrival=5.25)))
    assert queue.ready_time(num_requests=3) == 5.0 + WAIT_SECONDS
    assert queue.ready_time(num_requests=2) == 5.0


def test_a_full_batch_waits_for_nobody() -> None:
    queue = empty_queue()
    request = batches.Request(arrival=5.0)
    num_rows = max(rows[-1] for rows in SHAPES.search_rows.values())
    for index in range(num_rows - 1):
        queue.add(sentence(request, index))
    assert queue.ready_time(num_requests=2) == 5.0 + WAIT_SECONDS
    queue.add(sentence(request, num_rows))
    assert queue.ready_time(num_requests=2) == 5.0


def test_what_is_discarded_or_late_does_not_count() -> None:
    queue = empty_queue()
    late = sentence(batches.Request(arrival=0.0, deadline=2.0))
    timeless = sentence(batches.Request(arrival=0.0))
    for job in (late, timeless):
        queue.add(job)
    assert queue.late(1.9) == []
    assert queue.late(2.0) == [late]
    queue.discard(late)
    queue.discard(late)
    assert queue.num_sentences == 1
    assert queue.take().jobs == (timeless,)
