"""Constituency trees as nested tuples, and what they mean, by recursion.

The label comes first; a word or the parts follow: ("NP", ("DT", "the"), ("NN", "man")).
"""

from hypothesis import strategies

from vaswani_jax.data import treebank

Node = tuple  # of a str, and a str or Nodes
LABELS = ("NP", "VP", "S", "X-Y")
TAGS = ("NN", "VB", "-LRB-", ".", "PRP$")
WORDS = ("a", "Ä", "-", "1/2", "'", "\u00a0", "XX", "-RRB-")
# As a treebank has them, before they are cleaned.
PENN_LABELS = ("NP-SBJ-1", "VP=2", "S", "PRT|ADVP", "TOP", "ROOT")
PENN_TAGS = ("NN", "-NONE-", ".")


def nodes(
    labels: tuple[str, ...] = LABELS, tags: tuple[str, ...] = TAGS
) -> strategies.SearchStrategy[Node]:
    """Trees of up to 20 words with these labels and tags."""
    return strategies.recursive(
        strategies.tuples(
            strategies.sampled_from(tags), strategies.sampled_from(WORDS)
        ),
        lambda inner: strategies.tuples(
            strategies.sampled_from(labels),
            strategies.lists(inner, min_size=1, max_size=4),
        ).map(lambda node: (node[0], *node[1])),
        max_leaves=20,
    )


def text_of(node: Node) -> str:
    label, *parts = node
    if isinstance(parts[0], str):
        return f"({label} {parts[0]})"
    return f"({label} {' '.join(map(text_of, parts))})"


def words_of(node: Node) -> list[str]:
    _, *parts = node
    if isinstance(parts[0], str):
        return parts
    return [word for part in parts for word in words_of(part)]


def symbols_of(node: Node) -> list[str]:
    """The symbols of Vinyals et al. (2015), with tags."""
    label, *parts = node
    if isinstance(parts[0], str):
        return [label]
    inside = [symbol for part in parts for symbol in symbols_of(part)]
    return [f"({label}", *inside, f"){label}"]


def tree_of(node: Node) -> treebank.Tree:
    label, *parts = node
    if isinstance(parts[0], str):
        return treebank.Tree(label, word=parts[0])
    return treebank.Tree(label, tuple(map(tree_of, parts)))


def node_of(tree: treebank.Tree) -> Node:
    return (tree.label, *([tree.word] if tree.word else map(node_of, tree.children)))
