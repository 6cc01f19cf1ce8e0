"""One update: its gradient, Adam, dropout, and the division of a batch."""

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from tests.training import updates
from vaswani_jax.core import config, parallel, types
from vaswani_jax.model import transformer
from vaswani_jax.training import loss
from vaswani_jax.training import step as training_step


def test_tests_have_eight_devices() -> None:
    assert parallel.num_devices() == 8


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {
            "model.layer_norm_position": "pre",
            "model.positional_encoding": "learned",
            "model.max_positions": 32,
        },
    ],
    ids=["post sinusoidal", "pre learned"],
)
def test_gradient_is_that_of_the_formulas_by_central_differences(
    variant: dict[str, Any],
) -> None:
    model = settings.small_settings(**{"model.num_layers": 2, **variant}).model
    params = settings.random_params(model, vocab_size=updates.V, seed=0)
    batch = updates.random_batch(1, rows=2)

    def total(params: Any, batch: types.Batch) -> jax.Array:
        logits = transformer.Transformer(model, updates.V).apply(
            {"params": params}, batch.source, batch.target_in, deterministic=True
        )
        return loss.smoothed_cross_entropy(
            logits, batch.target_out, label_smoothing=0.1
        ).loss

    gradients = jax.jit(jax.grad(total))(params, batch)
    exact = reference.to_float64(params)

    def exact_total() -> float:
        sums = reference.loss_sums(exact, batch, model=model, label_smoothing=0.1)
        return sums["loss"]

    generator = np.random.default_rng(2)
    for path, leaf in jax.tree_util.tree_leaves_with_path(exact):
        gradient = gradients
        for entry in path:
            gradient = gradient[entry.key]
        gradient = np.asarray(gradient)
        largest = np.unravel_index(np.abs(gradient).argmax(), leaf.shape)
        drawn = [tuple(generator.integers(leaf.shape)) for _ in range(3)]
        for index in (largest, *drawn):
            expected = reference.partial_derivative(exact_total, leaf, index)
            np.testing.assert_allclose(
                gradient[index],
                expected,
                rtol=1e-4,
                atol=1e-5 * np.abs(gradient).max() + 1e-6,
                err_msg=f"{jax.tree_util.keystr(path)}{list(index)}",
            )


def test_three_updates_on_eight_devices_are_adam_in_numpy() -> None:
    sizes = {"d_model": 4, "d_ff": 5, "num_heads": 2, "d_k": 3, "d_v": 1}
    settings_ = settings.small_settings(
        **{f"model.{key}": size for key, size in sizes.items()},
        **{"optimizer.warmup_steps": 2, "optimizer.epsilon": 1e-4},
    )
    state = updates.random_state(settings_, seed=3)
    exact = reference.to_float64(state.params)
    leaves = jax.tree.leaves(exact)
    adams = [reference.Adam(leaf.shape) for leaf in leaves]
    for step in range(3):
        # Fewer rows than devices: some of them have none.
        batch = updates.random_batch(4 + step, rows=2)
        rows = parallel.split_rows(batch, num_microbatches=1)
        state, metrics = updates.on_eight(settings_)(state, rows)

        sums = functools.partial(
            reference.loss_sums,
            exact,
            batch,
            model=settings_.model,
            label_smoothing=0.1,
        )
        expected = sums()
        for field in updates.FIELDS:
            value = getattr(metrics.sums, field)
            np.testing.assert_allclose(value, expected[field], rtol=1e-4)
        gradients = [
            reference.gradient(lambda sums=sums: sums()["loss"], leaf)
            / expected["tokens"]
            for leaf in leaves
        ]
        norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
        np.testing.assert_allclose(metrics.gradient_norm, norm, rtol=1e-4)
        for leaf, gradient, adam in zip(leaves, gradients, adams, strict=True):
            leaf += adam.step(gradient, settings=settings_)
        # An update is about 0.35: this is a thousandth of it.
        updates.assert_close(state.params, exact, rtol=1e-4, atol=3e-4)
        assert int(state.step) == step + 1


# An eps_ls of 0.1 shared by the V - 1 others is this one shared by all V.
OTHERS = {"training.label_smoothing_form": "others"}
UNIFORM_SMOOTHING = 0.1 * updates.V / (updates.V - 1)
ALTERNATIVES = {
    **OTHERS,
    **{"optimizer.schedule": "constant", "optimizer.learning_rate": 0.5},
    **{"optimizer.learning_rate_scale": 1.0, "optimizer.max_gradient_norm": 0.25},
    **{"optimizer.weight_decay": 0.1, "optimizer.frozen": "encoder/*"},
    **{"training.ema_decay": 0.9, "data.vocabulary_sharing": "separate"},
    **{"model.num_encoder_layers": 2, "model.num_decoder_layers": 1},
}


@pytest.mark.parametrize("changes", [{}, ALTERNATIVES], ids=["paper", "alternatives"])
def test_eight_devices_make_the_update_of_one(changes: dict[str, Any]) -> None:
    settings_ = settings.small_settings(**{**updates.SMOOTH, **changes})
    state = updates.random_state(settings_, seed=8)
    batch = updates.random_batch(9)
    eight_devices = updates.on_eight(settings_)(state, updates.shared_among(batch, 8))
    one_device = updates.on_one(settings_)(state, updates.shared_among(batch, 1))
    updates.assert_close(eight_devices, one_device, rtol=1e-5, atol=1e-6)
    frozen = changes.get("optimizer.frozen", "")[:-2]
    for path, new in jax.tree_util.tree_leaves_with_path(one_device[0].params):
        old = functools.reduce(lambda tree, key: tree[key.key], path, state.params)
        smallest = 0.0 if path[0].key == frozen else 1e-4
        assert (np.abs(new - old).max() > smallest) == (path[0].key != frozen), path


def test_an_update_smooths_clips_decays_and_averages_as_its_settings_say() -> None:
    settings_ = settings.small_settings(**{**updates.SMOOTH, **ALTERNATIVES})
    state = updates.random_state(settings_, seed=8, step=3)
    batch = updates.random_batch(9)
    new, metrics = updates.on_eight(settings_)(state, updates.shared_among(batch, 8))
    sums = reference.loss_sums(
        reference.to_float64(state.params),
        batch,
        model=settings_.model,
        label_smoothing=UNIFORM_SMOOTHING,
    )
    np.testing.assert_allclose(metrics.sums.loss, sums["loss"], rtol=1e-5)
    adam = new.opt_state.inner_states["train"].inner_state[0]
    first_moments = jax.tree.leaves(adam.mu)
    # Update 4: the average's decay is 5 / 14, far from 0.9.
    num_averaged = 0
    for old, average, params in zip(
        *map(jax.tree.leaves, (state.average, new.average, new.params)), strict=True
    ):
        if np.array_equal(average, params):
            continue  # It is frozen.
        num_averaged += 1
        np.testing.assert_allclose(
            average, 5 / 14 * np.asarray(old) + 9 / 14 * np.asarray(params), rtol=1e-5
        )
    assert num_averaged == len(first_moments)
    # Adam's first moment is (1 - beta_1) times the clipped gradient.
    norm = np.sqrt(sum((np.asarray(leaf) ** 2).sum() for leaf in first_moments)) / 0.1
    np.testing.assert_allclose(norm, 0.25, rtol=1e-5)
    assert metrics.gradient_norm > 0.25
    # One update of Adam, with its epsilon of 1, and 0.1 of the parameters.
    kernel = ("decoder", "layers_0", "feed_forward", "inner", "kernel")
    old, params, gradient = (
        np.asarray(functools.reduce(lambda tree, key: tree[key], kernel, tree))
        for tree in (state.params, new.params, adam.mu)
    )
    gradient = gradient / 0.1
    expected = old - 0.5 * 1 / 4 * (gradient / (np.abs(gradient) + 1) + 0.1 * old)
    np.testing.assert_allclose(params, expected, rtol=1e-5, atol=1e-6)


def test_a_batch_in_parts_makes_the_update_of_the_whole() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=10)
    rows = updates.shared_among(updates.random_batch(11), 8)
    result = updates.on_eight(
        settings.small_settings(**updates.SMOOTH, **updates.PARTS)
    )(state, rows)
    expected = updates.on_eight(settings_)(state, rows)
    updates.assert_close(result, expected, rtol=1e-5, atol=1e-6)


def test_rows_of_padding_do_not_change_the_update() -> None:
    """Nor does it matter which device has which row."""
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=12)
    batch = updates.random_batch(13, rows=19)
    padded = jax.tree.map(lambda side: np.pad(side, [(0, 29), (0, 0)]), batch)
    expected = updates.on_eight(settings_)(state, updates.shared_among(padded, 8))
    order = np.random.default_rng(14).permutation(updates.ROWS)
    mixed = jax.tree.map(lambda side: side[order], padded)
    result = updates.on_eight(settings_)(state, updates.shared_among(mixed, 8))
    updates.assert_close(result, expected, rtol=1e-5, atol=1e-6)
    assert float(result[1].sums.tokens) == (batch.target_out != types.PAD_ID).sum()


def test_a_batch_of_padding_alone_changes_no_parameter() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=15)
    nothing = jax.tree.map(np.zeros_like, updates.random_batch(16))
    new_state, metrics = updates.on_eight(settings_)(
        state, updates.shared_among(nothing, 8)
    )
    updates.assert_equal(new_state.params, state.params)
    assert float(metrics.gradient_norm) == float(metrics.sums.tokens) == 0


@functools.lru_cache
def created(settings_: config.Config) -> training_step.TrainState:
    return training_step.create_state(settings_, vocab_size=updates.V)


def test_the_first_state_is_a_function_of_the_seed_and_the_shapes_alone() -> None:
    first = created(settings.small_settings(**updates.DROPPING))
    assert int(first.step) == 0
    second = created(settings.small_settings(**updates.SMOOTH))
    updates.assert_equal(second, first)
    changed = created(settings.small_settings(**updates.DROPPING, seed=2))
    for leaf, first_leaf in updates.pairs_of_leaves(changed.params, first.params):
        constant = len(np.unique(leaf)) == 1
        assert constant == np.array_equal(leaf, first_leaf)


def test_an_update_keeps_the_form_of_the_created_state() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    state = created(settings_)
    rows = updates.shared_among(updates.random_batch(24), 8)
    new_state, _ = updates.on_eight(settings_)(parallel.replicate(state), rows)
    for new, old in updates.pairs_of_leaves(new_state, state):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)


def test_the_loss_step_sums_the_formulas_and_drops_nothing() -> None:
    settings_ = settings.small_settings(**updates.DROPPING, **OTHERS)
    params = settings.random_params(settings_.model, vocab_size=updates.V, seed=25)
    batch = updates.random_batch(26, rows=11)
    step = training_step.loss_step(settings_, vocab_size=updates.V)
    rows = parallel.split_rows(batch, num_microbatches=1)
    sums = parallel.over_devices(step, donate_state=False)(params, rows)
    expected = reference.loss_sums(
        reference.to_float64(params),
        batch,
        model=settings_.model,
        label_smoothing=UNIFORM_SMOOTHING,
    )
    for field in updates.FIELDS:
        np.testing.assert_allclose(getattr(sums, field), expected[field], rtol=1e-5)


def test_bfloat16_keeps_state_loss_and_gradient_norm_in_float32() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH, **{"model.dtype": "bfloat16"})
    state = updates.random_state(settings_, seed=27)
    rows = updates.shared_among(updates.random_batch(28), 8)
    new_state, metrics = updates.on_eight(settings_)(state, rows)
    for leaf in jax.tree.leaves((new_state.params, new_state.opt_state, metrics)):
        assert leaf.dtype in (jnp.float32, jnp.int32)
    assert metrics.sums.loss.dtype == metrics.gradient_norm.dtype == jnp.float32
    exact = settings.small_settings(**updates.SMOOTH)
    _, expected = updates.on_eight(exact)(state, rows)
    np.testing.assert_allclose(metrics.sums.loss, expected.sums.loss, rtol=0.02)


def test_all_products_of_a_bfloat16_update_are_of_bfloat16() -> None:
    """Forward and backward: accelerators compute others at half the rate or less."""
    settings_ = settings.small_settings(**updates.SMOOTH, **{"model.dtype": "bfloat16"})
    state = parallel.replicate(updates.random_state(settings_, seed=27))
    rows = updates.shared_among(updates.random_batch(28), 8)
    program = updates.on_eight(settings_).lower(state, rows).as_text()
    operands = re.findall(r"stablehlo\.dot_general .*: \((.*)\) ->", program)
    assert len(operands) > 3 * 8
    assert not [types for types in operands if types.count("bf16") != 2]


def test_gradients_cross_devices_in_one_all_reduce() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH)
    rows = updates.shared_among(updates.random_batch(14), 8)
    state = parallel.replicate(updates.random_state(settings_, seed=15))
    program = updates.on_eight(settings_).lower(state, rows).compile().as_text()
    assert len(re.findall(r" = .* all-reduce\(", program)) == 1


def test_gpus_get_a_few_all_reduces_of_vectors() -> None:
    settings_ = settings.small_settings(**{"model.num_layers": 2})
    rows = updates.shared_among(updates.random_batch(14), 8)
    state = updates.random_state(settings_, seed=15)
    with parallel.targeting("gpu"):
        step = training_step.train_step(
            settings_, vocab_size=updates.V, num_microbatches=1
        )
        run = parallel.over_devices(step, donate_state=False)
        lowered = run.lower(state, rows).as_text()
    # As it is handed to the compiler, which could only join more; with the four sums.
    sums = re.findall(r'"stablehlo.all_reduce".*?-> tensor<(\w+)>', lowered, re.S)
    vectors = [int(size.partition("x")[0]) for size in sums if "x" in size]
    assert 4 <= len(vectors) <= 8
    assert len(sums) == len(vectors) + 4
    assert sum(vectors) == sum(leaf.size for leaf in jax.tree.leaves(state.params))


def test_fused_attention_is_refused_without_a_gpu():
    fused = settings.small_settings(
        **{
            "model.attention": "cudnn",
            "model.dtype": "bfloat16",
            "model.d_k": 8,
            "model.d_v": 8,
        }
    )
    with pytest.raises(ValueError, match="attention=cudnn needs a GPU; JAX sees 8 cpu"):
        training_step.train_step(fused, vocab_size=9, num_microbatches=1)


def test_the_same_seed_and_step_drop_the_same() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    state = updates.random_state(settings_, seed=17)
    rows = updates.shared_among(updates.random_batch(18), 8)
    first, second = (updates.on_eight(settings_)(state, rows) for _ in range(2))
    updates.assert_equal(second, first)


def test_another_step_or_seed_drops_differently() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    rows = updates.shared_among(updates.random_batch(19), 8)

    def loss_of(settings_: config.Config, step: int) -> float:
        state = updates.random_state(settings_, seed=20, step=step)
        _, metrics = updates.on_eight(settings_)(state, rows)
        return float(metrics.sums.loss)

    other_seed = settings.small_settings(**updates.DROPPING, seed=2)
    losses = [loss_of(settings_, 0), loss_of(settings_, 1), loss_of(other_seed, 0)]
    assert len(set(losses)) == 3


# Which rows of the six on each of eight devices hold the one sentence.
@pytest.mark.parametrize(
    ("subset", "superset"),
    [
        (np.s_[:1, 0], np.s_[:, 0]),  # the first device, all devices
        (np.s_[:, 0], np.s_[:, ::2]),  # the first of three parts, all of them
        (np.s_[:, 0], np.s_[:, :2]),  # one row of a part, both of them
    ],
    ids=["devices", "parts", "rows"],
)
def test_copies_of_a_sentence_drop_differently(subset: Any, superset: Any) -> None:
    """If all dropped the same, losses would be as many times larger as the tokens."""
    sentence = updates.random_batch(21, rows=1)

    def copied(where: Any) -> types.Batch:
        def copy(side: np.ndarray) -> np.ndarray:
            rows = np.zeros((8, updates.ROWS // 8, side.shape[1]), np.int32)
            rows[where] = side[0]
            return rows

        return jax.tree.map(copy, sentence)

    def per_token(overrides: dict[str, Any], where: Any) -> float:
        settings_ = settings.small_settings(**overrides)
        state = updates.random_state(settings_, seed=22)
        sums = updates.on_eight(settings_)(state, copied(where))[1].sums
        return float(sums.loss) / float(sums.tokens)

    smooth = {**updates.SMOOTH, **updates.PARTS}
    np.testing.assert_allclose(
        per_token(smooth, superset), per_token(smooth, subset), rtol=1e-5
    )
    assert (
        abs(
            per_token(updates.DROPPING, superset) / per_token(updates.DROPPING, subset)
            - 1
        )
        > 1e-3
    )


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_each_platforms_form_makes_the_update_of_the_cpus(platform: str) -> None:
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=8)
    rows = updates.shared_among(updates.random_batch(9), 8)
    expected = updates.on_eight(settings_)(state, rows)
    with parallel.targeting(platform):
        step = training_step.train_step(
            settings_, vocab_size=updates.V, num_microbatches=1
        )
        updated = parallel.over_devices(step, donate_state=False)(state, rows)
    updates.assert_close(updated, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_in_bfloat16_each_platforms_form_stays_as_close_as_its_type(
    platform: str,
) -> None:
    """The exact update is that in float32, from the same parameters."""
    changes = {"model.dtype": "bfloat16"}
    exact_settings = settings.small_settings(**updates.SMOOTH)
    settings_ = settings.small_settings(**updates.SMOOTH, **changes)
    state = updates.random_state(settings_, seed=8)
    rows = updates.shared_among(updates.random_batch(9), 8)
    exact, sums = updates.on_eight(exact_settings)(state, rows)
    with parallel.targeting(platform):
        step = training_step.train_step(
            settings_, vocab_size=updates.V, num_microbatches=1
        )
        updated, metrics = parallel.over_devices(step, donate_state=False)(state, rows)
    assert metrics.sums.tokens == sums.sums.tokens
    np.testing.assert_allclose(metrics.sums.loss, sums.sums.loss, rtol=2**-8)
    np.testing.assert_allclose(metrics.gradient_norm, sums.gradient_norm, rtol=2**-6)
    for after, expected, before in zip(
        *(jax.tree.leaves(tree.params) for tree in (updated, exact, state)), strict=True
    ):
        moved = np.linalg.norm(expected - before)
        assert np.linalg.norm(after - expected) < 0.05 * moved
