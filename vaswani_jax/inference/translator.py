"""Translate and inspect attention with trained models."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vaswani_jax.core import languages, parsing, types
from vaswani_jax.core.config import Config
from vaswani_jax.inference import (
    arguments,
    ensemble,
    line_translator,
    line_warnings,
    loaded_models,
    minimum_bayes_risk,
    plain_text,
    reranking,
    trees,
)
from vaswani_jax.inference.glossary import Glossary
from vaswani_jax.inference.phrases import PhraseFinder, mark_missing
from vaswani_jax.inference.results import AttendedPair, Attention, Hypothesis
from vaswani_jax.inference.search_record import SearchRecord


class Translator(loaded_models.LoadedModels):
    """One model, or several together, ready to translate; `vaswani_jax.load` makes it.

    Attributes:
        config: All settings of the run, with the overrides of `load`.
        vocabulary: The `Vocabulary`: text to ids and back.
        members: The models that translate together, each a `Member`; most translators
            have one.
    """

    def translate(
        self,
        lines: Iterable[str],
        *,
        constraints: Sequence[Sequence[str]] | None = None,
        glossary: Mapping[str, str] | None = None,
        placeholders: str | None = None,
        **search: Any,
    ) -> list[str]:
        """Return the best translation of each line.

        Warns of unusually long lines, cut translations, repaired trees, missing
        phrases, and characters that the vocabulary lacks (logger `vaswani_jax`).

        Args:
            lines: Source lines. One string alone is an error.
            constraints: The phrases that each line's translation must have; see
                `hypotheses`.
            glossary: The translations of terms; see `hypotheses`.
            placeholders: A regular expression; the translation keeps its matches.
            **search: Settings of `config.search` for this call, as `beam_size=8`.

        Raises:
            TypeError, ValueError: As `hypotheses`.
        """
        best_hypotheses = self.best_hypotheses(
            lines,
            constraints=constraints,
            glossary=glossary,
            placeholders=placeholders,
            **search,
        )
        return [best.text for best in best_hypotheses]

    def best_hypotheses(
        self,
        lines: Iterable[str],
        *,
        constraints: Sequence[Sequence[str]] | None = None,
        glossary: Mapping[str, str] | None = None,
        placeholders: str | None = None,
        **search: Any,
    ) -> list[Hypothesis]:
        """Return the best hypothesis of each line; all else is as in `translate`."""
        # Fail before the search: `search` may hold arguments of `hypotheses` alone.
        settings = self._override(search)
        lines = arguments.check_lines(lines, "lines")
        hypotheses = self.hypotheses(
            lines,
            constraints=constraints,
            glossary=glossary,
            placeholders=placeholders,
            **search,
        )
        line_warnings.warn_of_missing_phrases(hypotheses, first_line=1)
        warnings = line_warnings.LineWarnings(self.vocabulary, settings)
        warnings.count(lines)
        warnings.count_hypotheses(hypotheses)
        warnings.log()
        return [n_best[0] for n_best in hypotheses]

    def hypotheses(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None,
        glossary: Mapping[str, str] | None = None,
        placeholders: str | None = None,
        first_line: int = 1,
        **search: Any,
    ) -> list[list[Hypothesis]]:
        """Return the best translations of each line, best first; samples as drawn.

        The search may find fewer than `n_best`; an empty line has one. A hypothesis
        names the phrases that it lacks.

        Args:
            lines: Source lines. One string alone is an error.
            n_best: How many to return for a line, at most the beam size.
            prefixes: The text that each line's translations begin with; "" for none.
                Trees have none.
            constraints: The phrases that each line's translations must have, as often
                as they are listed: `[["Vertrag"], []]` for two lines.
            glossary: The translations of terms, `{"contract": "Vertrag"}`. A
                translation has that of each term as often as the source line has the
                term. A term is whole words; in lower case it matches any
                capitalisation, else only itself.
            placeholders: A regular expression. A translation has each of its matches as
                often as the source line.
            first_line: The number of the first line, from 1: random samples and error
                messages depend on a line's number.
            **search: Settings of `config.search` for this call, as `beam_size=8`.

        Raises:
            TypeError: `lines`, `prefixes` or the phrases of a line are one string; or a
                line, a prefix, a phrase, a term or `placeholders` is no string.
            ValueError: A setting is unknown; a setting or `n_best` is out of range. The
                numbers of lines, prefixes and constraints differ. A prefix is too long,
                or is for a parser. A line lacks the tag of one of several target
                languages. A term is empty or appears twice, or `placeholders` is no
                regular expression. A phrase cannot be written, see `PhraseFinder.find`.
                Or the parameters are not finite numbers.
        """
        settings = self._override(search)
        lines, prefixes = self._check(
            lines, prefixes, settings=settings, first_line=first_line
        )
        translator = self._line_translator(settings, n_best=n_best)
        if constraints is not None:
            constraints = arguments.read_constraints(lines, constraints)
        phrases = None
        if any(part is not None for part in (constraints, glossary, placeholders)):
            finder = self.phrase_finder(
                placeholders, glossary=glossary, settings=settings
            )
            phrases = finder.find(lines, constraints, first_line=first_line)
        hypotheses = translator.hypotheses(
            self.replicated_params,
            lines,
            prefixes=prefixes,
            phrases=phrases,
            first_line=first_line,
        )
        return hypotheses if phrases is None else mark_missing(hypotheses, phrases)

    def phrase_finder(
        self,
        placeholders: str | None,
        *,
        glossary: Mapping[str, str] | None = None,
        settings: Config | None = None,
    ) -> PhraseFinder:
        """Return what finds the phrases that translations must have.

        Args:
            placeholders: The pattern of placeholders; None for none.
            glossary: The translations of terms; None for none.
            settings: Those of the translator, if None.

        Raises:
            TypeError, ValueError: As `Glossary`.
        """
        if glossary is not None and not isinstance(glossary, Glossary):
            glossary = Glossary(glossary)
        return PhraseFinder(
            vocabulary=self.vocabulary,
            settings=settings or self.config,
            models=self._models,
            placeholders=placeholders,
            glossary=glossary,
        )

    def minimum_bayes_risk(
        self,
        lines: Iterable[str],
        *,
        utility: str = "chrf",
        num_candidates: int | None = None,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None,
        glossary: Mapping[str, str] | None = None,
        placeholders: str | None = None,
        first_line: int = 1,
        **search: Any,
    ) -> list[list[Hypothesis]]:
        """Return candidates of each line by their expected utility, the best first.

        The candidates are the n best, which count by their probabilities, or with
        `sampling=True` samples, which count equally.

        >>> translator.minimum_bayes_risk(  # doctest: +SKIP
        ...     ["3 hours ago"], num_candidates=16, sampling=True
        ... )[0][0].text
        'vor 3 Stunden'

        Args:
            lines: Source lines. One string alone is an error.
            utility: "chrf" or "bleu", as sacreBLEU scores a sentence.
            num_candidates: How many candidates of a line; by default the beam size.
            prefixes: As for `hypotheses`, like all further arguments.
            constraints: The phrases that each line's translations must have.
            glossary: The translations of terms.
            placeholders: A regular expression; the translation keeps its matches.
            first_line: The number of the first line, from 1.
            **search: Settings of `config.search` for this call.

        Raises:
            TypeError, ValueError: As `hypotheses`; or there is no such utility, or the
                outputs are trees.
        """
        minimum_bayes_risk.check_utility(utility)
        reranking.check_translates(self)
        settings = self._override(search)
        if num_candidates is None:
            num_candidates = settings.search.beam_size
        arguments.check_n_best(num_candidates, settings.search, name="num_candidates")
        lines = arguments.check_lines(lines, "lines")
        hypotheses = self.hypotheses(
            lines,
            n_best=num_candidates,
            prefixes=prefixes,
            constraints=constraints,
            glossary=glossary,
            placeholders=placeholders,
            first_line=first_line,
            **search,
        )
        return minimum_bayes_risk.rank_lines(
            lines,
            hypotheses,
            utility=utility,
            data=settings.data,
            search=settings.search,
        )

    def rerank(
        self,
        lines: Iterable[str],
        hypotheses: Sequence[Sequence[Hypothesis]],
        *,
        forward: "Translator | None" = None,
        forward_weight: float = 1.0,
        reverse: "Translator | None" = None,
        reverse_weight: float = 1.0,
        length_reward: float = 0.0,
        **search: Any,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line by their score and what is added to it.

        >>> n_best = translator.hypotheses(lines, n_best=4)  # doctest: +SKIP
        >>> translator.rerank(lines, n_best, reverse=reverse)  # doctest: +SKIP

        Args:
            lines: Source lines.
            hypotheses: What `hypotheses` returned for them.
            forward: A translator of the same direction, perhaps an ensemble: its log
                P(Y|X) / lp(Y) is added.
            forward_weight: What that is multiplied by.
            reverse: A translator of the other direction: its log P(X|Y) / lp(X) is
                added.
            reverse_weight: What that is multiplied by.
            length_reward: What each subword of a translation adds, in nats.
            **search: The settings of `config.search` that `hypotheses` had.

        Returns:
            The same hypotheses in another order, each with its `rank_score`. A line
            that is too long for a model stays as it is, with a warning.

        Raises:
            TypeError: `lines` is one string, or not all are strings.
            ValueError: A setting is unknown or out of range; a line lacks its tag; the
                numbers of lines differ; a weight is no number; a model parses or has
                other languages; or its parameters are not finite numbers.
        """
        options = reranking.Reranking(
            forward=forward,
            forward_weight=forward_weight,
            reverse=reverse,
            reverse_weight=reverse_weight,
            length_reward=length_reward,
        )
        options.check(self)
        lines = arguments.check_lines(lines, "lines")
        arguments.check_equal_numbers(lines=lines, hypotheses=hypotheses)
        languages.check_tags(lines, self.config.data, first_line=1)
        settings = self._override(search)
        return reranking.rerank(lines, hypotheses, reranking=options, settings=settings)

    def record_search(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        **search: Any,
    ) -> list[list[SearchRecord]]:
        """Return how the translations of each line are searched, position by position.

        A line has a record for each of its pieces: one, unless it is too long or empty.
        The arguments are those of `hypotheses`.

        Raises:
            TypeError: `lines` is one string, or not all are strings.
            ValueError: The settings draw outputs at random; or as `hypotheses`.
        """
        settings = self._override(search)
        if settings.search.sampling:
            raise ValueError(
                "config.search.sampling=True draws outputs at random: there is no "
                "search to record"
            )
        lines, prefixes = self._check(
            lines, prefixes, settings=settings, first_line=first_line
        )
        translator = self._line_translator(settings, n_best=n_best)
        return translator.record_search(
            self.replicated_params, lines, prefixes=prefixes, first_line=first_line
        )

    def tokenize(self, lines: Iterable[str]) -> list[str]:
        """Return plain text as lines that a parser translates: tokens with spaces.

        Only for models of trees; see `plain_text.tokenize`. NLTK splits the lines.

        Args:
            lines: Plain text, a sentence each. One string alone is an error.

        Raises:
            TypeError: `lines` is one string, or not all are strings.
            ValueError: The model does not parse.
            ImportError: NLTK is not installed.
        """
        lines = arguments.check_lines(lines, "lines")
        plain_text.check_is_parser(self.config.data, name="tokenize")
        return plain_text.tokenize(lines)

    def attention(self, source: str, target: str | None = None) -> Attention:
        """Return all attention weights for a sentence and its translation.

        Args:
            source: A source line.
            target: Its translation; by default the line is translated first.

        Raises:
            TypeError: `source` or `target` is no string.
            ValueError: A line is too long for the search or lacks its tag; the target
                should be a tree over the source's words and is none; the models of an
                ensemble differ in their numbers of layers or heads; or the parameters
                are not finite numbers.
        """
        targets = None if target is None else [target]
        [pair] = self.attend([source], targets)
        return pair.attention

    def attend(
        self,
        sources: Iterable[str],
        targets: Iterable[str] | None = None,
        *,
        first_line: int = 1,
    ) -> list[AttendedPair]:
        """Return sentences with their translations, scores and attention weights.

        Args:
            sources: Source lines.
            targets: A translation of each; by default the best that the search finds.
            first_line: The number of the first line in error messages.

        Raises:
            TypeError, ValueError: As `attention`; or the numbers of lines differ.
        """
        layers = self.attended_layers()
        sources = arguments.check_lines(sources, "sources")
        if targets is not None:
            targets = arguments.check_lines(targets, "targets")
            arguments.check_equal_numbers(sources=sources, targets=targets)
            if self.vocabulary.is_trees:
                trees.check_trees(sources, targets, first_line=first_line)
        texts = [""] * len(sources) if targets is None else list(targets)
        pairs = self._encode(sources, texts, first_line=first_line)
        if targets is None:
            hypotheses = self.hypotheses(sources, first_line=first_line)
            for number, [hypothesis] in enumerate(hypotheses):
                texts[number] = hypothesis.text
                # A line without a subword has no output: its pair is two end marks.
                for output in hypothesis.outputs:
                    pairs[number] = (output.source, output.ids)
        scored_pairs = self.score_ids(pairs, layers=layers)
        for number, scored_pair in enumerate(scored_pairs, start=first_line):
            loaded_models.check_finite(scored_pair.log_probs, line=number)
        subwords, target_subwords = self.vocabulary.source, self.vocabulary.target
        return [
            AttendedPair(
                text=text,
                source=tuple(source),
                ids=tuple(ids),
                log_probs=tuple(float(log_prob) for log_prob in scored_pair.log_probs),
                attention=Attention(
                    source=loaded_models.spell(subwords, [*source, types.EOS_ID]),
                    target_in=loaded_models.spell(
                        target_subwords, [types.BOS_ID, *ids[:-1]]
                    ),
                    target_out=loaded_models.spell(target_subwords, ids),
                    **scored_pair.attention,
                ),
            )
            for text, (source, ids), scored_pair in zip(
                texts, pairs, scored_pairs, strict=True
            )
        ]

    def _override(self, search: Mapping[str, Any]) -> Config:
        """Return the settings with changes to the search."""
        if not search:
            return self.config
        overrides = {f"search.{key}": value for key, value in search.items()}
        settings = parsing.override(self.config, overrides)
        ensemble.check_positions(settings, self.members)
        return settings

    def _check(
        self,
        lines: Iterable[str],
        prefixes: Sequence[str] | None,
        *,
        settings: Config,
        first_line: int,
    ) -> tuple[list[str], list[str] | None]:
        lines = arguments.check_lines(lines, "lines")
        languages.check_tags(lines, settings.data, first_line=first_line)
        if prefixes is not None:
            prefixes = arguments.check_lines(prefixes, "prefixes")
            arguments.check_equal_numbers(lines=lines, prefixes=prefixes)
        return lines, prefixes

    def _line_translator(
        self, settings: Config, *, n_best: int
    ) -> line_translator.LineTranslator:
        arguments.check_n_best(n_best, settings.search)
        return line_translator.LineTranslator(
            settings, self.vocabulary, models=self._models, n_best=n_best
        )
