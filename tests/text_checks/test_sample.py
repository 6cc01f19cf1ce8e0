"""Blocks of pairs that are spread over a text."""

from vaswani_jax.text_checks import sample
from vaswani_jax.text_checks.sample import Sample


def numbers(count: int, **options: int) -> list[sample.Block]:
    collected = Sample(**options)
    for number in range(1, count + 1):
        collected.add((str(number), str(number)))
    return collected.blocks()


def test_a_small_text_is_kept_whole_with_the_numbers_of_its_lines() -> None:
    blocks = numbers(2 * sample.BLOCK_PAIRS + 7)
    assert [block.number for block in blocks] == [0, 1, 2]
    assert blocks[-1].last_line == 2 * sample.BLOCK_PAIRS + 7
    for number, pair in sample.numbered(blocks):
        assert pair == (str(number), str(number))
    assert len(sample.pairs_of(blocks)) == 2 * sample.BLOCK_PAIRS + 7


def test_of_a_large_text_as_many_blocks_are_kept_as_fit_evenly_spread() -> None:
    blocks = numbers(100 * sample.BLOCK_PAIRS, max_blocks=15)
    kept = [block.number for block in blocks]
    assert kept == list(range(0, 100, 8))  # 100 / 4 are more than 15
    assert blocks[1].lines[0] == (8 * sample.BLOCK_PAIRS + 1, ("401", "401"))


def test_an_empty_text_has_no_block() -> None:
    assert numbers(0) == []
