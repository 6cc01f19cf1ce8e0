"""The model of many devices, beside a ring that is played through."""

import pytest

from configs import base_ende
from vaswani_jax.benchmarks import scaling
from vaswani_jax.core import parsing

LINK = scaling.Link(bytes_per_second=2e9, latency_seconds=1e-5)


def played(count: int, size: float) -> float:
    """Seconds until each of some devices has the sum of all pieces."""
    has = [[{device} for _ in range(count)] for device in range(count)]
    seconds, rounds = 0.0, 0
    while any(len(piece) < count for own in has for piece in own):
        # In a round each passes one piece on: first partial sums, then whole ones.
        sent = [(d, (d - rounds) % count) for d in range(count)]
        passed = [set(has[d][piece]) for d, piece in sent]
        for (d, piece), content in zip(sent, passed, strict=True):
            has[(d + 1) % count][piece] |= content
        seconds += size / count / LINK.bytes_per_second + LINK.latency_seconds
        rounds += 1
    return seconds


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_an_all_reduce_takes_the_rounds_of_a_ring(count: int) -> None:
    found = scaling.all_reduce_seconds(count, size=6e8, link=LINK)
    assert found == pytest.approx(played(count, 6e8))


def test_a_batch_is_divided_or_grows() -> None:
    settings = parsing.parse(base_ende.get_config())
    common = {"counts": [1, 8], "seconds_per_token": 1e-3, "link": LINK}
    fixed = scaling.steps(settings, **common, tokens_per_device=None)
    grown = scaling.steps(settings, **common, tokens_per_device=1000)
    assert [one.computing for one in fixed] == pytest.approx([25.0, 25.0 / 8])
    assert [one.tokens for one in grown] == [1000, 8000]
    assert [one.computing for one in grown] == pytest.approx([1.0, 1.0])
    # 63.0 million parameters of table 3's base row, four bytes each.
    size = scaling.gradient_bytes(settings.model, vocab_size=37_000)
    assert size == pytest.approx(4 * 63.0e6, rel=2e-3)
    assert fixed[0].efficiency == 1.0
    assert fixed[1].efficiency < 1
    text = scaling.table(fixed)
    assert "100.0%" in text and len(text.splitlines()) == 3
