"""Devices: rows split over them, steps in order, sums."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

from tests import interpreter
from vaswani_jax.core import parallel

# A fork without a backend waits for its step; the process that forked it does not.
DISPATCHING = """
import os
import jax
import jax.numpy as jnp
import numpy as np
from vaswani_jax.core import parallel
# 800 products take about two seconds: without waiting they are not done yet.
products = 800
if process := os.fork():
    assert os.waitpid(process, 0)[1] == 0
else:
    parallel.disable_async_dispatch()
    products = 200
run = parallel.over_devices(
    lambda state, rows: jax.lax.fori_loop(
        0, rows[0], lambda i, x: jnp.tanh(x @ x), state
    ),
    donate_state=False,
)
state = parallel.replicate(jnp.ones((256, 256)))
run(state, np.ones((1, 1), np.int32)).block_until_ready()
print(run(state, np.full((1, 1), products, np.int32)).is_ready())
"""


def test_without_async_dispatch_a_step_is_done_when_its_call_returns():
    printed = interpreter.output_of(DISPATCHING, JAX_NUM_CPU_DEVICES="1")
    assert printed.split() == ["True", "False"]


@hypothesis.given(strategies.integers(1, 37), strategies.integers(1, 3))
def test_rows_split_over_devices_are_joined_again(rows, num_microbatches):
    devices = jax.local_device_count()
    leaf = np.arange(1, 1 + rows * 5 * 2).reshape(rows, 5, 2)
    split = parallel.split_rows(
        {"a": leaf, "b": leaf[:, 0, 0]}, num_microbatches=num_microbatches
    )
    share = split["a"].shape[1]
    assert split["a"].shape == (devices, share, 5, 2)
    assert split["b"].shape == (devices, share)
    assert share % num_microbatches == 0
    # No smaller multiple would do.
    assert (share - num_microbatches) * devices < rows <= share * devices
    joined = parallel.join_rows(split["a"])
    np.testing.assert_array_equal(joined[:rows], leaf)
    assert not joined[rows:].any()


@pytest.mark.parametrize(
    ("rows", "num_microbatches"), [(1, 1), (8, 1), (13, 2), (40, 3)]
)
def test_local_rows_are_those_that_split_rows_returns(
    monkeypatch, rows, num_microbatches
):
    numbers = np.arange(1, rows + 1)[:, None]

    def split():
        padded = parallel.split_rows(numbers, num_microbatches=num_microbatches)
        return padded[padded > 0].tolist()

    assert split() == numbers[:, 0].tolist()
    # As if two processes had four of the eight devices each.
    monkeypatch.setattr(jax, "local_device_count", lambda: 4)
    for process in (0, 1):
        monkeypatch.setattr(jax, "process_index", lambda process=process: process)
        local = parallel.local_rows(rows, num_microbatches=num_microbatches)
        assert numbers[local.start : local.stop, 0].tolist() == split()


def test_a_target_is_what_programs_are_made_for_and_ends_with_its_context():
    here = (parallel.platform(), parallel.num_devices())
    assert here == ("cpu", 8)
    with parallel.targeting("tpu", jax.devices()[:2]):
        assert (parallel.platform(), parallel.num_devices()) == ("tpu", 2)
        assert parallel.on_tpu() and not parallel.on_cpu() and not parallel.on_gpu()
        assert parallel.describe().startswith("2 tpu devices")
        with pytest.raises(KeyError), parallel.targeting("gpu"):
            assert parallel.on_gpu() and parallel.num_devices() == 8
            raise KeyError
        step = parallel.over_devices(
            lambda state, rows: state + parallel.sum_over_devices(rows.sum()),
            donate_state=False,
        )
        # Of two devices' rows; eight would refuse them.
        assert float(step(jnp.zeros(()), np.ones((2, 3)))) == 6
    assert (parallel.platform(), parallel.num_devices()) == here


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_a_sum_over_devices_is_that_of_every_leaf_on_each_platform(platform):
    generator = np.random.default_rng(0)
    tree = {
        "matrix": generator.integers(-9, 9, (8, 3, 5)).astype(np.float32),
        "vector": generator.integers(-9, 9, (8, 7)).astype(np.float32),
        "number": generator.integers(-9, 9, 8).astype(np.float32),
    }
    with parallel.targeting(platform):
        total = parallel.over_devices(
            lambda _, rows: parallel.sum_over_devices(rows), donate_state=False
        )(jnp.zeros(()), tree)
    for name, leaf in tree.items():
        np.testing.assert_array_equal(total[name], leaf.sum(axis=0))
