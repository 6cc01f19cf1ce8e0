"""The loss of held-out pairs is that of all of them, each counted once."""

import math
import pathlib

import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import parallel, types
from vaswani_jax.data import batching, token_files
from vaswani_jax.evaluation import validation

PAIRS, LONGEST, V = 37, 15, 9
Sentences = list[list[int]]
SMALL = settings.small_settings(
    **{
        "model.dropout_rate": 0.5,
        "data.num_buckets": 6,
        "data.source_tokens_per_batch": 96,
        "data.target_tokens_per_batch": 80,
        "training.label_smoothing": 0.3,
    }
)


def random_side(seed: int) -> Sentences:
    """Sentences of 1 to LONGEST words."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, LONGEST + 1, PAIRS)
    return [generator.integers(types.UNK_ID, V, n).tolist() for n in lengths]


def token_file(path: pathlib.Path, sentences: Sentences) -> token_files.TokenFile:
    writer = token_files.TokenWriter(path, vocab_size=V)
    writer.write(sentences)
    writer.close()
    return token_files.TokenFile(path)


def one_batch(sources: Sentences, targets: Sentences) -> types.Batch:
    """All pairs in one batch, padded to the longest of all."""
    batch = types.Batch(*(np.zeros((PAIRS, LONGEST + 1), np.int32) for _ in range(3)))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        batch.source[row, : len(source) + 1] = [*source, types.EOS_ID]
        batch.target_in[row, : len(target) + 1] = [types.BOS_ID, *target]
        batch.target_out[row, : len(target) + 1] = [*target, types.EOS_ID]
    return batch


def test_loss_evaluator_gives_the_means_over_all_pairs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = random_side(1), random_side(2)
    corpus = token_files.Corpus(
        token_file(tmp_path / "source", sources),
        token_file(tmp_path / "target", targets),
    )
    shapes: list[tuple[int, ...]] = []
    batch_at = batching.Batches.batch_at

    def recorded(
        batches: batching.Batches, step: int, own: batching.OwnRows
    ) -> types.Batch:
        batch = batch_at(batches, step, own)
        shapes.append(batch.source.shape)
        return batch

    monkeypatch.setattr(batching.Batches, "batch_at", recorded)
    batches = validation.batches(SMALL, corpus)
    evaluate = validation.loss_evaluator(SMALL, batches, vocab_size=V, name="held_out")
    every_pair = one_batch(sources, targets)
    # The second call must neither add to the first nor keep its parameters.
    for seed in (3, 4):
        params = settings.random_params(SMALL.model, vocab_size=V, seed=seed)
        found = evaluate(parallel.replicate(params))
        sums = reference.loss_sums(
            reference.to_float64(params),
            every_pair,
            model=SMALL.model,
            label_smoothing=SMALL.training.label_smoothing,
        )
        assert sums["tokens"] == sum(len(target) + 1 for target in targets)
        assert 0 < sums["correct"] < sums["tokens"], "any accuracy would be right"
        expected = {
            "held_out/loss": sums["loss"] / sums["tokens"],
            "held_out/perplexity": math.exp(sums["nll"] / sums["tokens"]),
            "held_out/accuracy": sums["correct"] / sums["tokens"],
        }
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    assert set(shapes) == set(batches.shapes)
    assert len(set(shapes)) > 1, "one bucket: nothing is tested"
    assert len(shapes) // 2 > len(set(shapes)), "one batch a bucket is too few"
