"""Translate lines with any parameters of one model, or of several together.

A line becomes pieces, pieces become batches of few shapes, and what the search finds
for them goes back to its line.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vaswani_jax.core import (
    compilation,
    config,
    kept_programs,
    languages,
    parallel,
    side_by_side,
    types,
)
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import (
    generate,
    line_warnings,
    search_record,
    trees,
)
from vaswani_jax.inference.phrases import Phrase
from vaswani_jax.inference.piece_batches import PieceBatching
from vaswani_jax.inference.pieces import Piece, cut_lines
from vaswani_jax.inference.results import Hypothesis, Output

Result = TypeVar("Result")


class _Search(NamedTuple):
    """A search on all devices.

    Attributes:
        program: From parameters and rows to hypotheses.
        shapes: The shapes of rows for which it has been compiled.
    """

    program: Callable[[Sequence[Any], generate.Rows], Any]
    shapes: set[Any]


class LineTranslator:
    """Translates lines with the parameters that each call brings.

    Validation calls it with the parameters of the moment, `Translator` with those of a
    checkpoint.
    """

    def __init__(
        self,
        settings: config.Config,
        vocabulary: Vocabulary,
        *,
        models: Sequence[config.ModelConfig] | None = None,
        n_best: int = 1,
        batch_for_each_device: bool = False,
    ) -> None:
        """Keep what every call needs.

        Args:
            settings: Their search is used, and their model where `models` is None.
            vocabulary: The subwords of every model.
            models: The models of an ensemble.
            n_best: How many hypotheses of a line to return.
            batch_for_each_device: Whether each device searches batches that one device
                alone would search, so that no bit depends on the number of devices.
                Otherwise the devices divide each batch.
        """
        self._settings = settings
        self._vocabulary = vocabulary
        self._models = tuple(models or (settings.model,))
        self._n_best = n_best
        self._batching = PieceBatching(
            search=settings.search,
            subwords=vocabulary.target,
            n_best=n_best,
            batch_for_each_device=batch_for_each_device,
        )

    @functools.cached_property
    def search(self) -> Callable[[Sequence[Any], generate.Rows], Any]:
        """The compiled search on all devices, shared with equal translators."""
        return self._search.program

    @functools.cached_property
    def _search(self) -> "_Search":
        return _search_on_devices(
            self._settings,
            self._models,
            vocab_size=self._vocabulary.size,
            n_best=self._n_best,
        )

    def translate(self, params: Any, lines: Sequence[str]) -> list[str]:
        """Return the best translation of each line by one model; see `hypotheses`.

        Warns of unusual lines, but not of cut translations: a model that has learned
        little ends few.
        """
        hypotheses = self.hypotheses((params,), lines)
        counts = line_warnings.count_unusual_lines(hypotheses, self._settings)
        del counts[line_warnings.CUT]
        line_warnings.warn_of_unusual_lines(counts, self._settings)
        return [n_best[0].text for n_best in hypotheses]

    def hypotheses(
        self,
        params: Sequence[Any],
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[tuple[Phrase, ...]] | None = None,
        first_line: int = 1,
    ) -> list[list[Hypothesis]]:
        """Return the translations of each line, the best first; samples as drawn.

        A text that the search reaches by several segmentations is one translation, with
        the best of their scores. A line may have fewer than `n_best`.

        A line without a subword (empty, only spaces) gives an empty line, whatever its
        prefix. A line of more than `max_source_tokens` is translated in pieces, cut
        between sentences if possible, else between words or characters. The outputs
        are joined with spaces, if the target language has any.

        Args:
            params: Those of each model, replicated over the devices.
            lines: Source lines.
            prefixes: What each line's translations begin with; "" for anything.
            phrases: What each line's translations must have.
            first_line: The number of the first line, from 1; random samples depend on
                a line's number.

        Raises:
            ValueError: The model gives no output of a line a probability; or as
                `pieces.cut_lines`.
        """
        pieces = self.pieces(lines, prefixes, phrases=phrases, first_line=first_line)
        # Batches are sorted by length; the index brings pieces back into their order.
        outputs: list[list[Output]] = [[] for _ in pieces]
        batches = [
            (indices, parallel.split_rows(rows, num_microbatches=1))
            for indices, rows in self._batching.batches_on_devices(pieces, first_line)
        ]
        all_rows = [rows for _, rows in batches]
        with self._making_ready(params, all_rows) as make_ready:

            def search(rows: generate.Rows) -> Any:
                make_ready(rows)
                return self.search(tuple(params), rows)

            searches = side_by_side.compute(
                search, all_rows, limit=self._batching.searches_at_a_time()
            )
            for (indices, _), hypotheses in zip(batches, searches, strict=True):
                tokens, scores = parallel.join_rows(hypotheses)
                for row, index in enumerate(indices):
                    if index is not None:
                        outputs[index] = self.read(
                            pieces[index], tokens=tokens[row], scores=scores[row]
                        )
        return self.join(outputs, pieces=pieces, lines=lines)

    @contextlib.contextmanager
    def _making_ready(
        self, params: Sequence[Any], batches: Sequence[generate.Rows]
    ) -> Iterator[Callable[[Any], None]]:
        """Make the search ready for each new shape, for the next while one is searched.

        Searches of one shape wait for its program, and none of them compiles it.
        """
        shapes = list(map(compilation.row_shapes, batches))
        new_batches = [
            rows
            for rows, shape in zip(batches, shapes, strict=True)
            if shape not in self._search.shapes
        ]
        with compilation.making_ready(
            self.search, tuple(params), batches=new_batches
        ) as make_ready:
            yield make_ready
        self._search.shapes.update(shapes)

    def record_search(
        self,
        params: Sequence[Any],
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
    ) -> list[list[search_record.SearchRecord]]:
        """Return how each piece of each line is searched; arguments of `hypotheses`."""
        pieces = self.pieces(lines, prefixes, first_line=first_line)
        records: dict[int, search_record.SearchRecord] = {}
        for indices, rows in self._batching.batches(pieces, first_line):
            batch = search_record.record_rows(
                self._settings,
                self._models,
                params=tuple(params),
                rows=rows,
                vocab_size=self._vocabulary.size,
                n_best=self._n_best,
            )
            records |= dict(zip(indices, batch, strict=False))
        in_order = [records[index] for index in range(len(pieces))]
        return _by_line(in_order, pieces=pieces, num_lines=len(lines))

    def shapes(self, lines: Sequence[str]) -> list[tuple[int, int]]:
        """Return (rows, padded source tokens) of the batches that lines make.

        The search is compiled for each of them, divided over the devices.
        """
        batches = self._batching.batches(self.pieces(lines, None, first_line=1), 1)
        return sorted({rows.source.shape for _, rows in batches})

    def pieces(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None,
        *,
        phrases: Sequence[tuple[Phrase, ...]] | None = None,
        first_line: int,
    ) -> list[Piece]:
        """Return the pieces of all lines, in order; the arguments of `hypotheses`."""
        return cut_lines(
            lines,
            prefixes,
            vocabulary=self._vocabulary,
            phrases=phrases,
            settings=self._settings,
            first_line=first_line,
        )

    def read(
        self, piece: Piece, *, tokens: np.ndarray, scores: np.ndarray
    ) -> list[Output]:
        """Return the outputs of a piece from a row of the search, the best first.

        Raises:
            ValueError: The search has found none.
        """
        outputs = [
            Output(
                source=tuple(piece.ids),
                ids=tuple(ids[ids != types.PAD_ID].tolist()),
                score=float(score),
            )
            for ids, score in zip(tokens, scores, strict=True)
            if score > -np.inf
        ]
        if not outputs:
            raise ValueError(
                f"no output of {self._vocabulary.source.decode(piece.ids)!r} has a "
                "probability: the parameters are not finite numbers, or a prefix is "
                "impossible"
            )
        if self._n_best == 1:
            return outputs[:1]
        texts = [self._vocabulary.decode(output.ids) for output in outputs]
        return self._distinct(outputs, texts)[: self._n_best]

    def _distinct(
        self, results: Sequence[Result], texts: Sequence[str]
    ) -> list[Result]:
        """Return the first result of each text; all samples, as they are drawn."""
        if self._settings.search.sampling:
            return list(results)
        first: dict[str, Result] = {}
        for text, result in zip(texts, results, strict=True):
            first.setdefault(text, result)
        return list(first.values())

    def join(
        self,
        outputs: Sequence[Sequence[Output]],
        *,
        pieces: Sequence[Piece],
        lines: Sequence[str],
    ) -> list[list[Hypothesis]]:
        """Return the translations of each line from the outputs of its pieces.

        Args:
            outputs: Those of each piece, the best first.
            pieces: The pieces of all lines.
            lines: The source lines.
        """
        by_line = _by_line(outputs, pieces=pieces, num_lines=len(lines))
        return [
            self._join_line(parts, line=line)
            for parts, line in zip(by_line, lines, strict=True)
        ]

    def _join_line(
        self, parts: Sequence[Sequence[Output]], *, line: str
    ) -> list[Hypothesis]:
        """Return a line's translations: the n-th joins each piece's n-th, or last."""
        vocabulary = self._vocabulary
        hypotheses = []
        for rank in range(max(map(len, parts), default=1)):
            outputs = tuple(n_best[min(rank, len(n_best) - 1)] for n_best in parts)
            hypothesis = Hypothesis(
                text=self._text(outputs, line=line),
                score=sum((output.score for output in outputs), start=0.0),
                tokens=tuple(
                    vocabulary.target.subword(token)
                    for output in outputs
                    for token in output.ids
                ),
                outputs=outputs,
            )
            if vocabulary.is_trees:
                hypothesis = self._with_symbols(hypothesis, line=line)
            hypotheses.append(hypothesis)
        return self._distinct(hypotheses, [candidate.text for candidate in hypotheses])

    def _text(self, outputs: Sequence[Output], *, line: str) -> str:
        """Return the text of the outputs of a line's pieces, or their tree."""
        if self._vocabulary.is_trees:
            pairs = ((output.source, output.ids) for output in outputs)
            return trees.format_tree(pairs, line=line, vocabulary=self._vocabulary)
        texts = (self._vocabulary.decode(output.ids) for output in outputs)
        separator = languages.piece_separator(line, self._settings.data)
        return separator.join(filter(None, texts))

    def _with_symbols(self, hypothesis: Hypothesis, *, line: str) -> Hypothesis:
        """Return a hypothesis that is a tree with the symbols of the search."""
        vocabulary = self._vocabulary
        pairs = [(output.source, output.ids) for output in hypothesis.outputs]
        return dataclasses.replace(
            hypothesis,
            symbols=tuple(
                symbol for _, ids in pairs for symbol in vocabulary.decode(ids).split()
            ),
            is_repaired=not trees.are_trees(pairs, line=line, vocabulary=vocabulary),
        )


def _by_line(
    values: Sequence[Result], *, pieces: Sequence[Piece], num_lines: int
) -> list[list[Result]]:
    """Return the values of the pieces of each line, given one for each piece."""
    by_line: list[list[Result]] = [[] for _ in range(num_lines)]
    for piece, value in zip(pieces, values, strict=True):
        by_line[piece.line].append(value)
    return by_line


@functools.cache
def _search_on_devices(
    settings: config.Config,
    models: tuple[config.ModelConfig, ...],
    *,
    vocab_size: types.VocabSize,
    n_best: int,
) -> _Search:
    """Return one search for all equal translators, so a shape is compiled once."""
    run = generate.make_generator(
        settings, models, vocab_size=vocab_size, n_best=n_best
    )
    identity = kept_programs.Identity(
        "search",
        (settings, models, vocab_size, n_best),
        outputs=lambda params, rows: types.Hypotheses._make(range(2)),
    )
    return _Search(parallel.over_rows(run, identity=identity), set())
