"""Section 6.1: from rows of source ids to hypotheses, by search or by sampling."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, types
from vaswani_jax.inference import beam_search, constraints, sampling
from vaswani_jax.model import decoder, transformer


class Rows(NamedTuple):
    """What is asked for, padded with `PAD_ID`.

    `prefix` is what each output must begin with; P is 0 if none does. `numbers` tells
    the rows apart to the random generator: the same number, the same sample.
    """

    source: Any  # Int "*rows S"
    prefix: Any  # Int "*rows P"
    numbers: Any  # Int "*rows 2"


def generator(
    settings: config.Config,
    models: Sequence[config.ModelConfig],
    *,
    vocab_size: int,
    num_hypotheses: int,
) -> Callable[[Sequence[Any], Rows], types.Hypotheses]:
    """A function from the models' parameters and rows to each row's hypotheses.

    Several models are an ensemble: each token's probability is the mean of theirs.
    """
    search = settings.search
    networks = [transformer.Transformer(model, vocab_size) for model in models]

    def run(params: Sequence[Any], rows: Rows) -> types.Hypotheses:
        tokens = jnp.sum(rows.source != types.PAD_ID, axis=1)
        forced = jnp.sum(rows.prefix != types.PAD_ID, axis=1)
        # Both lengths count the end mark; a row of padding gives nothing.
        longest = tokens + search.max_extra_tokens
        room = rows.source.shape[1] + search.max_extra_tokens
        longest = jnp.maximum(longest, search.min_tokens)
        room = max(room, search.min_tokens)
        if search.max_tokens:
            longest = jnp.minimum(longest, search.max_tokens)
            room = min(room, search.max_tokens)
        longest, room = longest + forced, room + rows.prefix.shape[1]
        for model in models:
            if model.positional_encoding == "learned":
                longest = jnp.minimum(longest, model.max_positions)
                room = min(room, model.max_positions)
        max_lengths = jnp.where(tokens > 0, longest, 0)
        lengths = _buffer_lengths(room, usual=rows.source.shape[1])
        width = num_hypotheses if search.sampling else search.beam_size
        step, state = _stepper(
            networks, params, rows.source, beam_size=width, room=lengths[0]
        )
        constraint = constraints.of(search, rows.prefix, vocab_size=vocab_size)
        if search.sampling:
            return sampling.sample(
                step,
                state,
                max_lengths,
                _keys(settings.seed, rows.numbers),
                num_samples=num_hypotheses,
                temperature=search.temperature,
                top_k=search.top_k,
                top_p=search.top_p,
                alpha=search.length_penalty,
                buffer_lengths=sorted({*lengths, room}),
                resize=_resize,
                constraint=constraint,
                min_length=search.min_tokens,
                penalty_form=search.length_penalty_form,
            )
        return beam_search.beam_search(
            step,
            state,
            _reorder,
            max_lengths,
            beam_size=search.beam_size,
            alpha=search.length_penalty,
            buffer_lengths=lengths,
            longest=room,
            resize=_resize,
            constraint=constraint,
            min_length=search.min_tokens,
            penalty_form=search.length_penalty_form,
            num_hypotheses=num_hypotheses,
        )

    return run


def mixture(logits: Sequence[Float[Array, "*axes V"]]) -> Float[Array, "*axes V"]:
    """Logits of the mean of several models' probabilities."""
    if len(logits) == 1:
        return logits[0]
    log_probs = jnp.stack([jax.nn.log_softmax(one) for one in logits])
    return jax.nn.logsumexp(log_probs, axis=0)


def _stepper(
    networks: Sequence[transformer.Transformer],
    params: Sequence[Any],
    source: Int[Array, "B S"],
    *,
    beam_size: int,
    room: int,
) -> tuple[beam_search.Step, tuple[decoder.DecoderCache, ...]]:
    """One position of all models, and the state in which it begins."""
    apply: list[Any] = [
        functools.partial(network.apply, {"params": own})
        for network, own in zip(networks, params, strict=True)
    ]

    def step(
        tokens: Int[Array, "B W"], caches: Any, position: Int[Array, ""]
    ) -> tuple[Array, Any]:
        logits, grown = [], []
        for one, cache in zip(apply, caches, strict=True):
            found, after = one(tokens, cache, position, method="decode_step")
            logits.append(found)
            grown.append(after)
        return mixture(logits), tuple(grown)

    caches = tuple(
        one(source, beam_size=beam_size, max_length=room, method="start_cache")
        for one in apply
    )
    return step, caches


def _reorder(caches: Sequence[decoder.DecoderCache], origin: Array) -> Any:
    return tuple(one.replace(beams=one.beams.reorder(origin)) for one in caches)


def _resize(caches: Sequence[decoder.DecoderCache], length: int) -> Any:
    return tuple(one.replace(beams=one.beams.resize(length)) for one in caches)


def _keys(seed: int, numbers: Int[Array, "B 2"]) -> Any:
    """A random key a row."""
    key = jax.random.key(seed)

    def of(number: Array) -> Any:
        return jax.random.fold_in(jax.random.fold_in(key, number[0]), number[1])

    return jax.vmap(of)(numbers)


def _buffer_lengths(longest: int, *, usual: int) -> list[int]:
    """Attention costs as many positions as there is room for, hence small rooms first.

    The last of them is what most outputs need for sources of a usual length.

    >>> _buffer_lengths(75, usual=25), _buffer_lengths(82, usual=32)
    ([16, 32, 37], [16, 32, 44])
    >>> _buffer_lengths(30, usual=25)
    [16, 30]
    """
    enough = min(usual + 12, longest)
    lengths = [16]
    while lengths[-1] < enough:
        lengths.append(lengths[-1] * 2)
    return [*lengths[:-1], enough]
