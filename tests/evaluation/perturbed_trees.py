"""Random trees, and trees that a bad parser might return for the same sentences."""

import random
from collections.abc import Callable, Sequence

from vaswani_jax.data.treebank import Tree

LABELS = ("S", "NP", "VP", "PP", "ADVP", "PRT", "SBAR", "X")
# Functions and indices, TOP inside, a tag and an empty element as constituents.
ODD_LABELS = ("NP-SBJ-1", "NP=2", "ADVP-TMP", "PRT-1", "TOP", "TOP-1", ",", "-NONE-")
TAGS = ("NN", "VBZ", "DT", "IN", "PRT", "ADVP", "-LRB-", "$", "PRP$")
PUNCTUATION = (",", ".", ":", "``", "''")
WORDS = ("the", "man", "sleeps", "Ä", "1/2", "n't", "%", "it")
LONGEST = 50


def random_tree(generator: random.Random) -> Tree:
    """Return a tree of 1 to 50 words, with some punctuation and empty elements."""
    leaves = [_random_leaf(generator) for _ in range(generator.randint(1, LONGEST))]
    leaves.append(Tree("NN", word="end"))  # A word at least.
    tree = Tree("S", tuple(_random_forest(leaves, generator)))
    return Tree("TOP", (tree,)) if generator.random() < 0.3 else tree


def _random_leaf(generator: random.Random) -> Tree:
    kind = generator.random()
    if kind < 0.2:
        punctuation = generator.choice(PUNCTUATION)
        return Tree(punctuation, word=punctuation)
    if kind < 0.24:
        return Tree("-NONE-", word="*-1")
    return Tree(generator.choice(TAGS), word=generator.choice(WORDS))


def _random_forest(leaves: Sequence[Tree], generator: random.Random) -> list[Tree]:
    """Return constituents, and leaves outside of them, over the leaves."""
    trees: list[Tree] = []
    start = 0
    while start < len(leaves):
        end = min(len(leaves), start + generator.randint(1, max(1, len(leaves) // 2)))
        if end - start == 1 and generator.random() < 0.8:
            trees.append(leaves[start])
        else:
            inside = leaves[start:end]
            children = _random_forest(inside, generator) if len(inside) > 1 else inside
            label = generator.choice(LABELS if generator.random() < 0.9 else ODD_LABELS)
            trees.append(Tree(label, tuple(children)))
        start = end
    return trees


def perturb(
    tree: Tree, generator: random.Random, *, change_leaf: Callable[[Tree], Tree]
) -> list[Tree]:
    """Return a tree with brackets relabelled, dropped, added and doubled.

    Args:
        tree: The tree.
        generator: Where the choices come from.
        change_leaf: Returns a word with its tag, or another instead.

    Returns:
        One tree, or several if the outermost bracket was dropped.
    """
    if tree.word:
        leaf = change_leaf(tree)
        is_wrapped = generator.random() < 0.05
        return [Tree(generator.choice(LABELS), (leaf,)) if is_wrapped else leaf]
    children = [
        part
        for child in tree.children
        for part in perturb(child, generator, change_leaf=change_leaf)
    ]
    if generator.random() < 0.1:
        start = generator.randrange(len(children))
        end = generator.randint(start + 1, len(children))
        added = Tree(generator.choice(LABELS + ODD_LABELS), tuple(children[start:end]))
        children[start:end] = [added]
    kind = generator.random()
    if kind < 0.1:
        return children
    label = generator.choice(LABELS + ODD_LABELS) if kind < 0.2 else tree.label
    changed = Tree(label, tuple(children))
    return [Tree(label, (changed,)) if kind > 0.95 else changed]


def change_tag(leaf: Tree, generator: random.Random) -> Tree:
    """Return another tag for some of the words that are no punctuation."""
    if leaf.label not in TAGS or generator.random() < 0.9:
        return leaf
    return Tree(generator.choice(TAGS), word=leaf.word)


def change_anything(leaf: Tree, generator: random.Random) -> Tree:
    """Return another word or another tag, of punctuation as well, now and then."""
    if generator.random() > 0.01:
        return leaf
    if generator.random() < 0.3:
        return Tree(leaf.label, word=generator.choice(WORDS))
    return Tree(generator.choice(TAGS + PUNCTUATION), word=leaf.word)
