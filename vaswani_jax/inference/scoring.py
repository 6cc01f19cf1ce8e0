"""Section 6.1: pairs of lines to what a model thinks of them."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config, parallel, types
from vaswani_jax.inference import generate, padding
from vaswani_jax.model import transformer

# Padded tokens of a batch's logits; more would be gigabytes with a large vocabulary.
TOKENS = 2048


class Scored(NamedTuple):
    """An output of T tokens for a source of S, padded at the end where in a batch.

    `log_probs` is log P(y_t | y_<t, X) in nats. `attention` has the weights of the
    decoder's attention over the memory, the mean of an ensemble's; it has no layers
    if none was asked for.
    """

    log_probs: Any  # Float "*rows T"
    attention: Any  # Float "*rows L H T S"


class Scorer:
    """Scores given outputs by one model, or by several together."""

    def __init__(
        self,
        models: Sequence[config.ModelConfig],
        *,
        vocab_size: int,
        layers: Sequence[int],
    ) -> None:
        """Prepare to score.

        Args:
            models: Whose mean probability counts.
            vocab_size: V.
            layers: Whose attention weights are wanted, the lowest being 0.
        """
        tables = [
            model.max_positions
            for model in models
            if model.positional_encoding == "learned"
        ]
        # Learned positions end there, padding's too.
        self._longest = min(tables, default=sys.maxsize)
        self._run = parallel.over_rows(
            _scorer(models, vocab_size=vocab_size, layers=layers)
        )

    def score(
        self, params: Sequence[Any], pairs: Sequence[tuple[list[int], list[int]]]
    ) -> list[Scored]:
        """Each output's token scores, in the order of the pairs.

        Args:
            params: Those of each model, replicated over the devices.
            pairs: Source ids without an end mark, and the output's ids with one, if
                it ended.
        """
        found: list[Scored | None] = [None] * len(pairs)
        shapes = [
            (self._padded(len(target)), self._padded(len(source) + 1))
            for source, target in pairs
        ]
        for places, (T, S), count in padding.of_one_shape(
            shapes, full=lambda shape: TOKENS // shape[0]
        ):
            some = [pairs[place] for place in places]
            marked = [[*source, types.EOS_ID] for source, _ in some]
            shifted = [[types.BOS_ID, *target[:-1]] for _, target in some]
            batch = types.Batch(
                source=padding.padded(marked, rows=count, length=S),
                target_in=padding.padded(shifted, rows=count, length=T),
                target_out=padding.padded([o for _, o in some], rows=count, length=T),
            )
            rows = parallel.split_rows(batch, multiple=1)
            log_probs, attention = parallel.join_rows(self._run(tuple(params), rows))
            for row, (place, (ids, output)) in enumerate(
                zip(places, some, strict=True)
            ):
                s, t = len(ids) + 1, len(output)
                # A copy, so that the batch's padding is not kept.
                found[place] = Scored(
                    log_probs[row, :t].copy(), attention[row, :, :, :t, :s].copy()
                )
        return [one for one in found if one is not None]

    def _padded(self, tokens: int) -> int:
        return min(padding.padded_length(tokens), self._longest)


def _scorer(
    models: Sequence[config.ModelConfig], *, vocab_size: int, layers: Sequence[int]
) -> Callable[[Sequence[Any], types.Batch], Scored]:
    networks = [transformer.Transformer(model, vocab_size) for model in models]

    def run(params: Sequence[Any], batch: types.Batch) -> Scored:
        logits, attention = [], []
        for network, own in zip(networks, params, strict=True):
            found: Any
            found, kept = network.apply(
                {"params": own},
                batch.source,
                batch.target_in,
                deterministic=True,
                mutable=["intermediates"],
            )
            logits.append(found)
            attention.append(_weights(kept["intermediates"], batch, layers))
        log_probs = jax.nn.log_softmax(generate.mixture(logits))
        target = jnp.asarray(batch.target_out)[:, :, None]
        return Scored(
            jnp.take_along_axis(log_probs, target, axis=2)[:, :, 0],
            sum(attention) / len(networks),
        )

    return run


def _weights(
    kept: Any, batch: types.Batch, layers: Sequence[int]
) -> Float[Array, "B L H T S"]:
    """The memory attention's weights that a pass has kept."""
    several = [
        kept["decoder"][f"layers_{layer}"]["memory_attention"]["weights"][0]
        for layer in layers
    ]
    if not several:
        B, S = batch.source.shape
        return jnp.zeros((B, 0, 1, batch.target_out.shape[1], S))
    return jnp.stack(several, axis=1)
