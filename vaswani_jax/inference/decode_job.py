"""Turn blocks of lines into what `decode` writes."""

import contextlib
import dataclasses
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vaswani_jax.core import config, languages, plurals
from vaswani_jax.inference import (
    alignment,
    arguments,
    formats,
    line_io,
    line_warnings,
    minimum_bayes_risk,
    phrases,
    scoring,
)
from vaswani_jax.inference.glossary import Glossary
from vaswani_jax.inference.reranking import Reranking, check_translates, rerank
from vaswani_jax.inference.results import Hypothesis, Output
from vaswani_jax.inference.scoring import Scored
from vaswani_jax.inference.translator import Translator

# The number of lines whose attention is in memory at once.
LINES_WITH_ATTENTION = 64


class Block(NamedTuple):
    """Lines that are translated together.

    Attributes:
        lines: The source lines.
        prefixes: What their translations begin with; None for anything.
        constraints: The phrases that each translation must have, separated by tabs;
            None for none.
    """

    lines: list[str]
    prefixes: list[str] | None = None
    constraints: list[str] | None = None


@dataclasses.dataclass(frozen=True)
class DecodeOptions:
    """Options of `decode`, as its flags of these names say.

    Attributes:
        form: Of `formats.FORMATS`.
        num_hypotheses: How many translations of a line.
        token_scores: Whether to write each subword's log-probability.
        alignments: A file for word alignments; "" for none.
        attention: An .npz file for attention weights; "" for none.
        aligning_layer: The decoder's layer that aligns, from 1; None for the default.
        mbr: The utility of minimum-Bayes-risk decoding, one of
            `minimum_bayes_risk.UTILITIES`; None for the search's best.
        is_reranked: Whether other scores are added to those of the search.
        placeholders: The pattern of what translations have of their sources; None for
            none.
        num_candidates: How many hypotheses `mbr` and reranking choose from; None for
            the default.
        glossary: The translations of terms; None for none.
    """

    form: str
    num_hypotheses: int
    token_scores: bool
    alignments: str
    attention: str
    aligning_layer: int | None
    mbr: str | None = None
    is_reranked: bool = False
    num_candidates: int | None = None
    placeholders: str | None = None
    glossary: Glossary | None = None

    def check(self, search: config.SearchConfig) -> None:
        """Refuse options that contradict one another.

        Raises:
            ValueError: Names the flag, its value and the rule.
        """
        arguments.check_n_best(self.num_hypotheses, search, name="--num_hypotheses")
        if self.num_hypotheses > 1 and self.form == "text":
            raise ValueError("--format=text has one hypothesis: use tsv or json")
        if self.token_scores and self.form != "json":
            raise ValueError("--token_scores needs --format=json")
        if self.attention == "-":
            raise ValueError("--attention=-: name a file")
        if self.aligning_layer is not None and not self.alignments:
            raise ValueError("--aligning_layer needs --alignments")
        if self.placeholders is not None:
            phrases.compile_placeholders(self.placeholders, name="--placeholders")
        if self.mbr and self.is_reranked:
            raise ValueError("--mbr and reranking cannot be combined: leave one out")
        if self.num_candidates is None:
            return
        if not (self.mbr or self.is_reranked):
            raise ValueError(
                "--num_candidates needs --mbr, --rerank_with, --rerank_reverse or "
                "--length_reward"
            )
        arguments.check_n_best(self.num_candidates, search, name="--num_candidates")
        if self.num_candidates < self.num_hypotheses:
            raise ValueError(
                f"--num_candidates={self.num_candidates} is less than "
                f"--num_hypotheses={self.num_hypotheses}; increase it"
            )

    def candidates(self, search: config.SearchConfig) -> int:
        """Return how many hypotheses of a line to search or draw."""
        if not (self.mbr or self.is_reranked):
            return self.num_hypotheses
        return self.num_candidates or max(self.num_hypotheses, search.beam_size)


class TranslationJob:
    """Translates blocks of lines, and counts the lines, also unusual ones."""

    def __init__(
        self,
        translator: Translator,
        options: DecodeOptions,
        *,
        reranking: Reranking | None = None,
    ) -> None:
        """Find the layers whose attention the options need.

        Args:
            translator: The model.
            options: What to write.
            reranking: What is added to the scores if the options say so.

        Raises:
            ValueError: The models have no such layer, or differ in their heads; the
                outputs are trees and have no alignment, or cannot be reranked; or
                `Reranking.check` or `PhraseFinder` refuses.
        """
        self._translator, self._options = translator, options
        self._reranking = reranking
        if options.mbr:
            check_translates(translator)
        if reranking:
            reranking.check(translator)
        if options.glossary:
            translator.phrase_finder(None, glossary=options.glossary).check_glossary()
        if options.placeholders is not None:
            translator.phrase_finder(options.placeholders).check_search()
        if options.alignments and translator.vocabulary.is_trees:
            raise ValueError(
                "--alignments needs a run that translates, this one parses; use "
                "--attention"
            )
        models = [member.model for member in translator.members]
        num_layers = min(model.decoder_layers for model in models)
        self._aligning_layer = alignment.default_layer(num_layers)
        if options.aligning_layer is not None:
            self._aligning_layer = options.aligning_layer - 1
        if not 0 <= self._aligning_layer < num_layers:
            raise ValueError(
                f"--aligning_layer={options.aligning_layer} must be from 1 to "
                f"{num_layers}"
            )
        heads = {model.num_heads for model in models}
        if len(heads) > 1 and (options.attention or options.alignments):
            raise ValueError(
                "--attention and --alignments need models of one number of heads, got "
                f"{sorted(heads)}"
            )
        # The layers whose attention is kept, by its kind, of `scoring.KINDS`.
        self._layers: dict[str, list[int]] = {}
        if options.attention:
            for kind in scoring.KINDS:
                depth = min(scoring.depth(model, kind) for model in models)
                self._layers[kind] = list(range(depth))
        elif options.alignments:
            self._layers["memory"] = [self._aligning_layer]
        self.num_lines = 0
        self.warnings = line_warnings.LineWarnings(
            translator.vocabulary, translator.config
        )

    def run(self, blocks: Iterable[Block]) -> Iterator[list[str]]:
        """Yield the written lines of each block, in order."""
        options = self._options
        with contextlib.ExitStack() as stack:
            aligned_file: io.BufferedIOBase | None = None
            archive: zipfile.ZipFile | None = None
            if options.alignments:
                file = line_io.open_output(options.alignments)
                aligned_file = stack.enter_context(file)
            if options.attention:
                archive = zipfile.ZipFile(options.attention, "w")
                stack.enter_context(archive)
            for block in blocks:
                lines = block.lines
                hypotheses = self._find(block)
                terms = [line.replace("\t", " ") for line in block.constraints or []]
                self.warnings.count(lines, targets=[*(block.prefixes or []), *terms])
                self.warnings.count_hypotheses(hypotheses)
                formatted = []
                scored_lines = self._score(hypotheses)
                for source, n_best, line_scores in zip(
                    lines, hypotheses, scored_lines, strict=True
                ):
                    self.num_lines += 1
                    if aligned_file is not None:
                        alignment_line = self._align(
                            source, n_best[0].outputs, line_scores
                        )
                        aligned_file.write(f"{alignment_line}\n".encode())
                    if archive is not None:
                        self._write_attention(
                            n_best[0].outputs, line_scores, archive=archive
                        )
                    line = formats.format_translation(
                        self.num_lines,
                        n_best,
                        scored=line_scores if options.token_scores else None,
                        form=options.form,
                    )
                    formatted.append(line)
                if aligned_file is not None:
                    aligned_file.flush()
                yield formatted

    def _find(self, block: Block) -> list[list[Hypothesis]]:
        """Return the hypotheses to write of each line, in order."""
        options, settings = self._options, self._translator.config
        lines, terms = block.lines, None
        if block.constraints is not None:
            terms = phrases.split_constraints(block.constraints)
        hypotheses = self._translator.hypotheses(
            lines,
            n_best=options.candidates(settings.search),
            prefixes=block.prefixes,
            constraints=terms,
            glossary=options.glossary,
            placeholders=options.placeholders,
            first_line=self.num_lines + 1,
        )
        if options.mbr:
            hypotheses = minimum_bayes_risk.rank_lines(
                lines,
                hypotheses,
                utility=options.mbr,
                data=settings.data,
                search=settings.search,
            )
        elif self._reranking:
            hypotheses = rerank(
                lines,
                hypotheses,
                reranking=self._reranking,
                settings=settings,
            )
        line_warnings.warn_of_missing_phrases(hypotheses, first_line=self.num_lines + 1)
        return [n_best[: options.num_hypotheses] for n_best in hypotheses]

    def _score(
        self, hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> Iterator[list[Scored]]:
        """Yield the scores of each line's outputs, piece by piece.

        Without `token_scores` only the best hypothesis is scored, for its attention.
        The attention of only a few lines is in memory at once.
        """
        if not (self._layers or self._options.token_scores):
            yield from ([] for _ in hypotheses)
            return
        count = None if self._options.token_scores else 1
        outputs = [
            [output for hypothesis in n_best[:count] for output in hypothesis.outputs]
            for n_best in hypotheses
        ]
        num_lines = LINES_WITH_ATTENTION if self._layers else max(1, len(outputs))
        for start in range(0, len(outputs), num_lines):
            part = outputs[start : start + num_lines]
            pairs = [(output.source, output.ids) for line in part for output in line]
            scores = iter(self._translator.score_ids(pairs, layers=self._layers))
            yield from ([next(scores) for _ in line] for line in part)

    def _align(
        self, line: str, outputs: Sequence[Output], scored: Sequence[Scored]
    ) -> str:
        row = self._layers["memory"].index(self._aligning_layer)
        return alignment.align_line(
            line,
            outputs,
            [piece.attention["memory"][row] for piece in scored[: len(outputs)]],
            vocabulary=self._translator.vocabulary,
            separator=languages.piece_separator(line, self._translator.config.data),
        )

    def _write_attention(
        self,
        outputs: Sequence[Output],
        scored: Sequence[Scored],
        *,
        archive: zipfile.ZipFile,
    ) -> None:
        best = scored[: len(outputs)]
        pieces = zip(outputs, best, strict=True)
        for part, (output, piece) in enumerate(pieces, start=1):
            alignment.write_attention(
                archive,
                f"{self.num_lines}.{part}",
                output=output,
                weights=piece.attention,
                vocabulary=self._translator.vocabulary,
            )


class ScoringJob:
    """Scores blocks of pairs, and sums the scores up."""

    def __init__(self, translator: Translator, *, form: str) -> None:
        """Keep what every block needs; `form` is of `formats.FORMATS`."""
        self._translator, self._form = translator, form
        self.num_lines = self.num_tokens = 0
        self.log_prob = 0.0
        self.warnings = line_warnings.LineWarnings(
            translator.vocabulary, translator.config
        )

    def run(self, blocks: Iterable[tuple[list[str], ...]]) -> Iterator[list[str]]:
        """Yield the written scores of each block of pairs.

        Raises:
            ValueError: As `Translator.score`.
        """
        for sources, targets in blocks:
            first = self.num_lines + 1
            scores = self._translator.score(sources, targets, first_line=first)
            self.warnings.count(sources, targets=targets)
            yield [
                formats.format_score(number, score, form=self._form)
                for number, score in enumerate(scores, start=first)
            ]
            self.num_lines += len(scores)
            self.num_tokens += sum(len(score.tokens) for score in scores)
            self.log_prob += sum(score.log_prob for score in scores)

    def summary(self) -> str:
        """Return the sums over all pairs, one line for the log."""
        perplexity = formats.perplexity(self.log_prob, self.num_tokens)
        return (
            f"{plurals.format_count(self.num_lines, 'pair')}, "
            f"{plurals.format_count(self.num_tokens, 'token')}, log P "
            f"{self.log_prob:.4f}, perplexity {perplexity:.4f}"
        )
