"""Section 6.3: let a search write nothing but trees over the words of its sentences.

A tree is written in depth-first order: each constituent has a symbol that opens it and
one that closes it, both with its label, and each word has one symbol.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from vaswani_jax.core import types
from vaswani_jax.inference import beam_search

# Most constituents that open between two words; in the treebanks GUM and CRAFT, 6 and
# 8 do. The chains that a poor model opens end here.
MAX_OPENINGS = 10


def make_constraint(
    vocab_size: types.VocabSizes,
    *,
    num_words: Int[Array, "B"],
    max_lengths: Int[Array, "B"],
    num_logits: int,
) -> beam_search.Constraint:
    """Return what keeps each hypothesis the beginning of a tree; see `legal_symbols`.

    Every output that ends is then one tree over its sentence's words.

    Args:
        vocab_size: With `trees`: what the ids mean.
        num_words: Of each sentence; one without a word has an empty output.
        max_lengths: Most symbols of each sentence's output, the end mark counted.
            Unless one is less than the words and 3, every hypothesis can end in time.
        num_logits: V of the search, the target's or more.
    """

    def constraint(
        tokens: Int[Array, "B W T"], rows: Int[Array, "B"], position: Int[Array, ""]
    ) -> Array:
        is_legal = legal_symbols(
            tokens,
            position,
            vocab_size=vocab_size,
            num_words=num_words[rows],
            max_lengths=max_lengths[rows],
            num_logits=num_logits,
        )
        return jnp.where(is_legal, 0.0, -jnp.inf)

    return constraint


def count_words(
    source: Int[Array, "B S"], vocab_size: types.VocabSizes
) -> Int[Array, "B"]:
    """Return the number of words of each sentence, from its source ids."""
    assert vocab_size.trees is not None
    bits = np.frombuffer(vocab_size.trees.word_starts, np.uint8)
    starts_word = np.unpackbits(bits, count=vocab_size.source).astype(bool)
    return jnp.sum(jnp.asarray(starts_word)[source], axis=1)


def legal_symbols(
    tokens: Int[Array, "B W T"],
    position: Int[Array, ""],
    *,
    vocab_size: types.VocabSizes,
    num_words: Int[Array, "B"],
    max_lengths: Int[Array, "B"],
    num_logits: int,
) -> Bool[Array, "B W {num_logits}"]:
    """Return the symbols after which a hypothesis can become a tree.

    A constituent opens only before a word, at most `MAX_OPENINGS` do since the last
    word, and only if all that the tree then lacks has room; the root is the first
    symbol. It closes with its own label, not while empty, the root only after the last
    word. The end mark follows the root's closing.

    Args:
        tokens: The hypotheses, each legal up to the position, then padding.
        position: How many symbols they have.
        vocab_size: As for `make_constraint`, like all that follow.
        num_words: Words of each sentence.
        max_lengths: Most symbols of each sentence, the end mark counted.
        num_logits: V of the search.
    """
    assert vocab_size.trees is not None
    first_label, L = types.FIRST_LABEL_ID, vocab_size.trees.num_labels
    first_word = vocab_size.trees.first_word
    opens = (tokens >= first_label) & (tokens < first_label + L)
    closes = (tokens >= first_label + L) & (tokens < first_word)
    is_word = tokens >= first_word
    depths = jnp.cumsum(opens.astype(jnp.int32) - closes.astype(jnp.int32), axis=2)
    depth = depths[:, :, -1]
    index = jnp.arange(tokens.shape[2])
    last_word = jnp.max(jnp.where(is_word, index, -1), axis=2, keepdims=True)
    openings = jnp.sum(opens & (index > last_word), axis=2)
    # The innermost constituent is the last that opened to the present depth.
    opened_to_depth = opens & (depths == depth[:, :, None])
    innermost = jnp.max(jnp.where(opened_to_depth, index, -1), axis=2)
    label = jnp.take_along_axis(tokens, jnp.maximum(innermost, 0)[:, :, None], axis=2)

    words_left = num_words[:, None] - jnp.sum(is_word, axis=2)
    # This opening, what closes it and all others, a symbol a word, and the end mark.
    length = position + 1 + (depth + 1) + words_left + 1
    has_room = length <= max_lengths[:, None]
    may_open = (depth > 0) & (openings < MAX_OPENINGS) & has_room
    # Whatever the room, a hypothesis begins.
    may_open = (words_left > 0) & (may_open | (position == 0))
    may_write = (words_left > 0) & (depth > 0)
    is_empty = innermost == position - 1
    may_close = (depth > 0) & ~is_empty & ((depth > 1) | (words_left == 0))
    may_end = (depth == 0) & (words_left == 0)

    token = jnp.arange(num_logits)
    is_opening = (token >= first_label) & (token < first_label + L)
    writes_word = (token >= first_word) & (token < vocab_size.target)
    return (
        (may_open[:, :, None] & is_opening)
        | (may_write[:, :, None] & writes_word)
        | (may_close[:, :, None] & (token == label + L))
        | (may_end[:, :, None] & (token == types.EOS_ID))
    )
