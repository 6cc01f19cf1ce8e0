"""Restrict a search to trees over the words of its sentences (section 6.3).

Deviation: the paper's search is unrestricted.

A tree is written in depth-first order: each constituent has a symbol that opens it and
one that closes it, both with its label, and each word has one symbol.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import types

# At most this many constituents open between two words. The maximum is 6 in GUM and 8
# in CRAFT; a poor model would go on.
MAX_OPENINGS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeGrammar:
    """A logit bias: each output that ends is one tree over its sentence's words.

    Every hypothesis can finish if `max_lengths` is at least the number of words plus 3:
    the root's two symbols and the end mark.

    Attributes:
        trees: What the ids mean.
        num_words: Of each sentence, `[B]`; one without a word has an empty output.
        max_lengths: Most symbols of each sentence's output, the end mark counted.
        num_logits: V of the search.
    """

    trees: types.TreeIds
    num_words: Int[Array, "B"]
    max_lengths: Int[Array, "B"]
    num_logits: int

    def __call__(
        self,
        tokens: Int[Array, "B W T"],
        rows: Int[Array, "B"],
        position: Int[Array, ""],
    ) -> Float[Array, "B W V"]:
        """Return 0 for the symbols that may follow, and -inf for others."""
        is_legal = self._legal_symbols(tokens, rows, position)
        return jnp.where(is_legal, 0.0, -jnp.inf)

    def admits(self, prefix: Int[Array, "B P"]) -> Bool[Array, "B"]:
        """Return True for the sentences of which an output can begin with the prefix.

        Args:
            prefix: One for each sentence, then padding.
        """
        B, P = prefix.shape
        # The beginnings of 0, 1, ... symbols, each as a hypothesis.
        beginnings = jnp.where(jnp.tri(P, k=-1, dtype=bool), prefix[:, None, :], 0)
        is_legal = self._legal_symbols(beginnings, jnp.arange(B), jnp.arange(P))
        follows = jnp.take_along_axis(is_legal, prefix[:, :, None], axis=2)[:, :, 0]
        return jnp.all(follows | (prefix == types.PAD_ID), axis=1)

    def _legal_symbols(
        self,
        tokens: Int[Array, "B W T"],
        rows: Int[Array, "B"],
        position: Int[Array, "..."],
    ) -> Bool[Array, "B W V"]:
        """Return True for the symbols after which a hypothesis can become a tree.

        A constituent opens only before a word, at most `MAX_OPENINGS` do since the last
        word, and only if all that the tree then lacks has room; the root is the first
        symbol. It closes with its own label, not while empty, the root only after the
        last word. The end mark follows the root's closing.

        Args:
            tokens: The hypotheses, each legal up to the position, then padding.
            rows: Their sentences.
            position: How many symbols they have: all of them, or each of the W.
        """
        first_label, L = types.FIRST_LABEL_ID, self.trees.num_labels
        first_word = self.trees.first_word
        opens = (tokens >= first_label) & (tokens < first_label + L)
        closes = (tokens >= first_label + L) & (tokens < first_word)
        is_word = tokens >= first_word
        depths = jnp.cumsum(opens.astype(jnp.int32) - closes.astype(jnp.int32), axis=2)
        depth = depths[:, :, -1]
        index = jnp.arange(tokens.shape[2])
        last_word = jnp.max(jnp.where(is_word, index, -1), axis=2, keepdims=True)
        openings = jnp.sum(opens & (index > last_word), axis=2)
        # The innermost constituent is the last that opened to the present depth.
        opens_to_depth = opens & (depths == depth[:, :, None])
        innermost = jnp.max(jnp.where(opens_to_depth, index, -1), axis=2)
        label = jnp.take_along_axis(
            tokens, jnp.maximum(innermost, 0)[:, :, None], axis=2
        )

        words_left = self.num_words[rows][:, None] - jnp.sum(is_word, axis=2)
        # This opening, what closes it and all others, the words, and the end mark.
        length = position + 1 + (depth + 1) + words_left + 1
        has_room = length <= self.max_lengths[rows][:, None]
        may_open = (depth > 0) & (openings < MAX_OPENINGS) & has_room
        # Whatever the room, a hypothesis begins.
        may_open = (words_left > 0) & (may_open | (position == 0))
        may_write = (words_left > 0) & (depth > 0)
        is_empty = innermost == position - 1
        may_close = (depth > 0) & ~is_empty & ((depth > 1) | (words_left == 0))
        may_end = (depth == 0) & (words_left == 0)

        token = jnp.arange(self.num_logits)
        is_opening = (token >= first_label) & (token < first_label + L)
        return (
            (may_open[:, :, None] & is_opening)
            | (may_write[:, :, None] & (token >= first_word))
            | (may_close[:, :, None] & (token == label + L))
            | (may_end[:, :, None] & (token == types.EOS_ID))
        )


def count_words(source: Int[Array, "B S"], trees: types.TreeIds) -> Int[Array, "B"]:
    """Return the number of words of each sentence, from its source ids."""
    starts_word = np.unpackbits(np.frombuffer(trees.word_starts, np.uint8))
    return jnp.sum(jnp.asarray(starts_word.astype(bool))[source], axis=1)
