"""Section 6.1: lines in, lines out, in the same order and of the same number."""

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from vaswani_jax.core import config, parallel, types
from vaswani_jax.data import vocabulary
from vaswani_jax.inference import beam_search
from vaswani_jax.model import decoder, transformer

# Rows of a batch are one of these or the full number, so that few shapes compile.
ROWS = (1, 8, 64)


class _Piece(NamedTuple):
    """A line, or a part of one that is longer than `max_source_tokens`."""

    line: int
    ids: list[int]


class Translator:
    """Translates lines with any parameters of one model."""

    def __init__(
        self, settings: config.Config, subwords: vocabulary.Vocabulary
    ) -> None:
        self._search = settings.search
        self._subwords = subwords
        search = search_rows(settings, vocab_size=subwords.size)

        def best(params: Any, source: Int[Array, "B S"]) -> Int[Array, "B T"]:
            return search(params, source).tokens[:, 0]

        self._run = parallel.over_rows(best)

    def translate(
        self,
        params: Any,
        lines: Sequence[str],
        *,
        warn: Callable[[str], None],
        first_line: int = 1,
    ) -> list[str]:
        """One output line for each input line.

        A line without a subword (empty, only spaces) gives an empty line. A line of
        more than `max_source_tokens` is translated in pieces cut between words, the
        outputs joined with spaces, and `warn` is told.

        Args:
            params: The model's, replicated over the devices.
            lines: What to translate.
            warn: Takes a message about a line that needed special treatment.
            first_line: The number of the first of the lines, for such messages.
        """
        pieces: list[_Piece] = []
        for number, ids in enumerate(self._subwords.encode(lines)):
            parts = self._cut(ids)
            if len(parts) > 1:
                warn(
                    f"line {first_line + number} has {len(ids):,} tokens, more than "
                    f"config.search.max_source_tokens={self._search.max_source_tokens}"
                    f": translated in {len(parts)} pieces"
                )
            pieces.extend(_Piece(number, part) for part in parts)
        outputs: list[list[str]] = [[] for _ in lines]
        # Pieces of a line must come back in their order, hence the place of each.
        texts = [""] * len(pieces)
        for places, source in self._batches(pieces):
            rows = parallel.split_rows(source, multiple=1)
            found = parallel.join_rows(self._run(params, rows))
            for place, ids in zip(places, found, strict=False):
                texts[place] = self._subwords.decode(ids.tolist())
        for piece, text in zip(pieces, texts, strict=True):
            outputs[piece.line].append(text)
        return [" ".join(filter(None, parts)) for parts in outputs]

    def _cut(self, ids: list[int]) -> list[list[int]]:
        """Parts of at most `max_source_tokens`, cut between words where possible."""
        longest = self._search.max_source_tokens - 1  # the end mark
        parts = []
        while len(ids) > longest:
            ends = range(longest, longest // 2, -1)
            tests = (self._subwords.starts_word, self._subwords.starts_character)
            good = (e for test in tests for e in ends if test(ids[e]))
            end = next(good, longest)
            parts.append(ids[:end])
            ids = ids[end:]
        return [*parts, ids] if ids else parts

    def _batches(self, pieces: list[_Piece]) -> list[tuple[list[int], np.ndarray]]:
        """Places of pieces and their padded ids, similar lengths together."""
        groups: dict[int, list[int]] = collections.defaultdict(list)
        for place, piece in enumerate(pieces):
            length = _padded_length(len(piece.ids) + 1)
            # No piece is longer, and learned positions end there.
            groups[min(length, self._search.max_source_tokens)].append(place)
        batches = []
        for length in sorted(groups, reverse=True):
            places = sorted(groups[length], key=lambda place: -len(pieces[place].ids))
            full = max(1, self._search.source_tokens_per_batch // length)
            for start in range(0, len(places), full):
                chunk = places[start : start + full]
                rows = next((r for r in ROWS if len(chunk) <= r < full), full)
                source = np.zeros((rows, length), np.int32)
                for row, place in enumerate(chunk):
                    ids = [*pieces[place].ids, types.EOS_ID]
                    source[row, : len(ids)] = ids
                batches.append((chunk, source))
        return batches


def search_rows(
    settings: config.Config, *, vocab_size: int
) -> Callable[[Any, Int[Array, "B S"]], types.Hypotheses]:
    """A function from parameters and source rows to each row's hypotheses."""
    model = transformer.Transformer(settings.model, vocab_size)
    search = settings.search

    def run(params: Any, source: Int[Array, "B S"]) -> types.Hypotheses:
        apply: Any = functools.partial(model.apply, {"params": params})
        buffer_length = source.shape[1] + search.max_extra_tokens
        cache = apply(
            source,
            beam_size=search.beam_size,
            max_length=buffer_length,
            method="start_cache",
        )

        def step(
            tokens: Array, beams: Any, position: Array
        ) -> tuple[Array, tuple[Any, ...]]:
            grown: decoder.DecoderCache
            logits, grown = apply(
                tokens, cache.replace(beams=beams), position, method="decode_step"
            )
            # No sentence contains these, but an untrained model may predict them.
            impossible = jnp.array([types.PAD_ID, types.BOS_ID])
            return logits.at[..., impossible].set(-jnp.inf), grown.beams

        tokens = jnp.sum(source != types.PAD_ID, axis=1)
        return beam_search.beam_search(
            step,
            cache.beams,
            _reorder,
            # Both lengths count the end mark; a row of padding gives nothing.
            jnp.where(tokens > 0, tokens + search.max_extra_tokens, 0),
            beam_size=search.beam_size,
            alpha=search.length_penalty,
            buffer_length=buffer_length,
        )

    return run


def _reorder(beams: Any, origin: Int[Array, "B W"]) -> Any:
    B, W = origin.shape
    rows = (origin + W * jnp.arange(B)[:, None]).reshape(-1)
    return jax.tree.map(lambda leaf: jnp.take(leaf, rows, axis=0), beams)


def _padded_length(tokens: int) -> int:
    """The next of 8, 16, 24, 32, 48, 64, 96, 128, 192, ...

    >>> [_padded_length(n) for n in (3, 17, 33, 49, 100)]
    [8, 24, 48, 64, 128]
    """
    length = 8
    while length < tokens:
        power = 1 << (length.bit_length() - 1)
        length += 8 if length < 32 else power // 2
    return length
