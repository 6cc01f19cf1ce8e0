"""A few token pairs whose ids say which pair, side and position they are."""

import tempfile
from pathlib import Path

import jax
import numpy as np

from vaswani_jax.data import token_files

VOCAB_SIZE = 100_000


def token_file(path, sentences):
    with token_files.open_writer(path, vocab_size=VOCAB_SIZE) as writer:
        writer.write(sentences)
    return token_files.TokenFile.open(path)


def sentence(number, *, length, side):
    """Ids that tell the pair, the side and the position."""
    return [4 + 100 * number + 50 * side + position for position in range(length)]


def token_pairs_of(lengths):
    """Pairs with so many (source, target) tokens."""
    with tempfile.TemporaryDirectory() as directory:
        sides = [
            token_file(
                Path(directory, name),
                [
                    sentence(n, length=pair[side], side=side)
                    for n, pair in enumerate(lengths)
                ],
            )
            for side, name in enumerate(("train.source", "train.target"))
        ]
    # The mapped files stay readable when their directory is gone.
    return token_files.TokenPairs(*sides)


def epoch(batches, number):
    count = batches.batches_per_epoch
    return [batches.batch_at(number * count + index) for index in range(count)]


def random_lengths(count, *, longest, seed):
    generator = np.random.default_rng(seed)
    return [tuple(pair) for pair in generator.integers(1, longest, (count, 2)).tolist()]


def assert_processes_have_the_whole(batches, processes):
    """Each has its rows of every batch and nothing else; together they have all."""
    for step in range(batches.batches_per_epoch):
        batch = batches.batch_at(step)
        total = jax.tree.map(np.zeros_like, batch)
        for process in range(processes):

            def local_rows(rows, process=process):
                share = -(-rows // processes)
                start = min(rows, process * share)
                return range(start, min(rows, start + share))

            part = batches.batch_at(step, local_rows)
            rows = len(batch.source)
            other_rows = np.setdiff1d(np.arange(rows), local_rows(rows))
            assert not any(leaf[other_rows].any() for leaf in jax.tree.leaves(part))
            total = jax.tree.map(np.add, total, part)
        jax.tree.map(np.testing.assert_array_equal, total, batch)
