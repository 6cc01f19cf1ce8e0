"""Section 6: loss and perplexity on held-out pairs."""

from collections.abc import Callable, Mapping
from typing import Any

from vaswani_jax.core import config, parallel
from vaswani_jax.data import batching, token_files
from vaswani_jax.training import loss, step

Evaluator = Callable[[Any], Mapping[str, float]]


def loss_evaluator(
    settings: config.Config,
    corpus: token_files.Corpus,
    *,
    vocab_size: int,
    name: str,
) -> Evaluator:
    """A function from parameters to `name`/loss, /perplexity and /accuracy.

    Every pair counts once; the perplexity is that of the plain likelihood.
    """
    data = settings.data
    batches = batching.Batches(
        corpus,
        source_tokens=data.source_tokens_per_batch,
        target_tokens=data.target_tokens_per_batch,
        num_buckets=max(1, data.num_buckets // 2),
        max_length=data.max_length,
        seed=settings.seed,
        shuffle=False,
    )
    run = parallel.over_devices(
        step.loss_step(settings, vocab_size=vocab_size), donate_state=False
    )

    def evaluate(params: Any) -> Mapping[str, float]:
        total = loss.LossSums.zero()
        for index in range(batches.batches_per_epoch):
            rows = parallel.split_rows(batches.batch_at(index), multiple=1)
            total = total + parallel.gather(run(params, rows))
        means = loss.per_token(total)
        return {
            f"{name}/{key}": means[key] for key in ("loss", "perplexity", "accuracy")
        }

    return evaluate
