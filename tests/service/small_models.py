"""Tiny models with programs of very few shapes, and one that only reverses lines."""

import contextlib
import functools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service import shapes
from vaswani_jax.service.few_shapes import FewShapesTranslator, SearchRow
from vaswani_jax.service.limits import Limits

LIMITS = Limits(beam_sizes=(3,), n_best=3, queue=8, wait_seconds=0.0)


@functools.cache
def vocabulary() -> Vocabulary:
    data = settings.small_settings(**{"data.vocab_size": 20}).data
    return settings.learn_vocabulary(["a b c d e f g h", "c d a b h g e f"] * 20, data)


@functools.cache
def translator(seed: int = 1) -> Translator:
    """Return a model that has learned nothing."""
    small = settings.small_settings()
    params = settings.random_params(
        small.model, vocab_size=vocabulary().size, seed=seed
    )
    member = Member(small.model, Checkpoint(0, {"params": params}, {}))
    return Translator(small, vocabulary(), members=[member])


@contextlib.contextmanager
def five_programs() -> Iterator[None]:
    """Let translators that are made within have two rows at most, and one length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "ROWS", (1, 2))
        patch.setattr(shapes, "CONSTRAINED_ROWS", 1)
        patch.setattr(shapes, "SOURCE_LENGTHS", ())
        patch.setattr(shapes, "PAIR_ROWS", {})
        yield


class Reverser(FewShapesTranslator):
    """Reverses the words of a line, or their subwords; n_best counts marks.

    Attributes:
        batches: The ids of the sentences of each batch.
        gate: A search waits until this is set.
        is_searching: Set when a search begins.
        error: What a search raises, if it is not None.
        impossible: A first subword whose sentence has no output.
    """

    def __init__(self, *, limits: Limits = LIMITS) -> None:
        super().__init__(translator(), limits=limits)
        self.batches: list[list[tuple[int, ...]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.is_searching = threading.Event()
        self.error: Exception | None = None
        self.impossible: int | None = None

    def search(
        self,
        rows: Sequence[SearchRow],
        *,
        beam_size: int,
        lengths: shapes.Lengths,
        num_rows: int,
    ) -> Any:
        self.is_searching.set()
        assert self.gate.wait(60)
        self.batches.append([tuple(row.piece.ids) for row in rows])
        if self.error is not None:
            raise self.error
        longest = sum(lengths) + beam_size + 1
        tokens = np.zeros((num_rows, beam_size, longest), np.int32)
        scores = np.full((num_rows, beam_size), -np.inf, np.float32)
        for index, row in enumerate(rows):
            ids = [*row.piece.prefix, *row.piece.ids[::-1]]
            for rank in range(beam_size):
                best = [*ids, *row.piece.ids[:1] * rank, types.EOS_ID]
                tokens[index, rank, : len(best)] = best
                if row.piece.ids[0] != self.impossible:
                    scores[index, rank] = -(rank + 1) * (1.0 + row.length_penalty)
        return types.Hypotheses(tokens, scores)
