"""Adam's moments divided over the devices: the same updates, the same checkpoints."""

import math
import pathlib
import re
import shutil
from typing import Any

import jax
import numpy as np
import optax
import pytest

from tests import settings
from tests.training import updates
from tests.training.small_runs import OVERRIDES, train
from vaswani_jax.core import config, memory, parallel, shards
from vaswani_jax.training import optimizer
from vaswani_jax.training import step as training_step

SHARDED = {"training.shard_optimizer": True}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tiny leaves be divided, most of them with zeros that fill a tile."""
    monkeypatch.setattr(shards, "TILE", (2, 3))
    monkeypatch.setattr(shards, "GROWTH", 3.0)


def step_of(settings_: config.Config, *, parts: int = 1) -> Any:
    make_train_step = training_step.make_train_steps(settings_, vocab_size=updates.V)
    return make_train_step(parts)


def three_updates(settings_: config.Config, *, parts: int) -> tuple[Any, Any]:
    """Three updates, as NumPy, and the metrics of the last."""
    state = updates.random_state(settings_, seed=1)
    state = training_step.place_on_devices(settings_, state)
    run = step_of(settings_, parts=parts)
    for seed in (2, 3, 4):
        rows = parallel.split_rows(
            updates.random_batch(seed, rows=29), num_microbatches=parts
        )
        state, metrics = run(state, rows)
    return shards.gather(state), metrics


def test_sharded_updates_are_those_of_whole_moments_bit_for_bit() -> None:
    changes = {**updates.SMOOTH, "model.dropout_rate": 0.5}
    whole, expected = three_updates(settings.small_settings(**changes), parts=3)
    sharded = settings.small_settings(**changes, **SHARDED)
    divided, metrics = three_updates(sharded, parts=3)
    updates.assert_equal(divided, whole)
    updates.assert_equal(metrics.sums, expected.sums)
    np.testing.assert_allclose(metrics.gradient_norm, expected.gradient_norm, rtol=1e-6)


@pytest.mark.parametrize("max_norm", [1e3, 5.0])
def test_shards_are_clipped_by_the_norm_of_the_whole_gradient(max_norm: float) -> None:
    generator = np.random.default_rng(5)
    shapes = {"divided": (8, 16, 6), "replicated": (8, 3)}
    local = {name: generator.normal(size=shape) for name, shape in shapes.items()}
    local = {name: leaf.astype(np.float32) for name, leaf in local.items()}

    def clip(_: Any, gradients: Any) -> Any:
        parts, norm = shards.sum_to_shards(gradients)
        assert shards.is_shard(parts["divided"])
        clipped = optimizer.clip(parts, norm=norm, max_norm=max_norm)
        return shards.join_shards(clipped)

    clip_on_all = parallel.over_devices(clip, donate_state=False)
    clipped = clip_on_all(np.zeros(()), local)
    whole = {name: leaf.sum(0) for name, leaf in local.items()}
    expected, _ = optax.clip_by_global_norm(max_norm).update(whole, optax.EmptyState())
    assert 5.0 < optax.tree.norm(whole) < 1e3
    updates.assert_close(clipped, expected, rtol=1e-5, atol=1e-6)


def test_a_device_keeps_an_eighth_of_the_divided_moments() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH, **SHARDED)
    whole = updates.random_state(settings_, seed=1)
    state = training_step.place_on_devices(settings_, whole)
    assert len(state.opt_state.parts) >= 10
    for leaf in state.opt_state.parts:
        for shard in leaf.addressable_shards:
            assert shard.data.shape == (1, *leaf.shape[1:])
    kept = memory.size_in_bytes(state)
    on_first = sum(
        shard.data.nbytes
        for leaf in jax.tree.leaves(state)
        for shard in leaf.addressable_shards
        if shard.device == jax.devices()[0]
    )
    assert kept == on_first < 0.8 * memory.size_in_bytes(whole)
    shapes = training_step.placed_shapes(settings_, vocab_size=updates.V)
    assert memory.size_in_bytes(shapes) == kept
    assert jax.tree.structure(shapes) == jax.tree.structure(state)


def test_the_initial_moments_are_on_the_host_and_those_of_the_optimizer() -> None:
    small = settings.small_settings(
        **{"optimizer.weight_decay": 0.1, "optimizer.frozen": "encoder/*"},
        **{"training.ema_decay": 0.9, **SHARDED},
    )
    state = training_step.create_state(small, vocab_size=updates.V)
    expected = optimizer.make_optimizer(small).init(state.params)
    updates.assert_equal(state.opt_state, expected)
    for leaf, other in updates.pairs_of_leaves(state.opt_state, expected):
        assert isinstance(leaf, np.ndarray)
        assert leaf.dtype == other.dtype


def test_gradients_are_scattered_and_parameters_gathered() -> None:
    settings_ = settings.small_settings(**updates.SMOOTH, **SHARDED)
    state = training_step.placed_shapes(settings_, vocab_size=updates.V)
    rows = parallel.split_rows(updates.random_batch(2), num_microbatches=1)
    lowered = step_of(settings_).lower(state, rows).as_text()
    divided = [
        leaf.size
        for leaf, moment in zip(
            jax.tree.leaves(state.params),
            jax.tree.leaves(
                state.opt_state.unpack()[0].mu,
                is_leaf=shards.is_shard,
            ),
            strict=True,
        )
        if shards.is_shard(moment)
    ]
    assert sorted(sizes_of("all_gather", lowered)) == sorted(divided) != []
    parts = [size // 8 for size in divided]
    assert sorted(sizes_of("reduce_scatter", lowered)) == sorted(parts)


def sizes_of(operation: str, lowered: str) -> list[int]:
    """The numbers of elements of an operation's results in a lowered program."""
    results = re.findall(
        rf'"stablehlo\.{operation}".*?-> tensor<([\dx]+)xf32>', lowered, re.S
    )
    return [math.prod(map(int, result.split("x"))) for result in results]


# Last, as the steps of the tests after it would be patched, too.
@pytest.mark.usefixtures("steps_once")
def test_checkpoints_are_those_of_whole_moments_and_resume_either_way(
    tmp_path: pathlib.Path,
) -> None:
    changes = {
        **{**OVERRIDES, "training.checkpoint_every_steps": 2},
        **{"optimizer.weight_decay": 0.1, "optimizer.frozen": "encoder/*"},
        "training.ema_decay": 0.9,
    }

    def run(directory: str, num_steps: int, **more: Any) -> Any:
        steps = {"training.num_steps": num_steps}
        return train(
            settings.small_settings(**changes, **steps, **more), tmp_path / directory
        ).items

    expected = run("whole", 6)
    run("sharded", 4, **SHARDED)
    shutil.copytree(tmp_path / "sharded", tmp_path / "changed")
    updates.assert_equal(run("sharded", 6, **SHARDED), expected)
    updates.assert_equal(run("changed", 6), expected)
