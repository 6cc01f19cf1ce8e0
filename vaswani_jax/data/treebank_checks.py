"""Warn of trees that a run cannot learn from, or cannot write (section 6.3)."""

import logging
from collections.abc import Mapping

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import config
from vaswani_jax.data import (
    linearization,
    token_files,
    treebank_files,
    treebank_pairs,
)
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)
# Warn if more than this share of the training trees is too long.
MAX_TOO_LONG_SHARE = 0.05
# Warn unless the search has room for this share of the training trees.
MIN_FITTING_SHARE = 0.999
# Encode at most this number of training sources to find their lengths.
MAX_ENCODED = 10_000


def count_pairs(data: config.DataConfig, split: str) -> int:
    """Return the number of pairs of a split, after reading all of its trees.

    Logs how many trees have no word. Warns of sections of the Wall Street Journal with
    another number of trees than LDC99T42, and of training trees without tags.

    Raises:
        FileNotFoundError, ValueError: As `treebank_pairs.read_pairs`.
    """
    num_pairs = 0
    for key in treebank_pairs.TREE_SETTINGS[split]:
        num_trees = num_empty = 0
        tags = set()
        for tree in treebank_pairs.read_clean_trees(data, key):
            num_trees += 1
            num_empty += tree is None
            tags |= {leaf.label for leaf in tree.leaves()} if tree else set()
        num_pairs += (num_trees - num_empty) * treebank_pairs.count_copies(data, key)
        if num_empty:
            logger.info(
                f"config.data.{key}: {num_empty:,} of {num_trees:,} trees have no word "
                "and are left out"
            )
        entries = getattr(data, key)
        if warning := treebank_files.describe_wsj_mismatch(entries, num_trees):
            logger.warning(f"config.data.{key}={entries}: {warning}")
        is_untagged = split == "train" and tags == {linearization.WORD}
        if is_untagged and data.tree_terminals == "tag":
            logger.warning(
                f"all tags of config.data.{key} are {linearization.WORD}: set "
                "config.data.tree_terminals=word"
            )
    return num_pairs


def warn_of_lengths(
    trees: token_files.TokenPairs,
    *,
    settings: config.Config,
    counts: Mapping[str, int],
    vocabulary: Vocabulary,
) -> None:
    """Warn if training leaves out many long trees, or the search cannot write some.

    Args:
        trees: The training pairs of words and trees.
        settings: The run's; `data.max_length` and `search.max_extra_tokens` matter.
        counts: How many pairs are "kept", and how many "too_long".
        vocabulary: The vocabulary of the pairs.
    """
    max_length = settings.data.max_length
    share = counts["too_long"] / max(1, counts["kept"] + counts["too_long"])
    if share > MAX_TOO_LONG_SHARE:
        logger.warning(
            f"config.data.max_length={max_length} leaves out {100 * share:.1f} % of "
            "the training trees"
        )
    source_lengths, target_lengths = trees.source.lengths(), trees.target.lengths()
    if settings.data.subword_dropout:
        stride = -(-len(source_lengths) // MAX_ENCODED)
        source_lengths = _count_search_tokens(trees.source, vocabulary, stride=stride)
        target_lengths = target_lengths[::stride]
    # The search takes what is longer than the source, both with their end marks.
    extra = target_lengths - source_lengths
    needed_length = int(np.quantile(extra, MIN_FITTING_SHARE, method="inverted_cdf"))
    if needed_length > settings.search.max_extra_tokens:
        logger.warning(
            f"config.search.max_extra_tokens={settings.search.max_extra_tokens} is too "
            f"small: {100 * MIN_FITTING_SHARE:g} % of the training trees need up to "
            f"{needed_length}; increase it"
        )


def _count_search_tokens(
    sources: token_files.TokenFile, vocabulary: Vocabulary, *, stride: int
) -> Int[np.ndarray, "N"]:
    """Return the number of tokens in every stride-th source, as a search reads it.

    A search has no BPE-dropout, with which a source has more tokens.
    """
    rows = sources.id_lists(np.arange(0, len(sources), stride))
    lines = list(map(vocabulary.source.decode, rows))
    return np.array(list(map(len, vocabulary.encode(lines))))
