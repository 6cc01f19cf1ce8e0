"""Put the pieces of lines into batches of few shapes, for all devices."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import jax
import numpy as np

from vaswani_jax.core import compilation, config, parallel, side_by_side, types
from vaswani_jax.data.tokenizer import Tokenizer
from vaswani_jax.inference import generate, padding, phrase_rows
from vaswani_jax.inference.pieces import Piece

# On a CPU a row costs as much in a small batch, where fewer rows are padding or wait
# for the longest output. A batch has so many rows on each device, or so many tokens.
CPU_ROWS = 16
CPU_TOKENS = 512
# The indices of the pieces in a batch's rows, None for padding; and the rows.
Batch = tuple[list[int | None], generate.Rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PieceBatching:
    """Makes batches of pieces.

    Attributes:
        search: The settings of the search.
        subwords: Those of the target.
        n_best: How many hypotheses of a line are wanted.
        batch_for_each_device: Whether each device searches batches that one device
            alone would search. Otherwise the devices divide each batch.
    """

    search: config.SearchConfig
    subwords: Tokenizer
    n_best: int
    batch_for_each_device: bool

    def batches_on_devices(
        self, pieces: Sequence[Piece], first_line: int
    ) -> Iterator[Batch]:
        """Return the batches of `batches` as `parallel.split_rows` divides them."""
        count = parallel.num_devices() if self.batch_for_each_device else 1
        return _join_batches(self.batches(pieces, first_line), count=count)

    def batches(
        self, pieces: Sequence[Piece], first_line: int
    ) -> Iterator[tuple[list[int], generate.Rows]]:
        """Yield indices of pieces and their padded ids, similar lengths together."""
        # Within a batch, too, neighbours are of similar length.
        order = sorted(range(len(pieces)), key=lambda index: -len(pieces[index].ids))
        shortest = padding.shortest_length([len(piece.ids) + 1 for piece in pieces])
        # Pieces with phrases are searched apart, by one program for their numbers.
        shapes = [self._shape(pieces[index], shortest=shortest) for index in order]
        phrase_shape = phrase_rows.choose_padded_shape(
            [piece.phrases for piece in pieces]
        )
        for group in padding.group_by_shape(shapes, max_rows=self._max_rows):
            (length, prefix_length, has_phrases), num_rows = group.shape, group.num_rows
            indices = [order[index] for index in group.indices]
            batch = [pieces[index] for index in indices]
            sources = [[*piece.ids, types.EOS_ID] for piece in batch]
            prefixes = [piece.prefix for piece in batch]
            numbers = [(first_line + piece.line, piece.part) for piece in batch]
            yield (
                indices,
                generate.Rows(
                    source=padding.pad(sources, rows=num_rows, length=length),
                    prefix=padding.pad(prefixes, rows=num_rows, length=prefix_length),
                    numbers=padding.pad(numbers, rows=num_rows, length=2),
                    phrases=phrase_rows.pad_phrases(
                        [piece.phrases for piece in batch],
                        rows=num_rows,
                        shape=phrase_shape,
                        subwords=self.subwords,
                    )
                    if has_phrases
                    else None,
                ),
            )

    def searches_at_a_time(self) -> int:
        """Return the number of batches whose tokens together are those of one."""
        num_batches = self.search.source_tokens_per_batch // CPU_TOKENS
        return max(1, min(side_by_side.small_programs_at_a_time(), num_batches))

    def _max_rows(self, shape: tuple[int, ...]) -> int:
        """Return the most rows of a batch whose sentences have a shape."""
        # A sentence is searched as W rows; section 6.1 has W = 4.
        width = max(4, self.search.beam_size, self.n_best)
        num_rows = self.search.source_tokens_per_batch * 4 // width // shape[0]
        if parallel.on_cpu():
            num_devices = 1 if self.batch_for_each_device else parallel.num_devices()
            rows_per_device = max(CPU_ROWS, CPU_TOKENS // shape[0])
            num_rows = min(num_rows, rows_per_device * num_devices)
        return num_rows

    def _shape(self, piece: Piece, *, shortest: int) -> tuple[int, int, int]:
        """Return the padded tokens of a piece and of its prefix, and 1 for phrases."""
        # No piece is longer, and learned positions end there.
        longest = self.search.max_source_tokens
        num_tokens = max(len(piece.ids) + 1, shortest)
        length = min(padding.padded_length(num_tokens), longest)
        prefix_length = padding.padded_length(len(piece.prefix)) if piece.prefix else 0
        return length, prefix_length, int(piece.has_phrases)


def _join_batches(
    batches: Iterable[tuple[list[int], generate.Rows]], *, count: int
) -> Iterator[Batch]:
    """Yield batches that are each several of one shape, `count` with empty ones."""
    for _, of_shape in itertools.groupby(
        batches, lambda batch: compilation.row_shapes(batch[1])
    ):
        while parts := list(itertools.islice(of_shape, count)):
            num_rows = parts[0][1].source.shape[0]
            indices: list[int | None] = []
            for part_indices, _ in parts:
                indices += part_indices
                indices += [None] * (num_rows - len(part_indices))
            num_missing = (count - len(parts)) * num_rows

            def join(*leaves: np.ndarray, missing: int = num_missing) -> np.ndarray:
                leaf = np.concatenate(leaves)
                return np.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1))

            yield indices, jax.tree.map(join, *(rows for _, rows in parts))
