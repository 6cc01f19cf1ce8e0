"""Validate a model while it trains: loss, perplexity, and BLEU, or F1 of trees."""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from vaswani_jax.core import config, kept_programs, languages, parallel, types
from vaswani_jax.data import batching, prepared, token_files
from vaswani_jax.evaluation import bleu, by_language
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.training import loss

logger = logging.getLogger(__name__)

# Small enough for a device that trains in microbatches, too.
TOKENS_PER_DEVICE = 4096


def make_validators(
    settings: config.Config, data: prepared.PreparedData
) -> list[types.Evaluator]:
    """Return the evaluators of the validation set, if any, for the loop to call.

    Logs the shapes that they compile beside those of the training, and what BLEU counts
    for tokens.

    Raises:
        ValueError: BLEU would choose the best checkpoint, and has no meaning for the
            form of the text.
    """
    is_treebank = settings.data.source == "treebank"
    if "valid" not in data.counts:
        key = "valid_trees" if is_treebank else "valid_source"
        logger.info(
            f"note: no validation set (config.data.{key} is empty): no scores "
            "during training, no best checkpoint, and no early stopping"
        )
        return []
    text = data.text("valid")
    # The mean of several languages is no BLEU if one of them has none.
    by_locale = languages.references_by_locale(*text, settings.data)
    has_words = is_treebank or all(
        bleu.has_words(lines, data=settings.data) for lines in by_locale.values()
    )
    if settings.training.best_metric == "bleu" and not has_words:
        raise ValueError(
            f"config.training.best_metric=bleu: {bleu.UNSEGMENTED}, or "
            "config.training.best_metric=loss"
        )
    by_language.explain_tokens(*text, data=settings.data)
    batches = make_batches(settings, data.token_pairs("valid"))
    translator = LineTranslator(settings, data.vocabulary)
    searches = translator.shapes(text[0])
    logger.info(
        f"shapes of the validation ({batching.shape_notation(batches.shapes)}): "
        f"loss in {', '.join(map(str, batches.shapes))}; "
        f"search in {', '.join(f'{rows}x{length}' for rows, length in searches)}"
    )
    evaluators = [
        loss_evaluator(settings, batches, vocab_size=data.vocabulary.size, name="valid")
    ]
    if has_words:
        evaluators.append(
            score_evaluator(translator, text, data=settings.data, name="valid")
        )
    return evaluators


def make_batches(
    settings: config.Config, pairs: token_files.TokenPairs
) -> batching.Batches:
    """Return the batches for the loss: every pair once, in the order of the text."""
    data = settings.data
    tokens = max(data.max_length, TOKENS_PER_DEVICE * parallel.num_devices())
    return batching.BucketedBatches(
        pairs,
        source_tokens=min(data.source_tokens_per_batch, tokens),
        target_tokens=min(data.target_tokens_per_batch, tokens),
        num_buckets=max(1, data.num_buckets // 2),
        bucket_lengths=data.bucket_lengths,
        max_length=data.max_length,
        seed=settings.seed,
        shuffle=False,
    )


def loss_evaluator(
    settings: config.Config,
    batches: batching.Batches,
    *,
    vocab_size: types.VocabSize,
    name: str,
) -> types.Evaluator:
    """Return a function from parameters to `name`/loss, /perplexity and /accuracy.

    Every pair counts once. The perplexity is of the likelihood without smoothing.
    """
    loss_step = compile_loss_step(settings, vocab_size)
    local_rows = functools.partial(parallel.local_rows, num_microbatches=1)

    def evaluate(params: Any) -> Mapping[str, float]:
        sums = loss.LossSums.zero()
        for index in range(batches.batches_per_epoch):
            rows = parallel.split_rows(
                batches.batch_at(index, local_rows), num_microbatches=1
            )
            sums = sums + parallel.gather(loss_step(params, rows))
        means = loss.per_token(sums)
        return {
            f"{name}/{key}": means[key] for key in ("loss", "perplexity", "accuracy")
        }

    return evaluate


@functools.cache
def compile_loss_step(
    settings: config.Config, vocab_size: types.VocabSize
) -> Callable[..., Any]:
    """Return the loss on all devices, the same function for every split.

    A shape that was compiled for one split serves the others.
    """

    def loss_step(params: Any, batch: types.Batch) -> loss.LossSums:
        # Tracing needs it; a program that is kept is not traced.
        from vaswani_jax.training import step

        return step.loss_step(settings, vocab_size=vocab_size)(params, batch)

    identity = kept_programs.Identity(
        "loss",
        (settings, vocab_size),
        outputs=lambda params, batch: loss.LossSums.zero(),
    )
    return parallel.over_devices(loss_step, donate_state=False, identity=identity)


def score_evaluator(
    translator: LineTranslator,
    text: tuple[list[str], list[str]],
    *,
    data: config.DataConfig,
    name: str,
) -> types.Evaluator:
    """Return a function from parameters to `name`/bleu, or of trees `name`/f1.

    The score is the first of `by_language.score_outputs`: sacreBLEU, tokenized BLEU for
    tokenized text, or F1 for trees. It counts every line. Of several target languages
    it is the mean of theirs, which are metrics, too, as `name`/bleu[de].

    Args:
        translator: Translates the source lines.
        text: Source lines and their references.
        data: The form of the text and the language.
        name: Of the split.
    """
    source, references = text
    metric = "f1" if data.source == "treebank" else "bleu"

    def evaluate(params: Any) -> Mapping[str, float]:
        outputs = translator.translate(params, source)
        scores = by_language.scores_by_locale(source, outputs, references, data=data)
        metrics = {f"{name}/{metric}": by_language.mean_score(scores)}
        if len(languages.target_locales(data)) > 1:
            metrics |= {f"{name}/bleu[{key}]": scores[key][0].value for key in scores}
        return metrics

    return evaluate
