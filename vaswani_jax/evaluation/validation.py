"""Section 6: loss and perplexity on held-out pairs."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from vaswani_jax.core import config, parallel, types
from vaswani_jax.data import batching, token_files
from vaswani_jax.evaluation import bleu
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.training import loss, step

# Small enough for a device that trains in parts, too.
TOKENS_OF_A_DEVICE = 4096


def batches(settings: config.Config, corpus: token_files.Corpus) -> batching.Batches:
    """Those whose loss is computed: every pair once, in the corpus's order."""
    data = settings.data
    tokens = max(data.max_length, TOKENS_OF_A_DEVICE * parallel.num_devices())
    return batching.Batches(
        corpus,
        source_tokens=min(data.source_tokens_per_batch, tokens),
        target_tokens=min(data.target_tokens_per_batch, tokens),
        num_buckets=max(1, data.num_buckets // 2),
        max_length=data.max_length,
        seed=settings.seed,
        shuffle=False,
    )


def loss_evaluator(
    settings: config.Config,
    held_out: batching.Batches,
    *,
    vocab_size: int,
    name: str,
) -> types.Evaluator:
    """A function from parameters to `name`/loss, /perplexity and /accuracy.

    Every pair counts once; the perplexity is that of the plain likelihood.
    """
    run = _on_devices(settings, vocab_size)
    own = functools.partial(parallel.own_rows, multiple=1)

    def evaluate(params: Any) -> Mapping[str, float]:
        total = loss.LossSums.zero()
        for index in range(held_out.batches_per_epoch):
            rows = parallel.split_rows(held_out.batch_at(index, own), multiple=1)
            total = total + parallel.gather(run(params, rows))
        means = loss.per_token(total)
        return {
            f"{name}/{key}": means[key] for key in ("loss", "perplexity", "accuracy")
        }

    return evaluate


@functools.cache
def _on_devices(settings: config.Config, vocab_size: int) -> Callable[..., Any]:
    """One function for every split, so that what is compiled for one serves another."""
    run = step.loss_step(settings, vocab_size=vocab_size)
    return parallel.over_devices(run, donate_state=False)


def score(
    data: config.DataConfig, outputs: Sequence[str], references: Sequence[str]
) -> list[bleu.Score]:
    """All scores of an output, the form of the text being that of the data."""
    return bleu.score_all(
        outputs,
        references,
        text_form=cast(bleu.TextForm, data.text_form),
        target_language=bleu.of(data.target_locale),
        lowercase=data.lowercase_scores,
    )


def bleu_evaluator(
    data: config.DataConfig,
    translator: LineTranslator,
    text: tuple[list[str], list[str]],
    *,
    name: str,
) -> Callable[[Any], Mapping[str, float]]:
    """A function from parameters to `name`/bleu.

    It is the first score of `score`: sacreBLEU, or tokenised BLEU for tokenised text.
    No line is left out.
    """
    source, references = text

    def evaluate(params: Any) -> Mapping[str, float]:
        outputs = translator.translate(params, source)
        found = score(data, outputs, references)
        return {f"{name}/bleu": found[0].value}

    return evaluate
