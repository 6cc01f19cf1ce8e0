"""Section 6.3's semi-supervised setting: trees on which parsers agree.

The paper adds two corpora to the treebank. In the "high-confidence" one, two parsers
gave each sentence the same tree, and lengths were resampled to the treebank's (Vinyals
et al., 2015, "Grammar as a Foreign Language").
"""

import collections
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vaswani_jax.data import treebank
from vaswani_jax.data.treebank import Tree


def keep_agreed(parses: Iterable[Sequence[Tree]]) -> Iterator[Tree]:
    """Yield the trees that all parsers gave, in the order of the sentences.

    Args:
        parses: For each sentence the tree of each parser. They are read one by one.

    Raises:
        treebank.WordMismatchError: A sentence has other words in one of its trees.
    """
    for number, trees in enumerate(parses, start=1):
        words = {tuple(leaf.word for leaf in tree.leaves()) for tree in trees}
        if len(words) > 1:
            first, second, *_ = sorted(" ".join(line_words) for line_words in words)
            raise treebank.WordMismatchError(
                number, f"different words, {first[:60]!r} and {second[:60]!r}"
            )
        if len(set(map(str, trees))) == 1:
            yield trees[0]


def resample(
    lengths: Sequence[int], like: Sequence[int], *, num_trees: int | None = None
) -> list[int]:
    """Return the indices of some trees, with lengths distributed as in `like`.

    Parsers agree most often on short sentences. Each class of lengths gets the share
    that it has in `like`, spread over the sequence. By default the result is as large
    as the scarcest class allows; a class below 1 % of `like` does not limit it.

    Args:
        lengths: The numbers of words of the trees to choose from.
        like: Those of the trees to resemble.
        num_trees: How many trees to choose. A class with too few trees is used whole,
            and the result is then smaller.

    Returns:
        Different indices into `lengths`, in ascending order.

    Raises:
        ValueError: A side has no trees; or `num_trees` is None, and no tree has a
            length that is common in `like`.
    """
    if not (lengths and like):
        raise ValueError(
            f"resampling needs trees on both sides, got {len(lengths):,} to choose "
            f"from and {len(like):,} to resemble"
        )
    by_class = collections.defaultdict(list)
    for index, length in enumerate(lengths):
        by_class[treebank.length_class(length)].append(index)
    like_counts = collections.Counter(map(treebank.length_class, like))
    frequent_classes = [
        name for name, count in like_counts.items() if count >= len(like) / 100
    ]
    empty_classes = [name for name in frequent_classes if not by_class[name]]
    if empty_classes and num_trees is None:
        raise ValueError(
            f"{like_counts[empty_classes[0]]:,} of {len(like):,} trees to resemble "
            f"have {empty_classes[0]} words, but no agreed tree has: set num_trees"
        )
    total = num_trees or min(
        len(by_class[name]) * len(like) / like_counts[name] for name in frequent_classes
    )
    shares = {name: total * count / len(like) for name, count in like_counts.items()}
    indices: list[int] = []
    for name, share in _round(shares).items():
        members = by_class[name]
        size = min(len(members), share)
        indices += [members[number * len(members) // size] for number in range(size)]
    return sorted(indices)


def _round(shares: Mapping[str, float]) -> dict[str, int]:
    """Return whole numbers of the same sum: the largest remainders are rounded up."""
    rounded = {name: math.floor(share) for name, share in shares.items()}
    num_missing = round(sum(shares.values())) - sum(rounded.values())
    by_remainder = sorted(shares, key=lambda name: rounded[name] - shares[name])
    for name in by_remainder[:num_missing]:
        rounded[name] += 1
    return rounded
