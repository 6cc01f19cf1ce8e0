"""The whole model: its formulas, masks, parameters, dropout, decoding by steps."""

import functools
import itertools
import math
from typing import Any

import flax.errors
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from tests.model import small
from vaswani_jax.core import config, parallel, types
from vaswani_jax.model import cost, dropout, transformer

# More subwords of the source than of the target, whose table gives the logits.
SEPARATE = types.VocabSizes(source=13, target=small.V)
# Ids 3, 4, 7 and 10 begin words; target ids from 8 on stand for words.
TREES = types.VocabSizes(
    source=small.V,
    target=small.V,
    trees=types.TreeIds(num_labels=2, word_starts=bytes([0b00011001, 0b00100000])),
)


@pytest.mark.parametrize(
    ("variant", "vocab_size"),
    [
        *((variant, small.V) for variant in small.VARIANTS),
        (small.OTHER_VARIANT, small.V),
        (small.OTHER_VARIANT, SEPARATE),
        (small.DETERMINISTIC, TREES),
    ],
)
def test_logits_equal_the_formulas(
    variant: dict[str, Any], vocab_size: types.VocabSize
) -> None:
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=vocab_size, seed=0)
    batch = small.random_batch(1)
    if vocab_size == SEPARATE:
        batch.source[0, 0] = SEPARATE.source - 1
    run = small.compiled(model, vocab_size)
    logits = run(params, batch.source, batch.target_in)
    assert logits.shape == (small.B, small.T, small.V)
    for row in range(small.B):
        source, target_in = (side[row][side[row] != 0] for side in batch[:2])
        expected = reference.logits(
            reference.to_float64(params),
            source,
            target_in,
            model=model,
            trees=getattr(vocab_size, "trees", None),
        )
        row_logits = logits[row, : len(target_in)]
        np.testing.assert_allclose(row_logits, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("variant", [small.VARIANTS[0], small.PRE_LEARNED])
def test_packed_rows_have_the_same_logits_on_each_platform(
    variant: dict[str, str],
) -> None:
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=small.V, seed=2)
    batch = small.random_batch(3)
    segments = types.Segments(
        *(np.arange(side.shape[1]) // 2 + (side > 0) for side in batch[:2])
    )

    def logits() -> jax.Array:
        # Compiled anew for each platform.
        network = transformer.Transformer(model, small.V)
        run = jax.jit(functools.partial(network.apply, deterministic=True))
        variables = {"params": params}
        return run(variables, batch.source, batch.target_in, segments=segments)

    expected = logits()
    for platform in ("gpu", "tpu"):
        with parallel.targeting(platform):
            np.testing.assert_allclose(logits(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("variant", [small.VARIANTS[0], small.PRE_LEARNED])
def test_logits_do_not_depend_on_later_targets(variant: dict[str, str]) -> None:
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=small.V, seed=2)
    batch = small.random_batch(3)
    logits = np.asarray(small.compiled(model)(params, batch.source, batch.target_in))
    for position in range(1, small.T):
        changed = batch.target_in.copy()
        changed[:, position:] = 3 + (changed[:, position:] + 1) % (small.V - 3)
        changed_logits = np.asarray(
            small.compiled(model)(params, batch.source, changed)
        )
        np.testing.assert_array_equal(
            changed_logits[:, :position], logits[:, :position]
        )
        assert (changed_logits[:, position] != logits[:, position]).all()


def test_logits_do_not_depend_on_padding_columns() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=4)
    batch = small.random_batch(5)
    logits = small.compiled(model)(params, batch.source, batch.target_in)
    wider = (
        np.pad(batch.source, [(0, 0), (0, 6)]),
        np.pad(batch.target_in, [(0, 0), (0, 4)]),
    )
    wider_logits = small.compiled(model)(params, *wider)
    real = batch.target_in != types.PAD_ID
    np.testing.assert_allclose(
        wider_logits[:, : small.T][real], logits[real], rtol=1e-5, atol=1e-5
    )


def test_logits_do_not_depend_on_other_rows() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=6)
    batch = small.random_batch(7)
    together = small.compiled(model)(params, batch.source, batch.target_in)
    changed = small.random_batch(8)
    for row in range(small.B):
        source, target_in = changed.source.copy(), changed.target_in.copy()
        source[row], target_in[row] = batch.source[row], batch.target_in[row]
        beside_others = small.compiled(model)(params, source, target_in)
        np.testing.assert_array_equal(beside_others[row], together[row])


def test_what_the_padding_embedding_holds_reaches_no_other_logit() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=9)
    batch = small.random_batch(10)
    logits = np.asarray(small.compiled(model)(params, batch.source, batch.target_in))
    params["embedding"]["embedding"][types.PAD_ID] += 3
    changed_logits = np.asarray(
        small.compiled(model)(params, batch.source, batch.target_in)
    )
    real = batch.target_in != types.PAD_ID
    is_other = np.arange(small.V) != types.PAD_ID
    np.testing.assert_array_equal(
        changed_logits[real][:, is_other], logits[real][:, is_other]
    )
    assert (~real).any()
    assert (changed_logits[~real][:, is_other] != logits[~real][:, is_other]).all()


def test_a_row_of_padding_gives_finite_logits() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=11)
    nothing = (
        np.zeros((small.B, small.S), np.int32),
        np.zeros((small.B, small.T), np.int32),
    )
    assert np.isfinite(small.compiled(model)(params, *nothing)).all()


@pytest.mark.parametrize(
    ("variant", "vocab_size"),
    [
        (small.VARIANTS[0], small.V),
        (small.PRE_LEARNED, small.V),
        (small.OTHER_VARIANT, SEPARATE),
        (small.DETERMINISTIC, TREES),
    ],
)
def test_decoding_step_by_step_equals_the_full_pass(
    variant: dict[str, str], vocab_size: types.VocabSize
) -> None:
    W, room = 4, (2, 6)
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=vocab_size, seed=12)
    network = transformer.Transformer(model, vocab_size)
    source = jnp.asarray(small.random_batch(13).source)
    generator = np.random.default_rng(14)
    cache = network.apply(
        {"params": params},
        source,
        beam_size=W,
        max_length=room[0],
        method="start_cache",
    )
    step = jax.jit(functools.partial(network.apply, method="decode_step"))
    # The cache is at last longer than what is written: the rest must not be seen.
    prefixes = np.zeros((small.B, W, 0), np.int32)
    for position in range(small.T):
        tokens = generator.integers(3, small.V, (small.B, W, 1), np.int32)
        prefixes = np.concatenate([prefixes, tokens], axis=2)
        logits, cache = step(
            {"params": params}, tokens[..., 0], cache, position=jnp.int32(position)
        )
        padded = np.zeros((small.B * W, small.T), np.int32)
        padded[:, : position + 1] = prefixes.reshape(small.B * W, -1)
        run = small.compiled(model, vocab_size)
        full = run(params, np.repeat(source, W, axis=0), padded)
        expected = np.asarray(full)[:, position].reshape(small.B, W, small.V)
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
        # As a search would: some beams go on twice, others not at all.
        origin = generator.integers(0, W, (small.B, W))
        prefixes = np.take_along_axis(prefixes, origin[..., None], axis=1)
        cache = cache.replace(beams=cache.beams.reorder(jnp.asarray(origin)))
        if position + 1 == room[0]:
            cache = cache.replace(beams=cache.beams.resize(room[1]))


def test_the_cache_holds_the_memory_once_for_all_beams() -> None:
    W, longest = 4, 9
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=15)
    cache = transformer.Transformer(model, small.V).apply(
        {"params": params},
        jnp.asarray(small.random_batch(16).source),
        beam_size=W,
        max_length=longest,
        method="start_cache",
    )
    H, D_K, D_V = model.num_heads, model.d_k, model.d_v
    layers = cache.beams.layers
    assert len(cache.memory) == len(layers) == model.num_layers
    for layer, memory in zip(layers, cache.memory, strict=True):
        assert memory.key.shape == (small.B, H, D_K, small.S)
        assert memory.value.shape == (small.B, H, small.S, D_V)
        assert layer.key.shape == (small.B, H, D_K, longest * W)
        assert layer.value.shape == (small.B, H, longest * W, D_V)


def test_bfloat16_keeps_parameters_and_logits_in_float32() -> None:
    exact, coarse = (
        small.small_model(),
        small.small_model(**{"model.dtype": "bfloat16"}),
    )
    for leaf in jax.tree.leaves(small.initial_params(coarse, vocab_size=small.V)):
        assert leaf.dtype == jnp.float32
    params = settings.random_params(exact, vocab_size=small.V, seed=17)
    batch = small.random_batch(18)
    expected = small.compiled(exact)(params, batch.source, batch.target_in)
    logits = small.compiled(coarse)(params, batch.source, batch.target_in)
    assert logits.dtype == jnp.float32
    # bfloat16 has 8 bits: different from float32, and not very.
    real = batch.target_in != types.PAD_ID
    error = np.abs(logits - expected)[real].max() / np.abs(expected)[real].max()
    assert 2**-12 < error < 2**-4
    memory = transformer.Transformer(coarse, small.V).apply(
        {"params": params},
        jnp.asarray(batch.source),
        deterministic=True,
        method="encode",
    )
    assert memory.dtype == jnp.bfloat16


def test_bfloat16_decodes_step_by_step_with_a_bfloat16_cache() -> None:
    model = small.small_model(**{"model.dtype": "bfloat16"})
    params = {"params": settings.random_params(model, vocab_size=small.V, seed=19)}
    network = transformer.Transformer(model, small.V)
    batch = jax.tree.map(jnp.asarray, small.random_batch(20))
    cache = network.apply(
        params, batch.source, beam_size=1, max_length=small.T, method="start_cache"
    )
    step = jax.jit(functools.partial(network.apply, method="decode_step"))
    full = small.compiled(model)(params["params"], batch.source, batch.target_in)
    for position in range(small.T):
        tokens = batch.target_in[:, position : position + 1]
        logits, cache = step(params, tokens, cache, position=jnp.int32(position))
        assert logits.dtype == jnp.float32
        # Row 0 has no padding, whose masks the step does not know.
        expected = full[0, position]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(logits[0, 0], expected, atol=2**-4 * scale)
    for leaf in jax.tree.leaves(cache.beams.layers):
        assert leaf.dtype == jnp.bfloat16


def initial_shapes(model: config.ModelConfig, *, vocab_size: types.VocabSize) -> Any:
    return jax.eval_shape(lambda: small.initial_params(model, vocab_size=vocab_size))


def count(tree: Any) -> int:
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


# Embedding V d_model; attention 4 d_model^2; feed-forward 2 d_model d_ff and its
# biases; 2 d_model for each of 2 + 3 normalisations.
@pytest.mark.parametrize(
    ("d_model", "d_ff", "num_heads", "stacks", "total"),
    [
        (512, 2048, 8, 44_101_632, 63_045_632),
        (1024, 4096, 16, 176_283_648, 214_171_648),
    ],
    ids=["base", "big"],
)
def test_parameter_count_is_the_closed_form(
    d_model: int, d_ff: int, num_heads: int, stacks: int, total: int
) -> None:
    sizes = {"num_layers": 6, "d_model": d_model, "d_ff": d_ff}
    sizes |= {"num_heads": num_heads, "d_k": 64, "d_v": 64}
    model = small.small_model(**{f"model.{key}": size for key, size in sizes.items()})
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    layers = 3 * attention + 2 * feed_forward + 5 * 2 * d_model
    assert 6 * layers == stacks
    assert stacks + 37_000 * d_model == total
    params = initial_shapes(model, vocab_size=37_000)
    assert count(params) == total
    assert count({"encoder": params["encoder"], "decoder": params["decoder"]}) == stacks


@pytest.mark.parametrize("variant", [small.VARIANTS[0], small.PRE_LEARNED])
def test_parameters_are_those_of_the_paper_and_no_other(
    variant: dict[str, str],
) -> None:
    model = small.small_model(**variant)
    D, F, H = model.d_model, model.d_ff, model.num_heads
    looking = {name: {"kernel": (D, H, model.d_k)} for name in ("query", "key")}
    looking |= {"value": {"kernel": (D, H, model.d_v)}}
    looking |= {"output": {"kernel": (H, model.d_v, D)}}
    feeding = {
        "inner": {"kernel": (D, F), "bias": (F,)},
        "outer": {"kernel": (F, D), "bias": (D,)},
    }
    norm = {"scale": (D,), "bias": (D,)}
    encoder_layer = {"self_attention": looking, "feed_forward": feeding}
    decoder_layer = encoder_layer | {"memory_attention": looking}
    expected: dict[str, Any] = {"embedding": {"embedding": (small.V, D)}}
    for stack, layer in (("encoder", encoder_layer), ("decoder", decoder_layer)):
        residuals = {f"{name}_residual": {"norm": norm} for name in layer}
        names = [f"layers_{n}" for n in range(model.num_layers)]
        expected[stack] = dict.fromkeys(names, layer | residuals)
        if variant == small.PRE_LEARNED:
            expected[stack] |= {"final_norm": norm}
    if variant == small.PRE_LEARNED:
        for side in ("source", "target"):
            table = (model.max_positions, D)
            expected[f"{side}_positions"] = {"embedding": table}
    shapes = jax.tree.map(lambda x: x.shape, initial_shapes(model, vocab_size=small.V))
    assert shapes == expected


def dropped(
    model: config.ModelConfig, *, deterministic: bool
) -> tuple[jax.Array, dict[str, np.ndarray]]:
    """The logits, and what each call of Dropout that changed something kept."""
    params = settings.random_params(model, vocab_size=small.V, seed=21)
    batch = small.random_batch(22)
    masks = {}

    def watch(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        result = call(*args, **kwargs)
        if isinstance(context.module, dropout.Dropout) and result is not args[0]:
            masks["/".join(context.module.path)] = np.asarray(result != 0)
        return result

    with nn.intercept_methods(watch):
        logits = transformer.Transformer(model, small.V).apply(
            {"params": params},
            jnp.asarray(batch.source),
            jnp.asarray(batch.target_in),
            deterministic=deterministic,
            rngs={"dropout": jax.random.key(23)},
        )
    return logits, masks


def test_each_vocabulary_has_an_embedding_of_its_own() -> None:
    model = small.small_model(**small.OTHER_VARIANT)
    shared = cost.count_parameters(model, vocab_size=small.V)
    shapes = initial_shapes(model, vocab_size=SEPARATE)
    assert shapes.keys() - {"encoder", "decoder"} == {
        "source_embedding",
        "target_embedding",
    }
    assert shapes["source_embedding"].keys() == {"embedding"}
    assert shapes["target_embedding"].keys() == {"embedding", "bias"}
    assert count(shapes) == cost.count_parameters(model, vocab_size=SEPARATE)
    assert count(shapes) == shared + SEPARATE.source * model.d_model


def test_dropout_is_on_embedding_sums_and_sublayer_outputs_alone() -> None:
    model = small.small_model(**{"model.dropout_rate": 0.4})
    _, masks = dropped(model, deterministic=False)
    expected = {"source_dropout", "target_dropout"}
    for stack, names in (
        ("encoder", ("self_attention", "feed_forward")),
        ("decoder", ("self_attention", "memory_attention", "feed_forward")),
    ):
        for n, name in itertools.product(range(model.num_layers), names):
            expected.add(f"{stack}/layers_{n}/{name}_residual/dropout")
    assert set(masks) == expected
    for mask in masks.values():
        assert 0.3 < mask.mean() < 0.9


def test_each_dropout_draws_a_mask_of_its_own() -> None:
    _, masks = dropped(
        small.small_model(**{"model.dropout_rate": 0.4}), deterministic=False
    )
    for first, second in itertools.combinations(masks.values(), 2):
        rows = min(first.shape[1], second.shape[1])
        assert (first[:, :rows] != second[:, :rows]).mean() > 0.2


def test_attention_and_relu_dropout_happen_where_their_rates_are_set() -> None:
    layers = ["encoder/layers_0", "decoder/layers_0"]
    attentions = [f"{layer}/self_attention/dropout" for layer in layers]
    attentions += ["decoder/layers_0/memory_attention/dropout"]
    feeds = [f"{layer}/feed_forward/relu_dropout" for layer in layers]
    for key, expected in (("attention", attentions), ("relu", feeds)):
        rate = {f"model.{key}_dropout_rate": 0.4, "model.num_layers": 1}
        _, masks = dropped(small.small_model(**rate), deterministic=False)
        assert set(masks) == set(expected)


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
