"""Section 6.1: blocks of lines to lines that are written, and files beside them."""

import collections
import contextlib
import dataclasses
import pathlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import numpy as np

from vaswani_jax.core import config, types
from vaswani_jax.inference import (
    alignment,
    constraints,
    formats,
    line_io,
    scoring,
    translator,
)
from vaswani_jax.inference import ensemble as ensemble_

Prefixed = tuple[list[str], list[str] | None]


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is written, as `decode`'s flags of these names say.

    `alignments` and `attention` are files, "" for none; `aligning_layer` counts the
    decoder's layers from 1, None being the default.
    """

    form: str
    num_hypotheses: int
    token_scores: bool
    alignments: str
    attention: str
    aligning_layer: int | None

    def check(self, search: config.SearchConfig) -> None:
        """Refuse what contradicts itself.

        Raises:
            ValueError: Names the flag, its value and the rule.
        """
        if self.num_hypotheses > search.beam_size and not search.sampling:
            raise ValueError(
                f"--num_hypotheses={self.num_hypotheses} is more than "
                f"config.search.beam_size={search.beam_size}"
            )
        if self.num_hypotheses > 1 and self.form == "text":
            raise ValueError("--format=text has one hypothesis: use tsv or json")
        if self.token_scores and self.form != "json":
            raise ValueError("--token_scores needs --format=json")
        if self.attention == "-":
            raise ValueError("--attention=-: name a file")
        if self.aligning_layer is not None and not self.alignments:
            raise ValueError("--aligning_layer is of --alignments")


class Translation:
    """Translates blocks of lines; counts what there is to tell at the end."""

    def __init__(
        self, settings: config.Config, ensemble: ensemble_.Ensemble, wanted: Wanted
    ) -> None:
        """Prepare.

        Raises:
            ValueError: No layer of the models is the one that should align.
        """
        self._settings, self._ensemble, self._wanted = settings, ensemble, wanted
        self._subwords = ensemble.subwords
        self._translator = translator.Translator(
            settings,
            ensemble.subwords,
            models=ensemble.models,
            num_hypotheses=wanted.num_hypotheses,
        )
        layers: list[int] = []
        count = min(model.num_layers for model in ensemble.models)
        self._aligning = alignment.default_layer(count)
        if wanted.aligning_layer is not None:
            self._aligning = wanted.aligning_layer - 1
        if not 0 <= self._aligning < count:
            raise ValueError(
                f"--aligning_layer={wanted.aligning_layer} must be from 1 to {count}"
            )
        heads = {model.num_heads for model in ensemble.models}
        if len(heads) > 1 and (wanted.attention or wanted.alignments):
            raise ValueError(
                "--attention and --alignments need models of one number of heads, got "
                f"{sorted(heads)}"
            )
        if wanted.attention:
            layers = list(range(count))
        elif wanted.alignments:
            layers = [self._aligning]
        self._row = layers.index(self._aligning) if layers else 0
        self._scorer = None
        if layers or wanted.token_scores:
            self._scorer = scoring.Scorer(
                ensemble.models, vocab_size=ensemble.subwords.size, layers=layers
            )
        self.lines = 0
        self.long: collections.Counter[str] = collections.Counter()

    def check_prefixes(self, name: str) -> None:
        """Refuse a file of prefixes, before work; a pipe cannot be read twice.

        Raises:
            ValueError: As `constraints.forced`.
        """
        first = 1
        for lines in line_io.blocks(name) if pathlib.Path(name).is_file() else ():
            constraints.forced(
                lines,
                subwords=self._subwords,
                search=self._settings.search,
                first_line=first,
            )
            first += len(lines)

    def run(self, blocks: Iterable[Prefixed]) -> Iterator[list[str]]:
        """What the lines of each block give, in order.

        Args:
            blocks: Lines and, if there are any, what their translations begin with.
        """
        with contextlib.ExitStack() as stack:
            aligned: IO[bytes] | None = None
            archive: zipfile.ZipFile | None = None
            if self._wanted.alignments:
                file = line_io.open_output(self._wanted.alignments)
                aligned = stack.enter_context(file)
            if self._wanted.attention:
                archive = zipfile.ZipFile(self._wanted.attention, "w")
                stack.enter_context(archive)
            for lines, prefixes in blocks:
                first = self.lines + 1
                several = self._translator.hypotheses(
                    self._ensemble.params, lines, prefixes=prefixes, first_line=first
                )
                self.long += translator.count_long(several, self._settings)
                scored = self._look_again(several)
                for number, found, again in zip(
                    range(first, first + len(lines)), several, scored, strict=True
                ):
                    best = list(zip(found[0].outputs, again, strict=False))
                    if aligned is not None:
                        aligned.write(f"{self._aligned(best)}\n".encode())
                    if archive is not None:
                        self._keep_attention(archive, number, best)
                if aligned is not None:
                    aligned.flush()
                yield [
                    formats.translation(
                        number,
                        found,
                        self._tokens(found, again),
                        form=self._wanted.form,
                    )
                    for number, (found, again) in enumerate(
                        zip(several, scored, strict=True), start=first
                    )
                ]
                self.lines += len(lines)

    def _look_again(
        self, several: Sequence[Sequence[translator.Hypothesis]]
    ) -> list[list[scoring.Scored]]:
        """Each line's outputs scored: all pieces of the hypotheses, in order.

        Those of the best alone, if no scores of the others are asked for.
        """
        if self._scorer is None:
            return [[] for _ in several]
        many = None if self._wanted.token_scores else 1
        outputs = [
            [output for one in found[:many] for output in one.outputs]
            for found in several
        ]
        pairs = [(output.source, output.ids) for line in outputs for output in line]
        scored = iter(self._scorer.score(self._ensemble.params, pairs))
        return [[next(scored) for _ in line] for line in outputs]

    def _tokens(
        self,
        found: Sequence[translator.Hypothesis],
        scored: Sequence[scoring.Scored],
    ) -> list[list[tuple[str, float]]] | None:
        if not self._wanted.token_scores:
            return None
        return formats.subwords_of(self._subwords, found, scored)

    def _aligned(self, best: Sequence[tuple[translator.Output, scoring.Scored]]) -> str:
        """The word alignment of a line."""
        found: list[tuple[int, int]] = []
        sources = self._source_words([output.source for output, _ in best])
        first = 0
        for (output, scored), source in zip(best, sources, strict=True):
            surfaces = alignment.surfaces(self._subwords, output.ids, written=True)
            target = alignment.words(surfaces, first=first)
            found += alignment.pharaoh(scored.attention[self._row], source, target)
            first = max([first, *(target + 1)])
        return " ".join(f"{source}-{target}" for source, target in found)

    def _source_words(self, pieces: Sequence[list[int]]) -> list[np.ndarray]:
        """The line's word that each subword of each piece belongs to."""
        surfaces = []
        for number, ids in enumerate(pieces):
            own = alignment.surfaces(self._subwords, ids, written=False)
            if number:  # What every piece begins with stands in the line once.
                count = self._subwords.num_marks(ids)
                own[:count] = [""] * count
            surfaces.append([*own, ""])  # the end mark
        words = alignment.words([one for own in surfaces for one in own], first=0)
        ends = np.cumsum([len(own) for own in surfaces])
        return np.split(words, ends)[: len(pieces)]

    def _keep_attention(
        self,
        archive: zipfile.ZipFile,
        number: int,
        best: Sequence[tuple[translator.Output, scoring.Scored]],
    ) -> None:
        """Arrays LINE.PIECE/attention `[L, H, T, S]`, and its /source and /target."""
        for piece, (output, scored) in enumerate(best, start=1):
            arrays = {
                "attention": scored.attention,
                "source": self._names([*output.source, types.EOS_ID]),
                "target": self._names(output.ids),
            }
            for name, array in arrays.items():
                with archive.open(f"{number}.{piece}/{name}.npy", "w") as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)

    def _names(self, ids: Sequence[int]) -> np.ndarray:
        return np.array([self._subwords.name(token) for token in ids], np.str_)


class Scoring:
    """Scores blocks of pairs; counts what there is to tell at the end."""

    def __init__(
        self, settings: config.Config, ensemble: ensemble_.Ensemble, *, form: str
    ) -> None:
        search = settings.search
        # What the search takes and what it can give.
        self._longest = {
            "--input": search.max_source_tokens,
            "--target": search.max_source_tokens + search.max_extra_tokens,
        }
        self._ensemble, self._form = ensemble, form
        self._scorer = scoring.Scorer(
            ensemble.models, vocab_size=ensemble.subwords.size, layers=()
        )
        self.lines = self.tokens = 0
        self.log_prob = 0.0

    def run(self, blocks: Iterable[tuple[list[str], list[str]]]) -> Iterator[list[str]]:
        """The written scores of each block of pairs.

        Raises:
            ValueError: A side of a pair has more tokens than a search would take or
                give, or the parameters are not finite numbers.
        """
        subwords = self._ensemble.subwords
        for sources, targets in blocks:
            first = self.lines + 1
            pairs = []
            sides = (subwords.encode(sources), subwords.encode(targets, target=True))
            for number, (source, target) in enumerate(zip(*sides, strict=True), first):
                self._check(number, "--input", source)
                self._check(number, "--target", target)
                pairs.append((source, [*target, types.EOS_ID]))
            found = self._scorer.score(self._ensemble.params, pairs)
            for number, one in enumerate(found, first):
                if not np.isfinite(one.log_probs).all():
                    raise ValueError(
                        f"line {number} has no probability: the parameters are not "
                        "finite numbers"
                    )
            yield [
                formats.score(
                    number,
                    scored,
                    [subwords.name(token) for token in ids],
                    form=self._form,
                )
                for number, (scored, (_, ids)) in enumerate(
                    zip(found, pairs, strict=True), start=first
                )
            ]
            self.lines += len(sources)
            self.tokens += sum(len(ids) for _, ids in pairs)
            self.log_prob += sum(
                float(np.sum(one.log_probs, dtype=np.float64)) for one in found
            )

    def summary(self) -> str:
        """All pairs in a line."""
        perplexity = formats.perplexity(self.log_prob, self.tokens)
        return (
            f"{self.lines:,} pairs, {self.tokens:,} tokens, log P {self.log_prob:.4f}, "
            f"perplexity {perplexity:.4f}"
        )

    def _check(self, number: int, flag: str, ids: list[int]) -> None:
        longest = self._longest[flag]
        if len(ids) >= longest:
            rule = "max_source_tokens"
            if flag == "--target":
                rule += " + config.search.max_extra_tokens"
            raise ValueError(
                f"{flag}, line {number}: {len(ids) + 1:,} tokens are more than "
                f"config.search.{rule} = {longest}"
            )
