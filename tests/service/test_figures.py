"""The figures of an engine add up the batches that it begins."""

import dataclasses

from tests.service.test_batches import call, sentence
from vaswani_jax.service.batches import Batch, Request
from vaswani_jax.service.figures import Figures
from vaswani_jax.service.shapes import Lengths


def test_a_batch_counts_its_sentences_their_tokens_and_their_waiting() -> None:
    old, young = Request(arrival=3.0), Request(arrival=9.0)
    jobs = (sentence(old, length=5), sentence(old, 1, length=7), sentence(young))
    figures = Figures(waiting=4)
    figures.add_batch(Batch(jobs, Lengths(source=11, prefix=0), num_rows=6), 10.0)
    assert figures == Figures(
        waiting=4,
        running=3,
        batches=1,
        sentences=3,
        rows=6,
        tokens=5 + 7 + 8,
        padded_tokens=6 * 11,
        waited_seconds=7.0 + 7.0 + 1.0,
    )


def test_a_call_counts_its_sentences_and_no_tokens() -> None:
    figures = Figures()
    figures.add_batch(Batch((call(Request(arrival=1.0)),), None, num_rows=2), 3.0)
    assert figures == Figures(
        running=3, batches=1, sentences=3, rows=2, waited_seconds=6.0
    )


def test_a_sum_has_the_sum_of_every_figure() -> None:
    kinds = {field.name: type(field.default) for field in dataclasses.fields(Figures)}
    first = {name: kind(n) for n, (name, kind) in enumerate(kinds.items())}
    second = {name: kind(100) for name, kind in kinds.items()}
    total = dataclasses.asdict(Figures(**first) + Figures(**second))
    assert list(total.values()) == [100 + n for n in range(len(kinds))]
