"""Section 6.1: from rows of source ids to hypotheses, by search or by sampling."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, types
from vaswani_jax.inference import beam_search, brackets, logit_biases, sampling
from vaswani_jax.inference.banks import PhraseRows, RequiredPhrases

# Upper estimate of a tree's symbols per source token; GUM's mean is 1.9.
TREE_GROWTH = 3


class Rows(NamedTuple):
    """Sentences to translate, padded with `PAD_ID`.

    Attributes:
        source: Their ids, each with an end mark.
        prefix: What each output must begin with; P is 0 if none does.
        numbers: Two numbers that tell the rows apart to the random generator: equal
            numbers, equal samples.
        alpha: The exponent of each row's length penalty in a search; None if it is that
            of the settings.
        n_best: How many hypotheses of each row a search must settle; None if it is the
            generator's number.
        phrases: What each output of a search must have; None if no output must.
    """

    source: Any  # Int "*rows S"
    prefix: Any  # Int "*rows P"
    numbers: Any  # Int "*rows 2"
    alpha: Any = None  # Float "*rows"
    n_best: Any = None  # Int "*rows"
    phrases: PhraseRows | None = None


def make_generator(
    settings: config.Config,
    models: Sequence[config.ModelConfig],
    *,
    vocab_size: types.VocabSize,
    n_best: int,
) -> Callable[[Sequence[Any], Rows], types.Hypotheses]:
    """Return a function from the models' parameters and rows to hypotheses.

    Several models are an ensemble: each token's probability is the mean of theirs.

    Args:
        settings: How to search, and the seed of what is drawn at random.
        models: The architectures, in the order of their parameters.
        vocab_size: V.
        n_best: How many hypotheses of each row are wanted.
    """
    search = settings.search

    def run(params: Sequence[Any], rows: Rows) -> types.Hypotheses:
        task = make_task(
            settings,
            models,
            params=params,
            rows=rows,
            vocab_size=vocab_size,
            n_best=n_best,
        )
        if search.sampling:
            hypotheses = sampling.sample(
                task.stepper,
                task.caches,
                max_lengths=task.max_lengths,
                keys=_keys(settings.seed, rows.numbers),
                options=task.options,
                distribution=sampling.Distribution(
                    temperature=search.temperature,
                    top_k=search.top_k,
                    top_p=search.top_p,
                ),
                logit_bias=task.logit_bias,
            )
        else:
            hypotheses = beam_search.beam_search(
                task.stepper,
                task.caches,
                max_lengths=task.max_lengths,
                options=task.options,
                logit_bias=task.logit_bias,
                phrases=task.phrases,
                alpha=rows.alpha,
                n_best=rows.n_best,
            )
        if task.grammar and rows.prefix.shape[1]:
            is_possible = task.grammar.admits(rows.prefix)[:, None]
            scores = jnp.where(is_possible, hypotheses.scores, -jnp.inf)
            hypotheses = hypotheses._replace(scores=scores)
        return hypotheses

    return run


@dataclasses.dataclass(frozen=True)
class Task:
    """All parts of a search for the outputs of some rows, inside a traced program.

    Attributes:
        stepper: All models as one.
        caches: The stepper's state.
        max_lengths: Most tokens of each row's outputs, the end mark counted.
        options: How to search.
        logit_bias: What forbids tokens; None if nothing does.
        grammar: The part of it that makes outputs trees, if any does.
        phrases: The phrases that outputs must have; None if none must.
    """

    stepper: beam_search.Stepper
    caches: Any
    max_lengths: Int[Array, "B"]
    options: beam_search.SearchOptions
    logit_bias: beam_search.LogitBias | None
    grammar: brackets.TreeGrammar | None
    phrases: RequiredPhrases | None


class Plan(NamedTuple):
    """The part of a `Task` that does not depend on the parameters."""

    max_lengths: Int[Array, "B"]
    options: beam_search.SearchOptions


def make_plan(
    settings: config.Config,
    models: Sequence[config.ModelConfig],
    *,
    rows: Rows,
    vocab_size: types.VocabSize,
    n_best: int,
) -> Plan:
    """Return how rows are searched; the arguments are those of `make_task`."""
    search = settings.search
    max_lengths, max_length = _max_lengths(rows, search, models=models)
    growth = TREE_GROWTH if _trees(vocab_size) else 1
    typical_length = growth * rows.source.shape[1]
    options = beam_search.SearchOptions(
        beam_size=n_best if search.sampling else search.beam_size,
        n_best=n_best,
        alpha=search.length_penalty,
        penalty_form=search.length_penalty_form,
        min_length=search.min_tokens,
        buffer_lengths=_buffer_lengths(max_length, typical=typical_length),
        max_length=max_length,
    )
    return Plan(max_lengths, options)


def _trees(vocab_size: types.VocabSize) -> types.TreeIds | None:
    return vocab_size.trees if isinstance(vocab_size, types.VocabSizes) else None


def make_task(
    settings: config.Config,
    models: Sequence[config.ModelConfig],
    *,
    params: Sequence[Any],
    rows: Rows,
    vocab_size: types.VocabSize,
    n_best: int,
    caches: Any = None,
) -> Task:
    """Return the search for the outputs of rows by models with parameters.

    Args:
        settings: How to search.
        models: The architectures, in the order of their parameters.
        params: Those of each model.
        rows: The sentences.
        vocab_size: V.
        n_best: How many hypotheses of each row to return.
        caches: The state of a search that has begun; None encodes the rows.
    """
    # Tracing needs them; a program that is kept is not traced.
    from vaswani_jax.model import transformer

    search = settings.search
    networks = [transformer.Transformer(model, vocab_size) for model in models]
    max_lengths, options = make_plan(
        settings, models, rows=rows, vocab_size=vocab_size, n_best=n_best
    )
    apply = [
        functools.partial(
            network.apply,
            transformer.variables_for_decoding(network.model, model_params),
        )
        for network, model_params in zip(networks, params, strict=True)
    ]
    if caches is None:
        # Samples are stepped as beams of one.
        beam_size = 1 if search.sampling else options.beam_size
        caches = _start(
            apply,
            source=rows.source,
            beam_size=beam_size,
            max_length=options.buffer_lengths[0],
        )
    num_logits = transformer.num_logits(vocab_size)
    logit_bias: beam_search.LogitBias | None = None
    if rows.prefix.shape[1] or search.no_repeat_ngram:
        logit_bias = logit_biases.make_logit_bias(
            search, rows.prefix, vocab_size=num_logits
        )
    grammar = None
    trees = _trees(vocab_size)
    if trees is not None and search.legal_trees:
        grammar = brackets.TreeGrammar(
            trees=trees,
            num_words=brackets.count_words(rows.source, trees),
            max_lengths=max_lengths,
            num_logits=num_logits,
        )
        logit_bias = logit_biases.join(logit_bias, grammar)
    phrases = None
    if rows.phrases is not None:
        prefix_lengths = jnp.sum(rows.prefix != types.PAD_ID, axis=1)
        phrases = RequiredPhrases(rows.phrases, prefix_lengths)
    return Task(
        stepper=_make_stepper(apply),
        caches=caches,
        max_lengths=max_lengths,
        options=options,
        logit_bias=logit_bias,
        grammar=grammar,
        phrases=phrases,
    )


def _max_lengths(
    rows: Rows, search: config.SearchConfig, *, models: Sequence[config.ModelConfig]
) -> tuple[Int[Array, "B"], int]:
    """Return the most tokens of each row's outputs, and of any output of this shape.

    Both count the end mark. A row of padding gives nothing.
    """
    tokens = jnp.sum(rows.source != types.PAD_ID, axis=1)
    prefix_lengths = jnp.sum(rows.prefix != types.PAD_ID, axis=1)
    lengths = jnp.maximum(tokens + search.max_extra_tokens, search.min_tokens)
    if search.max_tokens:
        lengths = jnp.minimum(lengths, search.max_tokens)
    lengths = lengths + prefix_lengths
    for model in models:
        if model.position_limit is not None:
            lengths = jnp.minimum(lengths, model.position_limit)
    num_tokens, prefix_length = rows.source.shape[1], rows.prefix.shape[1]
    longest = longest_output(num_tokens, prefix_length, search=search, models=models)
    return jnp.where(tokens > 0, lengths, 0), longest


def longest_output(
    num_tokens: int,
    prefix_length: int,
    *,
    search: config.SearchConfig,
    models: Sequence[config.ModelConfig],
) -> int:
    """Return the most tokens of an output, the end mark counted.

    Args:
        num_tokens: Of its source, the end mark counted.
        prefix_length: The tokens that it must begin with.
        search: The limits.
        models: The architectures, of which some have learned positions.
    """
    longest = max(num_tokens + search.max_extra_tokens, search.min_tokens)
    if search.max_tokens:
        longest = min(longest, search.max_tokens)
    limits = [model.position_limit for model in models if model.position_limit]
    return min([longest + prefix_length, *limits])


def _buffer_lengths(longest: int, *, typical: int) -> tuple[int, ...]:
    """Return how many positions to make room for, step by step.

    A position costs as much attention as there is room, hence little room first. The
    last length is what most outputs need for sources of a typical length.

    >>> _buffer_lengths(75, typical=25), _buffer_lengths(82, typical=32)
    ((16, 32, 37), (16, 32, 44))
    >>> _buffer_lengths(30, typical=25)
    (16, 30)
    """
    enough = min(typical + 12, longest)
    lengths = [16]
    while lengths[-1] < enough:
        lengths.append(lengths[-1] * 2)
    return (*lengths[:-1], enough)


def mixture(logits: Sequence[Float[Array, "*axes V"]]) -> Float[Array, "*axes V"]:
    """Return logits of the mean of several models' probabilities."""
    if len(logits) == 1:
        return logits[0]
    log_probs = jnp.stack([jax.nn.log_softmax(model_logits) for model_logits in logits])
    return jax.nn.logsumexp(log_probs, axis=0)


def _start(
    apply: Sequence[Any],
    *,
    source: Int[Array, "B S"],
    beam_size: int,
    max_length: int,
) -> tuple[Any, ...]:
    """Return each model's `DecoderCache` to begin with, given as `apply` functions."""
    return tuple(
        apply_model(
            source, beam_size=beam_size, max_length=max_length, method="start_cache"
        )
        for apply_model in apply
    )


def _make_stepper(apply: Sequence[Any]) -> beam_search.Stepper:
    """Return all models as one stepper."""

    def step(
        tokens: Int[Array, "B W"], caches: Any, position: Int[Array, ""]
    ) -> tuple[Array, Any]:
        all_logits, new_caches = [], []
        for apply_model, cache in zip(apply, caches, strict=True):
            logits, new_cache = apply_model(
                tokens, cache, position=position, method="decode_step"
            )
            all_logits.append(logits)
            new_caches.append(new_cache)
        return mixture(all_logits), tuple(new_caches)

    return beam_search.Stepper(step, _reorder, _resize)


def _reorder(caches: Sequence[Any], origin: Array) -> Any:
    return tuple(cache.replace(beams=cache.beams.reorder(origin)) for cache in caches)


def _resize(caches: Sequence[Any], length: int) -> Any:
    return tuple(cache.replace(beams=cache.beams.resize(length)) for cache in caches)


def _keys(seed: int, numbers: Int[Array, "B 2"]) -> Any:
    """Return a random key a row."""
    key = jax.random.key(seed)

    def row_key(number: Array) -> Any:
        return jax.random.fold_in(jax.random.fold_in(key, number[0]), number[1])

    return jax.vmap(row_key)(numbers)
