"""Choose sacreBLEU's metrics for a text, and bootstrap their scores."""

import contextlib
import dataclasses
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sacrebleu
from sacrebleu import significance

from vaswani_jax.core import locales
from vaswani_jax.core.config import DataConfig
from vaswani_jax.evaluation import bleu

RESAMPLES = 1000
# The environment variable that sacreBLEU reads its seed from, and its default.
SEED_VARIABLE, DEFAULT_SEED = "SACREBLEU_SEED", "12345"


@dataclasses.dataclass(frozen=True)
class Metric:
    """One of sacreBLEU's metrics, for text of one form and language.

    Attributes:
        name: As the name of `bleu.Score`.
        label: sacreBLEU's name.
        scorer: sacreBLEU's object.
        prepare: Turns lines into those that the scorer reads.
        signature: The signature of multi-bleu; "" for the scorer's own.
        lower_is_better: True for an error rate.
    """

    name: str
    label: str
    scorer: Any
    prepare: Callable[[Sequence[str]], list[str]] = list
    signature: str = ""
    lower_is_better: bool = False

    def score(
        self, outputs: Sequence[str], references: Sequence[str], *, resamples: int
    ) -> bleu.Score:
        """Return the score; with resamples, also the 95% interval of its bootstrap."""
        outputs, references = self.prepare(outputs), self.prepare(references)
        if not resamples:
            value = self.scorer.corpus_score(outputs, [references]).score
            return bleu.Score(self.name, float(value), self.full_signature)
        # A paired test of one system is its bootstrap. That of `corpus_score` fails
        # where some resamples score 0, an int beside float32 (sacreBLEU 2.6.0).
        with without_messages():
            bootstrap: Any = significance.PairedTest(
                [("", outputs)],
                {self.name: self.scorer},
                [references],
                test_type="bs",
                n_samples=resamples,
            )
            signatures, results = bootstrap()
        [(label, [result])] = [item for item in results.items() if item[0] != "System"]
        interval = bleu.Interval(
            mean=float(result.mean),
            half_width=float(result.ci),
            resamples=resamples,
            seed=str(signatures[label].info["seed"]),
        )
        return bleu.Score(self.name, float(result.score), self.full_signature, interval)

    @property
    def full_signature(self) -> str:
        """The signature, with the name of the score; complete after a first score."""
        return self.signature or f"{self.label}|{self.scorer.get_signature()}"


def read_seed() -> str:
    """Return the seed of sacreBLEU's draws, in small letters: a number, or "none".

    "none" gives other draws each time.

    Raises:
        ValueError: The environment has another seed.
    """
    seed = os.environ.get(SEED_VARIABLE, DEFAULT_SEED).lower()
    try:
        is_seed = seed == "none" or int(seed) >= 0
    except ValueError:
        is_seed = False
    if not is_seed:
        raise ValueError(
            f"the environment variable {SEED_VARIABLE} must be a whole number from 0, "
            f"or none for other draws each time, got {seed!r}; unset it for "
            f"{DEFAULT_SEED}"
        )
    return seed


@contextlib.contextmanager
def without_messages() -> Iterator[None]:
    """Log only warnings of sacreBLEU, which logs each step of a test."""
    logger = logging.getLogger("sacrebleu")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def find_metrics(references: Sequence[str], *, data: DataConfig) -> list[Metric]:
    """Return the metrics of a text, the main one first.

    Detokenized text has BLEU, chrF2, chrF++ and TER, the last two only if spaces
    separate its words. Tokenized text has multi-bleu's BLEU of the words as given, and
    chrF2 alone if no spaces separate them; see `bleu.corpus_scores`.
    """
    lowercase = data.lowercase_scores
    ending = "_lc" if lowercase else ""
    chrf = Metric(f"chrf{ending}", "chrF2", sacrebleu.CHRF(lowercase=lowercase))
    if not bleu.has_words(references, data=data):
        return [chrf]
    if data.text_form == "tokenized":
        return [
            Metric(
                f"tokenized_bleu{ending}",
                "BLEU",
                bleu.words_bleu(lowercase=lowercase),
                prepare=bleu.join_words,
                signature=bleu.words_signature(lowercase=lowercase),
            )
        ]
    tokenizer = locales.bleu_tokenizer(data.target_locale, references)
    scorer = bleu.sacrebleu_bleu(tokenizer, lowercase=lowercase)
    metrics = [Metric(f"sacrebleu{ending}", "BLEU", scorer), chrf]
    if tokenizer not in bleu.WITHOUT_WORDS:
        word_chrf = sacrebleu.CHRF(word_order=2, lowercase=lowercase)
        # sacreBLEU's TER ignores case by default.
        ter = Metric("ter", "TER", sacrebleu.TER(), lower_is_better=True)
        metrics += [Metric(f"chrf++{ending}", "chrF2++", word_chrf), ter]
    return metrics
