"""Section 6.1: pairs of lines to what a model thinks of them."""

from collections.abc import Iterable, Iterator

import numpy as np

from vaswani_jax.core import config, types
from vaswani_jax.inference import ensembles, forced, formats


class Scoring:
    """Scores blocks of pairs; counts what there is to tell at the end."""

    def __init__(
        self, settings: config.Config, ensemble: ensembles.Ensemble, *, form: str
    ) -> None:
        search = settings.search
        # What the search takes and what it can give.
        self._longest = {
            "--input": search.max_source_tokens,
            "--target": search.max_source_tokens + search.max_extra_tokens,
        }
        self._ensemble, self._form = ensemble, form
        self._scorer = forced.Scorer(
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
