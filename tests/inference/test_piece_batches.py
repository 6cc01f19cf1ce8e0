"""The batches that pieces make: their shapes, and the piece in each row."""

import collections

import jax
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import parallel, types
from vaswani_jax.inference.phrases import Phrase
from vaswani_jax.inference.piece_batches import PieceBatching
from vaswani_jax.inference.pieces import Piece


def batching(*, for_each_device: bool = False, **search: int) -> PieceBatching:
    changed = {f"search.{key}": value for key, value in search.items()}
    return PieceBatching(
        search=settings.small_settings(**changed).search,
        subwords=settings.letters_vocabulary().target,
        n_best=1,
        batch_for_each_device=for_each_device,
    )


def pieces_of(lengths: list[int]) -> list[Piece]:
    """Pieces of different ids; some have a prefix, some have phrases."""
    phrase = Phrase("a", ids=(8, 9))
    return [
        Piece(
            line,
            0,
            [4 + line] * length,
            [9] * (line % 3 == 2),
            (phrase,) * (line % 4 // 2),
        )
        for line, length in enumerate(lengths)
    ]


def test_batches_are_small_on_a_cpu_alone() -> None:
    wide = batching(max_source_tokens=64, source_tokens_per_batch=4096)

    def rows_of_lengths(platform: str) -> dict[int, int]:
        with parallel.targeting(platform, jax.devices()[:1]):
            # 300 of each length, so that the largest batches are full.
            most_rows: collections.Counter[int] = collections.Counter()
            for lengths in ([20, 60] * 300, [1] * 300):
                pieces = [Piece(n, 0, [5] * k, []) for n, k in enumerate(lengths)]
                for _, rows in wide.batches(pieces, 1):
                    num_rows, length = rows.source.shape
                    most_rows[length] = max(most_rows[length], num_rows)
            return dict(most_rows)

    # 512 tokens, or 16 rows if they have more.
    assert rows_of_lengths("cpu") == {16: 32, 32: 16, 64: 16}
    # All tokens that the settings allow.
    assert rows_of_lengths("gpu") == {16: 256, 32: 128, 64: 64}


@pytest.mark.parametrize("for_each_device", [False, True])
def test_each_piece_is_a_row_of_one_batch(for_each_device: bool) -> None:
    pieces = pieces_of([(7 * n) % 15 for n in range(60)])
    seen = []
    batches = batching(for_each_device=for_each_device).batches_on_devices(pieces, 11)
    for indices, rows in batches:
        # The devices divide the rows of a batch, or search a batch each.
        assert not for_each_device or len(indices) % parallel.num_devices() == 0
        for row, index in enumerate(indices):
            if index is None:
                assert not rows.source[row].any()
                continue
            piece = pieces[index]
            seen.append(index)
            source = [*piece.ids, types.EOS_ID]
            assert rows.source[row].tolist()[: len(source)] == source
            assert not rows.source[row, len(source) :].any()
            assert [*filter(None, rows.prefix[row].tolist())] == piece.prefix
            np.testing.assert_array_equal(rows.numbers[row], [11 + piece.line, 0])
            # A piece without phrases is searched without banks.
            assert (rows.phrases is not None) == bool(piece.phrases)
            if rows.phrases is not None:
                assert rows.phrases.tokens[row, 0].tolist() == [8, 9, *[0] * 6]
    assert sorted(seen) == list(range(60))
