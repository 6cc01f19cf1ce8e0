"""A translator whose programs have few shapes, so that all can be compiled ahead."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vaswani_jax.core import parallel, types
from vaswani_jax.inference import generate, padding, phrase_rows, scoring
from vaswani_jax.inference import phrases as phrase_search
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.inference.phrases import Phrase
from vaswani_jax.inference.pieces import Piece
from vaswani_jax.inference.results import Hypothesis, Output
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service import shapes
from vaswani_jax.service.limits import Limits, Search


class SearchRow(NamedTuple):
    """A row of a batch: a piece of a line and the options of its search."""

    piece: Piece
    length_penalty: float
    n_best: int


class FewShapesTranslator(Translator):
    """A model that translates, scores and attends in batches of few shapes.

    Its results are those of the model, to rounding, but for a sentence with more
    phrases than `shapes.PHRASES`. It searches by beam search alone.

    Attributes:
        limits: The limits of requests; it searches with their beam sizes alone.
        shapes: The shapes of its programs.
    """

    def __init__(self, translator: Translator, *, limits: Limits) -> None:
        """Keep the parts; nothing is computed.

        Args:
            translator: The model.
            limits: What requests may ask for.

        Raises:
            ValueError: The model draws its outputs at random.
        """
        # The default of requests is also that of attention and of pages.
        search = dataclasses.replace(
            translator.config.search, beam_size=limits.beam_sizes[0]
        )
        super().__init__(
            dataclasses.replace(translator.config, search=search),
            translator.vocabulary,
            members=translator.members,
        )
        if search.sampling:
            raise ValueError(
                "config.search.sampling=True draws outputs at random: a server "
                "searches for the best; set it to False"
            )
        self.limits = limits
        # By beam size and n_best, which is at most that.
        self._line_translators: dict[tuple[int, int], LineTranslator] = {}
        position_limits = [
            model.position_limit for model in self._models if model.position_limit
        ]
        self.shapes = shapes.shapes(
            search,
            num_devices=parallel.num_devices(),
            is_cpu=parallel.on_cpu(),
            allows_constraints=not self.vocabulary.is_trees,
            # An output may need min_tokens, whatever the length of its source.
            longest_pair=min(
                max(search.max_target_tokens, search.min_tokens),
                *position_limits,
                1 << 30,
            ),
        )

    def line_translator(self, beam_size: int, n_best: int) -> LineTranslator:
        """Return the translator that cuts lines and reads the outputs of the search.

        Raises:
            ValueError: Nothing is compiled for this beam size, or it is less than
                `n_best`.
        """
        if beam_size not in self.limits.beam_sizes:
            sizes = ", ".join(map(str, self.limits.beam_sizes))
            raise ValueError(f"beam_size must be one of {sizes}, got {beam_size}")
        key = (beam_size, n_best)
        if key not in self._line_translators:
            settings = self._override({"beam_size": beam_size})
            self._line_translators[key] = self._line_translator(settings, n_best=n_best)
        return self._line_translators[key]

    def pieces(
        self,
        lines: Sequence[str],
        *,
        search: Search,
        prefixes: Sequence[str] | None,
        phrases: Sequence[tuple[Phrase, ...]] | None = None,
        first_line: int = 1,
    ) -> list[Piece]:
        """Return the pieces of all lines, in order.

        Args:
            lines: The lines.
            search: The search.
            prefixes: What each line's translations begin with; "" for anything.
            phrases: What each line's translations must have, of `find_phrases`.
            first_line: The number of the first line in error messages.

        Raises:
            TypeError, ValueError: As `hypotheses`.
        """
        translator = self.line_translator(search.beam_size, search.n_best)
        self._check(lines, prefixes, settings=self.config, first_line=first_line)
        return translator.pieces(
            lines, prefixes, phrases=phrases, first_line=first_line
        )

    def find_phrases(
        self,
        lines: Sequence[str],
        *,
        glossary: Mapping[str, str],
        first_line: int = 1,
    ) -> list[tuple[Phrase, ...]]:
        """Return the phrases that each line's translations must have.

        The search looks for as many as its programs have room for; the translations
        may lack the others.

        Args:
            lines: The lines.
            glossary: The translations of terms.
            first_line: The number of the first line in error messages.

        Raises:
            ValueError: As `PhraseFinder.find`.
        """
        finder = self.phrase_finder(None, glossary=glossary)
        return [
            phrase_rows.keep_searchable(line_phrases, shape=shapes.PHRASES)
            for line_phrases in finder.find(lines, None, first_line=first_line)
        ]

    def search(
        self,
        rows: Sequence[SearchRow],
        *,
        beam_size: int,
        lengths: shapes.Lengths,
        num_rows: int,
    ) -> types.Hypotheses:
        """Return the hypotheses of each row of a batch, as NumPy arrays.

        Args:
            rows: The rows that have a sentence; the others are padding.
            beam_size: W.
            lengths: The lengths that they are padded to.
            num_rows: The number of rows.
        """
        pieces = [row.piece for row in rows]
        sources = [[*piece.ids, types.EOS_ID] for piece in pieces]
        prefixes = [piece.prefix for piece in pieces]
        alpha, n_best = np.zeros(num_rows, np.float32), np.ones(num_rows, np.int32)
        alpha[: len(rows)] = [row.length_penalty for row in rows]
        n_best[: len(rows)] = [row.n_best for row in rows]
        padded_rows = generate.Rows(
            source=padding.pad(sources, rows=num_rows, length=lengths.source),
            prefix=padding.pad(prefixes, rows=num_rows, length=lengths.prefix),
            numbers=np.zeros((num_rows, 2), np.int32),
            alpha=alpha,
            n_best=n_best,
            phrases=phrase_rows.pad_phrases(
                [piece.phrases for piece in pieces],
                rows=num_rows,
                shape=shapes.PHRASES,
                subwords=self.vocabulary.target,
            )
            if lengths.prefix
            else None,
        )
        run = self.line_translator(beam_size, 1).search
        local_rows = parallel.split_rows(padded_rows, num_microbatches=1)
        hypotheses: types.Hypotheses = parallel.join_rows(
            run(tuple(self.replicated_params), local_rows)
        )
        return hypotheses

    def hypotheses(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        prefixes: Sequence[str] | None = None,
        glossary: Mapping[str, str] | None = None,
        first_line: int = 1,
        **search: Any,
    ) -> list[list[Hypothesis]]:
        """Return the best translations of each line; see `Translator.hypotheses`.

        The settings that may change are `beam_size` and `length_penalty`.
        """
        lines, defaults = list(lines), self.config.search
        options = Search(
            n_best=n_best,
            **{
                "beam_size": defaults.beam_size,
                "length_penalty": defaults.length_penalty,
                **search,
            },
        )
        phrases = None
        if glossary is not None:
            phrases = self.find_phrases(lines, glossary=glossary, first_line=first_line)
        pieces = self.pieces(
            lines,
            search=options,
            prefixes=prefixes,
            phrases=phrases,
            first_line=first_line,
        )
        translator = self.line_translator(options.beam_size, n_best)
        by_lengths: dict[shapes.Lengths, list[int]] = {}
        for index in sorted(range(len(pieces)), key=lambda i: len(pieces[i].ids)):
            piece = pieces[index]
            lengths = self.shapes.lengths(
                source=len(piece.ids) + 1,
                prefix=len(piece.prefix),
                has_phrases=piece.has_phrases,
            )
            by_lengths.setdefault(lengths, []).append(index)
        outputs: list[list[Output]] = [[] for _ in pieces]
        for lengths, indices in by_lengths.items():
            while indices:
                number = self.shapes.num_sentences(len(indices), lengths)
                batch, indices = indices[:number], indices[number:]
                hypotheses = self.search(
                    [
                        SearchRow(pieces[i], options.length_penalty, n_best)
                        for i in batch
                    ],
                    beam_size=options.beam_size,
                    lengths=lengths,
                    num_rows=self.shapes.num_rows(number, lengths),
                )
                for index, tokens, scores in zip(batch, *hypotheses, strict=False):
                    outputs[index] = translator.read(
                        pieces[index], tokens=tokens, scores=scores
                    )
        n_best_of_lines = translator.join(outputs, pieces=pieces, lines=lines)
        if phrases is None:
            return n_best_of_lines
        return phrase_search.mark_missing(n_best_of_lines, phrases)

    def score_ids(
        self,
        pairs: Sequence[scoring.Pair],
        *,
        layers: Mapping[str, Sequence[int]] | None = None,
    ) -> list[scoring.Scored]:
        """Return the scores and attention of pairs; see `Translator.score_ids`."""
        scores: dict[int, scoring.Scored] = {}
        by_length: dict[int, list[int]] = {}
        for index, (source, target) in enumerate(pairs):
            length = self.shapes.pair_length(max(len(source) + 1, len(target)))
            by_length.setdefault(length, []).append(index)
        for length, indices in by_length.items():
            # The weights of all layers are large: such passes have the fewest rows.
            choices = self.shapes.pair_rows[length][: 1 if layers else None]
            while indices:
                rows = next((n for n in choices if n >= len(indices)), choices[-1])
                batch, indices = indices[:rows], indices[rows:]
                scored = scoring.score_batch(
                    [pairs[index] for index in batch],
                    padding.Group(batch, (length, length), rows),
                    models=self._models,
                    params=self.replicated_params,
                    vocab_size=self.vocabulary.size,
                    layers=layers,
                )
                scores.update(zip(batch, scored, strict=True))
        return [scores[index] for index in range(len(pairs))]

    def programs(self) -> list[Callable[[], Any]]:
        """Return functions that each load or compile one program, by calling it."""
        searches: list[Callable[[], Any]] = [
            functools.partial(
                self.search, [], beam_size=beam_size, lengths=lengths, num_rows=rows
            )
            for beam_size in self.limits.beam_sizes
            for lengths, choices in self.shapes.search_rows.items()
            for rows in choices
        ]
        scores: list[Callable[[], Any]] = []
        layers = None
        with contextlib.suppress(ValueError):  # No attention: the models differ.
            layers = self.attended_layers()
        for length, choices in self.shapes.pair_rows.items():
            pair = ([types.UNK_ID] * (length - 1), [types.UNK_ID] * length)
            scores += [
                functools.partial(self.score_ids, [pair] * rows) for rows in choices
            ]
            if layers:
                pairs = [pair] * choices[0]
                scores.append(functools.partial(self.score_ids, pairs, layers=layers))
        return searches + scores
