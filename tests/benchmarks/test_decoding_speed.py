"""Speeds of decoding follow from the seconds of its searches."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tests import settings
from vaswani_jax.benchmarks import decoding_speed

SECONDS = {3: [9.0, 0.5, 4.0, 0.25], 1: [8.0, 0.125, 0.2, 2.0]}


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> list[decoding_speed.DecodingSpeed]:
    """Of batches of three and of one sentence, whose seconds are those above."""

    def make_timer(settings: Any, *, batch: int, **sizes: int) -> Callable[[], float]:
        assert sizes == {"vocab_size": 11, "source_tokens": 6, "output_tokens": 9}
        return iter(SECONDS[batch]).__next__

    monkeypatch.setattr(decoding_speed, "make_timer", make_timer)
    return decoding_speed.measure(
        settings.small_settings(),
        vocab_size=11,
        batches=[3, 1],
        source_tokens=6,
        output_tokens=9,
        repeats=3,
    )


def test_the_first_search_is_apart_and_the_median_counts(
    speeds: list[decoding_speed.DecodingSpeed],
) -> None:
    three, one = speeds
    assert (three.batch, three.first_batch_seconds) == (3, 9.0)
    assert three.all_batch_seconds == [0.5, 4.0, 0.25]
    assert (three.batch_seconds, one.batch_seconds) == (0.5, 0.2)
    assert (three.sentences_per_second, one.sentences_per_second) == (6.0, 5.0)
    assert (three.output_tokens_per_second, one.output_tokens_per_second) == (54, 45)
    assert three.beam_size == 3


def test_the_table_has_a_line_for_each_batch_size(
    speeds: list[decoding_speed.DecodingSpeed],
) -> None:
    fixed = [
        dataclasses.replace(
            speed,
            device="card",
            num_devices=2,
            dtype="bfloat16",
            peak_memory_bytes=3 * 2**29,
        )
        for speed in speeds
    ]
    setup, head, *lines = decoding_speed.format_speeds(fixed).splitlines()
    assert setup == "2 x card, bfloat16; beam 3, 6 source and 9 output tokens"
    assert head.split()[0] == "batch"
    assert [line.split() for line in lines] == [
        ["3", "0.500", "6.0", "54", "9.0", "s", "1.50", "GiB"],
        ["1", "0.200", "5.0", "45", "8.0", "s", "1.50", "GiB"],
    ]
