"""A server's programs have few shapes, and every sentence fits into one."""

import dataclasses

import hypothesis
from hypothesis import strategies

from configs import base_ende
from vaswani_jax.core import parsing
from vaswani_jax.service import shapes

SEARCH = parsing.parse(base_ende.get_config()).search


def shapes_of(
    *, num_devices: int = 1, is_cpu: bool = True, allows_constraints: bool = True
) -> shapes.Shapes:
    return shapes.shapes(
        SEARCH,
        num_devices=num_devices,
        is_cpu=is_cpu,
        allows_constraints=allows_constraints,
        longest_pair=SEARCH.max_source_tokens + SEARCH.max_extra_tokens,
    )


@hypothesis.given(
    source=strategies.integers(1, SEARCH.max_source_tokens),
    prefix=strategies.integers(0, SEARCH.max_source_tokens),
    has_phrases=strategies.booleans(),
    num_waiting=strategies.integers(1, 300),
    is_cpu=strategies.booleans(),
    num_devices=strategies.sampled_from([1, 3]),
)
def test_every_sentence_fits_into_a_batch(
    source: int,
    prefix: int,
    has_phrases: bool,
    num_waiting: int,
    is_cpu: bool,
    num_devices: int,
) -> None:
    all_shapes = shapes_of(is_cpu=is_cpu, num_devices=num_devices)
    lengths = all_shapes.lengths(source=source, prefix=prefix, has_phrases=has_phrases)
    assert source <= lengths.source and prefix <= lengths.prefix
    assert (prefix == 0 and not has_phrases) == (lengths.prefix == 0)
    number = all_shapes.num_sentences(num_waiting, lengths)
    num_rows = all_shapes.num_rows(number, lengths)
    assert 1 <= number <= min(num_waiting, num_rows)
    assert num_rows in all_shapes.search_rows[lengths]
    assert num_rows % num_devices == 0
    fewest = all_shapes.search_rows[lengths][0]
    assert num_rows == fewest or number >= all_shapes.fullness * num_rows


def test_a_cpu_cuts_a_batch_that_would_be_mostly_padding() -> None:
    short = shapes.Lengths(16, 0)
    on_cpu, on_gpu = shapes_of(), shapes_of(is_cpu=False)
    assert [on_cpu.num_sentences(n, short) for n in (2, 3, 5, 12, 40)] == [
        *(1, 3, 4, 12, 16)
    ]
    assert [on_gpu.num_sentences(n, short) for n in (2, 3, 5, 12, 70)] == [
        *(2, 3, 5, 12, 64)
    ]


def test_the_programs_are_few_and_their_batches_bounded() -> None:
    for is_cpu, most in ((True, 16), (False, 20)):
        search_rows = shapes_of(is_cpu=is_cpu).search_rows
        assert sum(map(len, search_rows.values())) <= most
        for lengths, choices in search_rows.items():
            assert list(choices) == sorted(choices)
            assert choices[-1] * lengths.source <= max(
                SEARCH.source_tokens_per_batch, lengths.source
            )


def test_a_short_longest_piece_bounds_all_lengths() -> None:
    short = dataclasses.replace(SEARCH, max_source_tokens=20)
    all_shapes = shapes.shapes(
        *(short,), num_devices=1, is_cpu=True, allows_constraints=True, longest_pair=25
    )
    assert set(all_shapes.search_rows) == {
        shapes.Lengths(16, 0),
        shapes.Lengths(20, 0),
        shapes.Lengths(20, 20),
    }
    assert all_shapes.pair_rows == {25: (1,)}
    assert all_shapes.pair_length(25) == 25


def test_a_parser_has_no_programs_for_prefixes_and_phrases() -> None:
    search_rows = shapes_of(allows_constraints=False).search_rows
    assert {lengths.prefix for lengths in search_rows} == {0}
