"""Section 5.1's batches of the training text: by length or packed, of all corpora."""

from collections.abc import Mapping

from vaswani_jax.core import config
from vaswani_jax.data import batching, mixture, packing, token_files


def make_training_batches(
    data: config.DataConfig,
    token_pairs: token_files.TokenPairs,
    *,
    seed: int,
    corpus_sizes: Mapping[str, int],
) -> batching.Batches:
    """Return the batches of the training text, by length or packed.

    Args:
        data: How to batch it, and the shares of its corpora.
        token_pairs: All pairs.
        seed: Decides their order.
        corpus_sizes: The number of pairs of each corpus of `data.corpora`.
    """
    corpora_mixture = mixture.plan(data, corpus_sizes)
    if corpora_mixture and corpora_mixture.is_plain:
        corpora_mixture = None
    if data.batching == "packed":
        return packing.PackedBatches(
            token_pairs,
            source_tokens=data.source_tokens_per_batch,
            target_tokens=data.target_tokens_per_batch,
            row_length=data.packed_length,
            seed=seed,
            mixture=corpora_mixture,
        )
    return batching.BucketedBatches(
        token_pairs,
        source_tokens=data.source_tokens_per_batch,
        target_tokens=data.target_tokens_per_batch,
        num_buckets=data.num_buckets,
        bucket_lengths=data.bucket_lengths,
        max_length=data.max_length,
        seed=seed,
        shuffle=True,
        mixture=corpora_mixture,
    )


def epoch_shares(
    data: config.DataConfig,
    pairs: token_files.TokenPairs,
    batches: batching.Batches,
    *,
    corpus_sizes: Mapping[str, int],
) -> tuple[mixture.EpochShares, ...]:
    """Return what each corpus gives to an epoch of each stage; () without corpora.

    Args:
        data: Names the corpora.
        pairs: All pairs.
        batches: The training batches.
        corpus_sizes: The number of pairs of each corpus of `data.corpora`.
    """
    corpora_mixture = mixture.plan(data, corpus_sizes)
    if not corpora_mixture:
        return ()
    num_batches = [len(plan.slices) for plan in batches.epoch_plans]
    return mixture.epoch_shares(corpora_mixture, pairs, num_batches=num_batches)
