"""Section 6.1: lines in, lines out, in the same order and of the same number."""

import collections
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vaswani_jax.core import config, parallel, types
from vaswani_jax.data import vocabulary
from vaswani_jax.inference import constraints, generate, padding


class Output(NamedTuple):
    """What a piece of a line became; `ids` has the end mark, if there was one."""

    source: list[int]
    ids: list[int]
    score: float


class Hypothesis(NamedTuple):
    """One translation of a line: the outputs of its pieces, of which most have one.

    `score` is the sum of theirs: log P(Y|X) / lp(Y), in nats.
    """

    text: str
    score: float
    outputs: tuple[Output, ...]


class _Piece(NamedTuple):
    """A line, or a part of one that is longer than `max_source_tokens`."""

    line: int
    part: int
    ids: list[int]
    prefix: list[int]


class Translator:
    """Translates lines with any parameters of one model, or of several together."""

    def __init__(
        self,
        settings: config.Config,
        subwords: vocabulary.Vocabulary,
        *,
        models: Sequence[config.ModelConfig] | None = None,
        num_hypotheses: int = 1,
    ) -> None:
        self._settings = settings
        self._search = settings.search
        self._subwords = subwords
        self._run = _on_devices(
            settings, tuple(models or (settings.model,)), subwords.size, num_hypotheses
        )
        self._num_hypotheses = num_hypotheses

    def translate(
        self,
        params: Any,
        lines: Sequence[str],
        *,
        warn: Callable[[str], None],
    ) -> list[str]:
        """The best translation of each line by one model; see `hypotheses`.

        `warn` is told how many lines are unusually long.
        """
        found = self.hypotheses((params,), lines)
        tell(count_long(found, self._settings), self._settings, warn=warn)
        return [several[0].text for several in found]

    def hypotheses(
        self,
        params: Sequence[Any],
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
    ) -> list[list[Hypothesis]]:
        """The translations of each line, the best first; samples as they were drawn.

        A line without a subword (empty, only spaces) gives an empty line, whatever its
        prefix. A line of more than `max_source_tokens` is translated in pieces cut
        between words, the outputs joined with spaces.

        Args:
            params: Those of each model, replicated over the devices.
            lines: What to translate.
            prefixes: What each line's translations begin with; empty for anything.
            first_line: The number of the first of the lines; what is drawn at random
                depends on it.

        Raises:
            ValueError: The model gives no output of a line a probability, or a prefix
                has more than `max_source_tokens`.
        """
        pieces = self._pieces(lines, prefixes, first_line)
        found: list[list[list[Output]]] = [[] for _ in lines]
        # Pieces of a line must come back in their order, hence the place of each.
        outputs: list[list[Output]] = [[] for _ in pieces]
        for places, rows in self._batches(pieces, first_line):
            split = parallel.split_rows(rows, multiple=1)
            tokens, scores = parallel.join_rows(self._run(tuple(params), split))
            for row, place in enumerate(places):
                outputs[place] = self._read(pieces[place], tokens[row], scores[row])
        for piece, several in zip(pieces, outputs, strict=True):
            found[piece.line].append(several)
        return [list(self._joined(parts)) for parts in found]

    def shapes(self, lines: Sequence[str]) -> list[tuple[int, int]]:
        """Rows and padded source tokens of the batches that lines are searched in.

        What is compiled is each of them, divided over the devices.
        """
        batched = self._batches(self._pieces(lines, None, 1), 1)
        return sorted({rows.source.shape for _, rows in batched})

    def _pieces(
        self, lines: Sequence[str], prefixes: Sequence[str] | None, first_line: int
    ) -> list[_Piece]:
        forced = constraints.forced(
            prefixes or [""] * len(lines),
            subwords=self._subwords,
            search=self._search,
            first_line=first_line,
        )
        return [
            _Piece(line, part, cut, [] if part else forced[line])
            for line, ids in enumerate(self._subwords.encode(lines))
            for part, cut in enumerate(self._cut(ids))
        ]

    def _read(
        self, piece: _Piece, tokens: np.ndarray, scores: np.ndarray
    ) -> list[Output]:
        several = [
            Output(piece.ids, [int(token) for token in ids if token], float(score))
            for ids, score in zip(tokens, scores, strict=True)
            if score > -np.inf
        ]
        if not several:
            raise ValueError(
                f"no output of {self._subwords.decode(piece.ids)!r} has a probability: "
                "the parameters are not finite numbers, or a prefix is impossible"
            )
        return several[: self._num_hypotheses]

    def _joined(self, parts: Sequence[Sequence[Output]]) -> Iterator[Hypothesis]:
        """The n-th hypothesis of a line has the n-th of each piece, or its last."""
        for rank in range(max(map(len, parts), default=1)):
            outputs = tuple(several[min(rank, len(several) - 1)] for several in parts)
            texts = (self._subwords.decode(output.ids) for output in outputs)
            score = sum((output.score for output in outputs), start=0.0)
            yield Hypothesis(" ".join(filter(None, texts)), score, outputs)

    def _cut(self, ids: list[int]) -> list[list[int]]:
        """Parts of at most `max_source_tokens`, cut between words where possible."""
        mark = ids[: self._subwords.num_marks(ids)]  # goes for every part
        ids = ids[len(mark) :]
        longest = self._search.max_source_tokens - len(mark) - 1  # the end mark
        if ids and longest < 1:
            raise ValueError(
                "config.search.max_source_tokens must be at least 3 with a language "
                f"code, got {self._search.max_source_tokens}"
            )
        parts = []
        while len(ids) > longest:
            ends = range(longest, longest // 2, -1)
            tests = (self._subwords.starts_word, self._subwords.starts_character)
            good = (e for test in tests for e in ends if test(ids[e]))
            end = next(good, longest)
            parts.append(ids[:end])
            ids = ids[end:]
        return [[*mark, *part] for part in ([*parts, ids] if ids else parts)]

    def _batches(
        self, pieces: list[_Piece], first_line: int
    ) -> Iterator[tuple[list[int], generate.Rows]]:
        """Places of pieces and their padded ids, similar lengths together."""
        # Each sentence is searched as so many rows, of which section 6.1 has four.
        width = max(4, self._search.beam_size, self._num_hypotheses)
        tokens = self._search.source_tokens_per_batch * 4 // width
        # In a batch, too, neighbours are of similar length.
        order = sorted(range(len(pieces)), key=lambda place: -len(pieces[place].ids))
        shapes = [self._shape(pieces[place]) for place in order]
        for chunk, (length, forced), rows in padding.of_one_shape(
            shapes, full=lambda shape: tokens // shape[0]
        ):
            places = [order[index] for index in chunk]
            some = [pieces[place] for place in places]
            sources = [[*piece.ids, types.EOS_ID] for piece in some]
            prefixes = [piece.prefix for piece in some]
            numbers = [(first_line + piece.line, piece.part) for piece in some]
            yield (
                places,
                generate.Rows(
                    source=padding.padded(sources, rows=rows, length=length),
                    prefix=padding.padded(prefixes, rows=rows, length=forced),
                    numbers=padding.padded(numbers, rows=rows, length=2),
                ),
            )

    def _shape(self, piece: _Piece) -> tuple[int, int]:
        """Padded tokens of the source and of the prefix."""
        # No piece is longer than that, and learned positions end there.
        longest = self._search.max_source_tokens
        length = min(padding.padded_length(len(piece.ids) + 1), longest)
        forced = padding.padded_length(len(piece.prefix)) if piece.prefix else 0
        return length, forced


def count_long(
    found: Sequence[Sequence[Hypothesis]], settings: config.Config
) -> collections.Counter[str]:
    """How many translated lines were longer than usual, by the setting they exceed."""
    lengths = [
        [len(output.source) + 1 for output in several[0].outputs] for several in found
    ]
    longest = settings.data.max_length
    return collections.Counter(
        {
            "data.max_length": sum(max(n, default=0) > longest for n in lengths),
            "search.max_source_tokens": sum(len(n) > 1 for n in lengths),
        }
    )


def tell(
    long: collections.Counter[str],
    settings: config.Config,
    *,
    warn: Callable[[str], None],
) -> None:
    """Say what `count_long` found."""
    treated = {
        "data.max_length": (settings.data.max_length, "longer than any in training"),
        "search.max_source_tokens": (
            settings.search.max_source_tokens,
            "translated in pieces",
        ),
    }
    for key, (value, how) in treated.items():
        if long[key]:
            warn(f"{long[key]:,} lines over config.{key}={value} tokens: {how}")


@functools.cache
def _on_devices(
    settings: config.Config,
    models: tuple[config.ModelConfig, ...],
    vocab_size: int,
    num_hypotheses: int,
) -> Callable[..., Any]:
    """One function for every translator, so that each shape is compiled once."""
    run = generate.generator(
        settings, models, vocab_size=vocab_size, num_hypotheses=num_hypotheses
    )
    return parallel.over_rows(run)
