"""Blocks whose sides do not belong together are suspected, and no others."""

import dataclasses
import pathlib
import random

import pytest

from tests.text_checks import texts
from vaswani_jax.text_checks import alignment
from vaswani_jax.text_checks.sample import Pair

SHARED = pathlib.Path(__file__).parents[3] / "shared" / "data"


def judged(pairs: list[Pair]) -> alignment.Alignment:
    return alignment.judge(texts.blocks(pairs))


def shift_targets(pairs: list[Pair], *, begin: int, end: int, by: int) -> list[Pair]:
    """Make the targets of some lines come later."""
    targets = [target for _, target in pairs]
    part = targets[begin:end]
    targets[begin:end] = part[-by:] + part[:-by]
    return [(pair[0], target) for pair, target in zip(pairs, targets, strict=True)]


@pytest.mark.parametrize("locale", ["de", "ja"])
def test_aligned_text_is_not_suspected(locale: str) -> None:
    pairs = texts.clean(locale)["train"]
    result = judged(pairs)
    assert not result.parts and result.agreement is not None
    assert result.agreement > 0.9
    assert alignment.find(result, texts.blocks(pairs), split="train") == []


def test_text_that_is_sorted_by_length_is_not_suspected() -> None:
    pairs = sorted(texts.clean("de")["train"], key=lambda pair: len(pair[0]))
    assert not judged(pairs).parts


@pytest.mark.parametrize("by", [1, -3])
def test_shifted_lines_are_found_with_their_shift(by: int) -> None:
    pairs = shift_targets(texts.clean("de")["train"], begin=300, end=600, by=by)
    result = judged(pairs)
    assert result.parts == [alignment.Part(301, 600, by)]
    assert result.share == pytest.approx(1 / 3)
    [finding] = alignment.find(result, texts.blocks(pairs), split="train")
    assert finding.severity == "serious" and finding.lines == [(301, 600)]
    side = "target" if by > 0 else "source"
    assert f"too many in the {side} file" in finding.remedies[0]
    assert "around line 301 " in finding.remedies[0]


def test_good_lines_between_two_shifted_parts_are_not_suspected() -> None:
    pairs = texts.clean("de")["train"]
    for begin, end in ((100, 250), (650, 800)):
        pairs = shift_targets(pairs, begin=begin, end=end, by=1)
    result = judged(pairs)
    assert result.parts == [alignment.Part(101, 250, 1), alignment.Part(651, 800, 1)]
    assert result.share == pytest.approx(1 / 3)


def test_shuffled_lines_are_found_without_a_shift() -> None:
    pairs = list(texts.clean("de")["train"])
    targets = [target for _, target in pairs[100:250]]
    random.Random(0).shuffle(targets)
    pairs[100:250] = [
        (pair[0], target) for pair, target in zip(pairs[100:250], targets, strict=True)
    ]
    assert judged(pairs).parts == [alignment.Part(101, 250, 0)]


def test_a_text_that_is_wrong_throughout_is_suspected_as_a_whole() -> None:
    pairs = list(texts.clean("de")["train"])
    targets = [target for _, target in pairs]
    random.Random(0).shuffle(targets)
    shuffled = [(pair[0], target) for pair, target in zip(pairs, targets, strict=True)]
    assert judged(shuffled).parts == [alignment.Part(1, 900, 0)]
    shifted = [
        (pair[0], other[1]) for pair, other in zip(pairs[1:], pairs, strict=False)
    ]
    assert judged(shifted).parts == [alignment.Part(1, 899, 1)]


def test_the_share_of_a_large_text_is_that_of_the_blocks_that_are_read() -> None:
    pairs = shift_targets(texts.clean("de")["train"], begin=300, end=600, by=1)
    blocks = texts.blocks(pairs)
    # As of a text of which every tenth block is read.
    sampled = []
    for block in blocks:
        skipped = 9 * block.number * alignment.BLOCK_PAIRS
        lines = [(number + skipped, pair) for number, pair in block.lines]
        sampled.append(
            dataclasses.replace(block, number=10 * block.number, lines=lines)
        )
    share = alignment.judge(blocks).share
    assert share == pytest.approx(1 / 3)
    assert alignment.judge(sampled).share == pytest.approx(share)


def test_too_little_text_is_not_judged() -> None:
    pairs = texts.clean("de")["train"][: alignment.MIN_PAIRS - 1]
    assert judged(pairs) == alignment.Alignment(None, alignment.MIN_PAIRS - 1)
    assert judged([("", "x")] * 1000).agreement is None


def test_the_same_pair_again_and_again_is_not_suspected() -> None:
    assert not judged([("yes", "ja")] * 400).parts


def lines(path: pathlib.Path, limit: int) -> list[str]:
    if not SHARED.is_dir():
        pytest.skip("needs ../shared")
    with open(path, encoding="utf-8", newline="\n") as stream:
        return [
            line.rstrip("\n") for _, line in zip(range(limit), stream, strict=False)
        ]


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("stem", "endings", "is_suspected"),
    [
        ("wmt_samples/stanford_10k_tok_ende", ("en", "de"), True),
        ("wmt_samples/opennmt_10k_tok_ende", ("en", "de"), False),
        ("wmt_samples/newstest2012_3000_tok_ende", ("en", "de"), False),
        ("wmt_samples/zoph_10k_lctok_enfr", ("en", "fr"), False),
        ("multi30k_ende/raw/train", ("en", "de"), False),
        ("tatoeba_enfr/train", ("en", "fr"), False),
    ],
)
def test_real_text_is_suspected_if_it_is_misaligned(
    stem: str, endings: tuple[str, str], is_suspected: bool
) -> None:
    sides = [lines(SHARED / f"{stem}.{ending}", 30_000) for ending in endings]
    result = judged(list(zip(*sides, strict=True)))
    assert bool(result.parts) == is_suspected, result
    if is_suspected:  # Line 2,101 is in the worst part that a reader sees.
        assert any(p.first_line <= 2101 <= p.last_line for p in result.parts)
