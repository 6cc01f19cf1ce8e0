"""Score given translations, and record where the model looks."""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config, kept_programs, parallel, types
from vaswani_jax.inference import beam_search, generate, padding

# Ids of a source and of its translation.
Pair = tuple[Sequence[int], Sequence[int]]
# Padded tokens of a batch's logits; more would be gigabytes with a large vocabulary.
TOKENS = 2048
# Which attention of figure 1, and where its module lies in the parameters' tree.
KINDS = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "memory": ("decoder", "memory_attention"),
}


def depth(model: config.ModelConfig, kind: str) -> int:
    """Return how many layers have a kind of attention, of `KINDS`."""
    stack, _ = KINDS[kind]
    return model.encoder_layers if stack == "encoder" else model.decoder_layers


@functools.cache
def length_penalty(num_tokens: int, *, alpha: float, form: str) -> float:
    """Return `beam_search.length_penalty` of an output as a number.

    >>> length_penalty(7, alpha=1.0, form="paper")
    2.0
    """
    return float(beam_search.length_penalty(float(num_tokens), alpha, form=form))


class Scored(NamedTuple):
    """An output of T tokens for a source of S, padded at the end where in a batch.

    Attributes:
        log_probs: log P(y_t | y_<t, X) in nats.
        attention: The weights of each kind that is asked for, the mean over an
            ensemble. Rows are queries, columns keys: "encoder" `[L, H, S, S]`,
            "decoder" `[L, H, T, T]`, "memory" `[L, H, T, S]`.
    """

    log_probs: Any  # Float "*rows T"
    attention: Mapping[str, Any]  # Float "*rows L H Q K"


def score_pairs(
    pairs: Sequence[Pair],
    *,
    models: Sequence[config.ModelConfig],
    params: Sequence[Any],
    vocab_size: types.VocabSize,
    layers: Mapping[str, Sequence[int]] | None = None,
) -> list[Scored]:
    """Return each output's token scores by one model or several, in the pairs' order.

    Args:
        pairs: Source ids without an end mark, and the output's ids with one, if it
            ended.
        models: The models whose mean probability counts.
        params: Those of each model, replicated over the devices.
        vocab_size: V.
        layers: The layers whose attention is kept, the lowest being 0, by their kind,
            of `KINDS`.
    """
    scores = iterate_scores(
        pairs, models=models, params=params, vocab_size=vocab_size, layers=layers
    )
    return [
        pair_scores for _, pair_scores in sorted(scores, key=lambda score: score[0])
    ]


def iterate_scores(
    pairs: Sequence[Pair],
    *,
    models: Sequence[config.ModelConfig],
    params: Sequence[Any],
    vocab_size: types.VocabSize,
    layers: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[tuple[int, Scored]]:
    """Yield the number of each pair with its scores, batch by batch.

    Only a batch at a time is in memory. The arguments are those of `score_pairs`.
    """
    # Learned positions end there, padding's too.
    longest = min(model.position_limit or sys.maxsize for model in models)

    def padded(num_tokens: int) -> int:
        return min(padding.padded_length(num_tokens), longest)

    shapes = [
        (padded(len(target)), padded(len(source) + 1)) for source, target in pairs
    ]
    for group in padding.group_by_shape(
        shapes, max_rows=lambda shape: max(1, TOKENS // max(shape))
    ):
        chunk = [pairs[index] for index in group.indices]
        scores = score_batch(
            chunk,
            group,
            models=models,
            params=params,
            vocab_size=vocab_size,
            layers=layers,
        )
        yield from zip(group.indices, scores, strict=True)


def score_batch(
    pairs: Sequence[Pair],
    group: padding.Group,
    *,
    models: Sequence[config.ModelConfig],
    params: Sequence[Any],
    vocab_size: types.VocabSize,
    layers: Mapping[str, Sequence[int]] | None = None,
) -> list[Scored]:
    """Return the scores of pairs that are padded to one shape; see `score_pairs`.

    Args:
        pairs: The pairs of the batch, as for `score_pairs`.
        group: The padded shape, (T, S), and the number of rows.
        models: As for `score_pairs`, like all further arguments.
    """
    layers_by_kind = tuple(
        (kind, tuple(numbers)) for kind, numbers in (layers or {}).items()
    )
    run = scorer_on_devices(tuple(models), vocab_size, layers=layers_by_kind)
    rows = parallel.split_rows(_batch(pairs, group), num_microbatches=1)
    outputs = parallel.join_rows(run(tuple(params), rows))
    return [
        _without_padding(outputs, row, S=len(source) + 1, T=len(target))
        for row, (source, target) in enumerate(pairs)
    ]


def _batch(pairs: Sequence[Pair], group: padding.Group) -> types.Batch:
    T, S = group.shape
    sources = [[*source, types.EOS_ID] for source, _ in pairs]
    target_in = [[types.BOS_ID, *target[:-1]] for _, target in pairs]
    targets = [target for _, target in pairs]
    return types.Batch(
        source=padding.pad(sources, rows=group.num_rows, length=S),
        target_in=padding.pad(target_in, rows=group.num_rows, length=T),
        target_out=padding.pad(targets, rows=group.num_rows, length=T),
    )


def _without_padding(batch: Scored, row: int, *, S: int, T: int) -> Scored:
    """Return a row of a batch, copied so that the batch's padding can be freed."""
    ends = {"encoder": (S, S), "decoder": (T, T), "memory": (T, S)}
    return Scored(
        batch.log_probs[row, :T].copy(),
        {
            kind: weights[row, :, :, : ends[kind][0], : ends[kind][1]].copy()
            for kind, weights in batch.attention.items()
        },
    )


@functools.cache
def scorer_on_devices(
    models: tuple[config.ModelConfig, ...],
    vocab_size: types.VocabSize,
    *,
    layers: tuple[tuple[str, tuple[int, ...]], ...],
) -> Callable[..., Any]:
    """Return one function for all equal scorers, so that a shape is compiled once."""

    def run(params: Sequence[Any], batch: types.Batch) -> Scored:
        # Tracing needs it; a program that is kept is not traced.
        from vaswani_jax.model import transformer

        networks = [transformer.Transformer(model, vocab_size) for model in models]
        all_logits, all_weights = [], []
        for network, model_params in zip(networks, params, strict=True):
            logits: Any
            logits, state = network.apply(
                {"params": model_params},
                batch.source,
                batch.target_in,
                deterministic=True,
                mutable=["intermediates"],
            )
            all_logits.append(logits)
            all_weights.append(
                {
                    kind: _weights(state["intermediates"], kind, layers=numbers)
                    for kind, numbers in layers
                }
            )
        log_probs = jax.nn.log_softmax(generate.mixture(all_logits))
        target = jnp.asarray(batch.target_out)[:, :, None]
        return Scored(
            jnp.take_along_axis(log_probs, target, axis=2)[:, :, 0],
            jax.tree.map(lambda *w: sum(w) / len(models), *all_weights),
        )

    identity = kept_programs.Identity(
        "score",
        (models, vocab_size, layers),
        outputs=lambda params, batch: Scored(0, {kind: 0 for kind, _ in layers}),
    )
    return parallel.over_rows(run, identity=identity)


def _weights(
    intermediates: Any, kind: str, *, layers: Sequence[int]
) -> Float[Array, "B L H Q K"]:
    """Return the attention weights that the model's layers have kept in a pass."""
    stack, module = KINDS[kind]
    return jnp.stack(
        [
            intermediates[stack][f"layers_{layer}"][module]["weights"][0]
            for layer in layers
        ],
        axis=1,
    )
