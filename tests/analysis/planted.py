"""Sentences and attention in which it is known what each head does."""

import numpy as np

from vaswani_jax.analysis.views import Pair, Tokens

V, D = 60, 16
PUNCTUATION = (50, 51)
BOS, EOS = 1, 2


def tokens(rng, *, length, mark):
    """Return subwords of words of one to three, with a mark "first" or "last"."""
    ids = rng.integers(3, 50, length)
    # One subword again, and two of punctuation.
    ids[-2], ids[[1, -1]] = ids[0], PUNCTUATION
    words = np.cumsum(rng.random(length) < 0.6)
    words -= words[0]
    table = np.random.default_rng(0).standard_normal((V, D))
    if mark == "first":
        ids, words = [BOS, *ids], [-1, *words]
    else:
        ids, words = [*ids, EOS], [*words, -1]
    ids, words = np.array(ids), np.array(words)
    return Tokens(
        ids=ids,
        words=words,
        is_punctuation=np.isin(ids, PUNCTUATION),
        # Each word has a frequency of its own, and punctuation is frequent.
        counts=np.where(np.isin(ids, PUNCTUATION), 5000, 1000 - 7 * ids),
        embeddings=(table / np.linalg.norm(table, axis=1, keepdims=True))[ids],
    )


def pair(rng, **known):
    """Return a random pair of six to ten subwords a side, and the marks."""
    S, T = rng.integers(6, 11, 2)
    target_in = tokens(rng, length=T, mark="first")
    target_out = Tokens(
        ids=np.array([*target_in.ids[1:], EOS]),
        words=np.array([*target_in.words[1:], -1]),
        is_punctuation=np.array([*target_in.is_punctuation[1:], False]),
        counts=np.array([*target_in.counts[1:], 0]),
        embeddings=np.concatenate([target_in.embeddings[1:], target_in.embeddings[:1]]),
    )
    source = tokens(rng, length=S, mark="last")
    return Pair(source, target_in, target_out, is_shared=True, **known)


def random_weights(rng, *, heads, queries, keys, is_causal=False, scale=1.0):
    """Return weights that know nothing of the text, `[1, H, Q, K]`."""
    logits = scale * rng.standard_normal((1, heads, queries, keys))
    if is_causal:
        logits = np.where(np.tri(queries, keys, dtype=bool), logits, -np.inf)
    weights = np.exp(logits)
    return weights / weights.sum(axis=-1, keepdims=True)


def plant(rng, targets, *, is_causal=False, share=0.85):
    """Return weights `[1, 1, Q, K]` with a share of each row on its targets.

    Rows without a target are random.
    """
    queries, keys = targets.shape
    weights = random_weights(
        rng, heads=1, queries=queries, keys=keys, is_causal=is_causal
    )[0, 0]
    if is_causal:
        targets = targets & np.tri(queries, keys, dtype=bool)
    has_target = targets.any(axis=1, keepdims=True)
    even = targets / np.maximum(1, targets.sum(axis=1, keepdims=True))
    weights = np.where(has_target, share * even + (1 - share) * weights, weights)
    return weights[None, None]


def attention_of(rng, pair, *, heads, scale=1.0):
    """Return random attention of every kind."""
    S, T = len(pair.source), len(pair.target_in)
    sizes = {"heads": heads, "scale": scale}
    return {
        "encoder": random_weights(rng, queries=S, keys=S, **sizes),
        "decoder": random_weights(rng, queries=T, keys=T, is_causal=True, **sizes),
        "memory": random_weights(rng, queries=T, keys=S, **sizes),
    }
