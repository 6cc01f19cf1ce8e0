"""Section 6.1: what a beam search knows of each sentence while it runs."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import types


class Search(NamedTuple):
    """The loop's variables; live hypotheses have no end mark, finished ones have.

    `row` says which sentence of the batch each is.
    """

    position: Int[Array, ""]
    row: Int[Array, "B"]
    live_tokens: Int[Array, "B W T"]
    live_log_probs: Float[Array, "B W"]
    finished_tokens: Int[Array, "B W T"]
    finished_scores: Float[Array, "B W"]
    done: Bool[Array, "B"]
    state: Any


def start(max_lengths: Int[Array, "B"], state: Any, *, W: int, T: int) -> Search:
    """One live hypothesis a sentence, empty; the other beams are impossible."""
    B = max_lengths.shape[0]
    return Search(
        position=jnp.zeros((), jnp.int32),
        row=jnp.arange(B),
        live_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        live_log_probs=jnp.tile(jnp.where(jnp.arange(W) == 0, 0.0, -jnp.inf), (B, 1)),
        finished_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        finished_scores=jnp.full((B, W), -jnp.inf),
        done=max_lengths <= 0,
        state=state,
    )


def freeze(search: Search, advanced: Search) -> Search:
    """A sentence that is done stays as it is, whatever its neighbours still do."""

    def keep(old: Array, new: Array) -> Array:
        done = search.done.reshape((-1,) + (1,) * (new.ndim - 1))
        return jnp.where(done, old, new)

    return advanced._replace(
        live_tokens=keep(search.live_tokens, advanced.live_tokens),
        live_log_probs=keep(search.live_log_probs, advanced.live_log_probs),
        finished_tokens=keep(search.finished_tokens, advanced.finished_tokens),
        finished_scores=keep(search.finished_scores, advanced.finished_scores),
    )


def some_of(search: Search, rows: Int[Array, "N"]) -> Search:
    """Some of the sentences."""
    chosen: Search = jax.tree.map(
        lambda leaf: leaf[rows], search._replace(position=search.row)
    )
    return chosen._replace(position=search.position)


def put_back(search: Search, rows: Int[Array, "N"], some: Search) -> Search:
    """What was found for some of the sentences, among all; their states are over."""

    def put(all_: Array, own: Array) -> Array:
        return all_.at[rows].set(own)

    return search._replace(
        live_tokens=put(search.live_tokens, some.live_tokens),
        live_log_probs=put(search.live_log_probs, some.live_log_probs),
        finished_tokens=put(search.finished_tokens, some.finished_tokens),
        finished_scores=put(search.finished_scores, some.finished_scores),
        done=search.done.at[rows].set(True),
    )
