"""Section 5.1: the batches of training, in the mode that the config names."""

from vaswani_jax.core import config
from vaswani_jax.data import batching, packing, token_files


def training_batches(
    data: config.DataConfig, corpus: token_files.Corpus, *, seed: int
) -> batching.Batches | packing.PackedBatches:
    """The batches that training takes from a corpus."""
    if data.batching == "packed":
        return packing.PackedBatches(
            corpus,
            source_tokens=data.source_tokens_per_batch,
            target_tokens=data.target_tokens_per_batch,
            row_length=data.packed_length,
            seed=seed,
        )
    return batching.Batches(
        corpus,
        source_tokens=data.source_tokens_per_batch,
        target_tokens=data.target_tokens_per_batch,
        num_buckets=data.num_buckets,
        max_length=data.max_length,
        seed=seed,
        shuffle=True,
    )
