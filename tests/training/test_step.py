"""One update: its gradient, Adam, and the division of a batch."""

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

    found = jax.jit(jax.grad(total))(params, batch)
    exact = reference.to_float64(params)

    def exact_total() -> float:
        sums = reference.loss_sums(exact, batch, model=model, label_smoothing=0.1)
        return sums["loss"]

    generator = np.random.default_rng(2)
    for path, leaf in jax.tree_util.tree_leaves_with_path(exact):
        gradient = found
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
    for made in range(3):
        # Fewer rows than devices: some of them have none.
        batch = updates.random_batch(4 + made, rows=5)
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
        assert int(state.step) == made + 1


def test_eight_devices_make_the_update_of_one() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=8)
    batch = updates.random_batch(9)
    eight = updates.on_eight(settings_)(state, updates.shared_among(batch, 8))
    one = updates.on_one(settings_)(state, updates.shared_among(batch, 1))
    updates.assert_close(eight, one, rtol=1e-5, atol=1e-6)
    for after, before in updates.pairs_of_leaves(one[0].params, state.params):
        assert np.abs(after - before).max() > 1e-4


def test_a_batch_in_parts_makes_the_update_of_the_whole() -> None:
    whole = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(whole, seed=10)
    rows = updates.shared_among(updates.random_batch(11), 8)
    found = updates.on_eight(
        settings.small_settings(**updates.SMOOTH, **updates.PARTS)
    )(state, rows)
    expected = updates.on_eight(whole)(state, rows)
    updates.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_rows_of_padding_do_not_change_the_update() -> None:
    """Nor does it matter which device has which row."""
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=12)
    batch = updates.random_batch(13, rows=19)
    padded = jax.tree.map(lambda side: np.pad(side, [(0, 29), (0, 0)]), batch)
    expected = updates.on_eight(settings_)(state, updates.shared_among(padded, 8))
    order = np.random.default_rng(14).permutation(updates.ROWS)
    mixed = jax.tree.map(lambda side: side[order], padded)
    found = updates.on_eight(settings_)(state, updates.shared_among(mixed, 8))
    updates.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert float(found[1].sums.tokens) == (batch.target_out != types.PAD_ID).sum()


def test_a_batch_of_padding_alone_changes_no_parameter() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH)
    state = updates.random_state(settings_, seed=15)
    nothing = jax.tree.map(np.zeros_like, updates.random_batch(16))
    after, metrics = updates.on_eight(settings_)(
        state, updates.shared_among(nothing, 8)
    )
    updates.assert_equal(after.params, state.params)
    assert float(metrics.gradient_norm) == float(metrics.sums.tokens) == 0


@functools.lru_cache
def created(settings_: config.Config) -> training_step.TrainState:
    return training_step.create_state(settings_, vocab_size=updates.V)


def test_the_first_state_is_a_function_of_the_seed_and_the_shapes_alone() -> None:
    first = created(settings.small_settings(**updates.DROPPING))
    assert int(first.step) == 0
    again = created(settings.small_settings(**updates.SMOOTH))
    updates.assert_equal(again, first)
    changed = created(settings.small_settings(**updates.DROPPING, seed=2))
    for one, other in updates.pairs_of_leaves(changed.params, first.params):
        constant = len(np.unique(one)) == 1
        assert constant == np.array_equal(one, other)


def test_an_update_keeps_the_form_of_the_created_state() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    state = created(settings_)
    rows = updates.shared_among(updates.random_batch(24), 8)
    after, _ = updates.on_eight(settings_)(parallel.replicate(state), rows)
    for new, old in updates.pairs_of_leaves(after, state):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)


def test_the_loss_step_sums_the_formulas_and_drops_nothing() -> None:
    settings_ = settings.small_settings(**updates.DROPPING)
    params = settings.random_params(settings_.model, vocab_size=updates.V, seed=25)
    batch = updates.random_batch(26, rows=11)
    step = training_step.loss_step(settings_, vocab_size=updates.V)
    rows = parallel.split_rows(batch, num_microbatches=1)
    sums = parallel.over_devices(step, donate_state=False)(params, rows)
    expected = reference.loss_sums(
        reference.to_float64(params), batch, model=settings_.model, label_smoothing=0.1
    )
    for field in updates.FIELDS:
        np.testing.assert_allclose(getattr(sums, field), expected[field], rtol=1e-5)


def test_bfloat16_keeps_state_loss_and_gradient_norm_in_float32() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH, **{"model.dtype": "bfloat16"})
    state = updates.random_state(settings_, seed=27)
    rows = updates.shared_among(updates.random_batch(28), 8)
    after, metrics = updates.on_eight(settings_)(state, rows)
    for leaf in jax.tree.leaves((after.params, after.opt_state, metrics)):
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
    settings_ = settings.small_settings(**{"model.num_layers": 2})
    rows = updates.shared_among(updates.random_batch(14), 8)
    state = parallel.replicate(updates.random_state(settings_, seed=15))
    program = updates.on_eight(settings_).lower(state, rows).compile().as_text()
    assert len(re.findall(r" = .* all-reduce\(", program)) == 1


def test_accelerators_get_one_all_reduce_and_its_result_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings_ = settings.small_settings(**{"model.num_layers": 2})
    rows = updates.shared_among(updates.random_batch(14), 8)
    state = parallel.replicate(updates.random_state(settings_, seed=15))
    expected = updates.on_eight(settings_)(state, rows)
    monkeypatch.setattr(parallel, "on_cpu", lambda: False)
    step = training_step.train_step(settings_, vocab_size=updates.V, num_microbatches=1)
    run = parallel.over_devices(step, donate_state=False)
    # As it is handed to the compiler, which could only join more.
    assert run.lower(state, rows).as_text().count('"stablehlo.all_reduce"(') == 1
    both = map(jax.tree.leaves, (run(state, rows), expected))
    for found, wanted in zip(*both, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_fused_attention_is_refused_without_a_gpu():
    fused = settings.small_settings(
        **{
            "model.attention": "cudnn",
            "model.dtype": "bfloat16",
            "model.d_k": 8,
            "model.d_v": 8,
        }
    )
    with pytest.raises(ValueError, match="attention=cudnn needs a GPU, here is 8 cpu"):
        training_step.train_step(fused, vocab_size=9, num_microbatches=1)
