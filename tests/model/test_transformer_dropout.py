"""Where the model drops: section 5.4's places and no other."""

import itertools
from typing import Any

import flax.errors
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.model import small
from vaswani_jax.core import config
from vaswani_jax.model import dropout, transformer


def dropped(
    model: config.ModelConfig, *, deterministic: bool
) -> tuple[jax.Array, dict[str, np.ndarray]]:
    """The logits, and what each call of Dropout that changed something kept."""
    params = settings.random_params(model, vocab_size=small.V, seed=21)
    batch = small.random_batch(22)
    kept = {}

    def watch(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        result = call(*args, **kwargs)
        if isinstance(context.module, dropout.Dropout) and result is not args[0]:
            kept["/".join(context.module.path)] = np.asarray(result != 0)
        return result

    with nn.intercept_methods(watch):
        logits = transformer.Transformer(model, small.V).apply(
            {"params": params},
            jnp.asarray(batch.source),
            jnp.asarray(batch.target_in),
            deterministic=deterministic,
            rngs={"dropout": jax.random.key(23)},
        )
    return logits, kept


def test_dropout_is_on_embedding_sums_and_sublayer_outputs_alone() -> None:
    model = small.small_model(**{"model.dropout_rate": 0.4})
    _, kept = dropped(model, deterministic=False)
    expected = {"source_dropout", "target_dropout"}
    for stack, names in (
        ("encoder", ("self_attention", "feed_forward")),
        ("decoder", ("self_attention", "memory_attention", "feed_forward")),
    ):
        for n, name in itertools.product(range(model.num_layers), names):
            expected.add(f"{stack}/layers_{n}/{name}_residual/dropout")
    assert set(kept) == expected
    for mask in kept.values():
        assert 0.3 < mask.mean() < 0.9


def test_each_dropout_draws_a_mask_of_its_own() -> None:
    _, kept = dropped(
        small.small_model(**{"model.dropout_rate": 0.4}), deterministic=False
    )
    for first, second in itertools.combinations(kept.values(), 2):
        rows = min(first.shape[1], second.shape[1])
        assert (first[:, :rows] != second[:, :rows]).mean() > 0.2


def test_attention_and_relu_dropout_happen_where_their_rates_are_set() -> None:
    layers = ["encoder/layers_0", "decoder/layers_0"]
    attentions = [f"{layer}/self_attention/dropout" for layer in layers]
    attentions += ["decoder/layers_0/memory_attention/dropout"]
    feeds = [f"{layer}/feed_forward/relu_dropout" for layer in layers]
    for key, expected in (("attention", attentions), ("relu", feeds)):
        rate = {f"model.{key}_dropout_rate": 0.4, "model.num_layers": 1}
        _, kept = dropped(small.small_model(**rate), deterministic=False)
        assert set(kept) == set(expected)


def test_nothing_is_dropped_where_all_rates_are_0_or_if_deterministic() -> None:
    rates = dict.fromkeys(
        (f"model.{key}dropout_rate" for key in ("", "attention_", "relu_")), 0.5
    )
    plain, nothing = dropped(small.small_model(), deterministic=False)
    assert not nothing
    quiet, nothing = dropped(small.small_model(**rates), deterministic=True)
    assert not nothing
    loud, _ = dropped(small.small_model(**rates), deterministic=False)
    np.testing.assert_array_equal(quiet, plain)
    assert (loud != plain).all()


def test_training_without_a_dropout_key_fails_instead_of_keeping_all() -> None:
    model = small.small_model(**{"model.dropout_rate": 0.4})
    params = settings.random_params(model, vocab_size=small.V, seed=24)
    source, target_in, *_ = jax.tree.map(jnp.asarray, small.random_batch(25))
    with pytest.raises(flax.errors.InvalidRngError):
        transformer.Transformer(model, small.V).apply(
            {"params": params}, source, target_in, deterministic=False
        )
