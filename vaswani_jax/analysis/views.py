"""Bring the attention of a sentence pair, and its words, into one form for measures."""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Bool, Float, Int

from vaswani_jax.data.treebank import Tree


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens:
    """The subwords of one side of a sentence, with its begin mark or end mark.

    Attributes:
        ids: Their ids.
        words: The word of each, from 0; -1 for a mark.
        is_punctuation: True for a subword of nothing but punctuation.
        counts: How often each occurs in the training text; None if unknown.
        embeddings: A vector of length 1 for each.
    """

    ids: Int[np.ndarray, "N"]
    words: Int[np.ndarray, "N"]
    is_punctuation: Bool[np.ndarray, "N"]
    counts: Int[np.ndarray, "N"] | None
    embeddings: Float[np.ndarray, "N d_model"]

    @property
    def is_mark(self) -> Bool[np.ndarray, "N"]:
        """True for the begin mark and the end mark."""
        return self.words < 0

    def __len__(self) -> int:
        return len(self.ids)


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """The attention of all heads of one kind, N in all layers, over a sentence pair.

    Attributes:
        kind: "encoder", "decoder" or "memory".
        weights: How much each query looks at each key.
        queries: The tokens that look. Of memory attention, those that are predicted.
        keys: The tokens that are looked at.
        may_look: Which keys a query may look at.
        is_shared: Whether queries and keys have the same ids and embeddings.
        constituents: For each word of a parsed sentence the words, from the first to
            before the last, of the smallest constituent that has another word, too.
        links: Which words of the queries are aligned with which words of the keys.
    """

    kind: str
    weights: Float[np.ndarray, "N Q K"]
    queries: Tokens
    keys: Tokens
    may_look: Bool[np.ndarray, "Q K"]
    is_shared: bool = True
    constituents: Int[np.ndarray, "words 2"] | None = None
    links: Bool[np.ndarray, "query_words key_words"] | None = None

    @property
    def is_self(self) -> bool:
        """True if queries and keys are the same tokens."""
        return self.kind != "memory"


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """A sentence and its translation.

    Attributes:
        source: The source, with its end mark.
        target_in: What the decoder reads: the begin mark, then the translation.
        target_out: What it predicts: the translation, then the end mark.
        is_shared: Whether both sides have the same ids and embeddings.
        constituents: Of the source, as in `View`; None without a tree.
        links: Which target words are aligned with which source words; None if unknown.
    """

    source: Tokens
    target_in: Tokens
    target_out: Tokens
    is_shared: bool
    constituents: Int[np.ndarray, "words 2"] | None = None
    links: Bool[np.ndarray, "target_words source_words"] | None = None

    def views(
        self, attention: Mapping[str, Float[np.ndarray, "L H Q K"]]
    ) -> Iterator[View]:
        """Yield the view of each kind of attention over the pair."""
        for kind, weights in attention.items():
            keys = self.target_in if kind == "decoder" else self.source
            queries = self.target_out if kind == "memory" else keys
            Q, K = len(queries), len(keys)
            yield View(
                kind=kind,
                weights=np.asarray(weights, np.float64).reshape(-1, Q, K),
                queries=queries,
                keys=keys,
                may_look=np.tri(Q, K, dtype=bool)
                if kind == "decoder"
                else np.ones((Q, K), bool),
                is_shared=self.is_shared or kind != "memory",
                constituents=self.constituents if kind == "encoder" else None,
                links=self.links if kind == "memory" else None,
            )


def smallest_constituents(tree: Tree) -> Int[np.ndarray, "words 2"]:
    """Return for each word of a tree the smallest constituent that has another word.

    >>> from vaswani_jax.data import treebank
    >>> [tree] = treebank.parse(["(S (NP (DT the) (NN cat)) (VP (V ran)))"], name="")
    >>> smallest_constituents(tree).tolist()
    [[0, 2], [0, 2], [0, 3]]
    """
    num_words = len(tree.leaves())
    smallest = np.tile([0, num_words], (num_words, 1))
    begin, stack = 0, [tree]
    # From outer to inner constituents, and from left to right.
    while stack:
        node = stack.pop()
        if node.word:
            begin += 1
            continue
        size = len(node.leaves())
        if size > 1:
            smallest[begin : begin + size] = begin, begin + size
        stack.extend(reversed(node.children))
    return smallest
