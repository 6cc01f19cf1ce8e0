"""Devices: rows split over them, steps in order, programs compiled ahead."""

import functools
import threading

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

from tests import interpreter
from vaswani_jax.core import parallel, processes

COMPILED = "/jax/core/compile/backend_compile_duration"
TIMEOUT_SECONDS = 300


class Compilations:
    """Counts how often XLA compiles."""

    def __init__(self):
        self.count = 0
        self._changed = threading.Condition()

    def add(self, event, seconds, **_):
        if event == COMPILED:
            with self._changed:
                self.count += 1
                self._changed.notify_all()

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(
                lambda: self.count >= count, timeout=TIMEOUT_SECONDS
            )


@pytest.fixture
def compilations():
    counter = Compilations()
    jax.monitoring.register_event_duration_secs_listener(counter.add)
    yield counter
    jax.monitoring.clear_event_listeners()


@pytest.fixture
def accelerated(monkeypatch):
    """A step, its state and batches of two shapes, as if devices were accelerators."""
    monkeypatch.setattr(parallel, "on_cpu", lambda: False)

    def add(state, rows):
        return state + parallel.sum_over_devices(rows.sum())

    step = parallel.over_devices(add, donate_state=True)
    batches = [
        parallel.split_rows(np.ones((8, length), np.float32), num_microbatches=1)
        for length in (3, 5)
    ]
    return step, parallel.replicate(jnp.zeros(())), batches


def test_a_program_compiled_ahead_is_not_compiled_again(compilations, accelerated):
    step, state, batches = accelerated
    count = compilations.count
    with parallel.compiling_ahead(step, state, batches=batches):
        compilations.wait_for(count + 2)
    count = compilations.count
    for rows in batches:
        state = step(state, rows)
    assert float(state) == 24 + 40
    assert compilations.count == count


def test_compiling_ahead_ends_with_the_training_it_is_for(accelerated):
    step, state, batches = accelerated
    threads = threading.active_count()
    with (
        pytest.raises(KeyError),
        parallel.compiling_ahead(step, state, batches=batches * 9),
    ):
        assert threading.active_count() > threads
        raise KeyError
    assert threading.active_count() == threads


def test_one_of_several_processes_compiles_nothing_ahead(accelerated, monkeypatch):
    # pmap asks for values then, which a lowering for shapes alone does not have.
    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    threads = threading.active_count()
    step, state, batches = accelerated
    with parallel.compiling_ahead(step, state, batches=batches):
        assert threading.active_count() == threads


@pytest.fixture
def doubled():
    """A program of each platform, its state and batches of three shapes by length."""
    program = parallel.over_rows(lambda state, rows: state * rows)
    batches = {
        length: parallel.split_rows(
            np.ones((8, length), np.float32), num_microbatches=1
        )
        for length in (2, 3, 5)
    }
    return program, parallel.replicate(jnp.full((), 2.0)), batches


def test_what_was_made_ready_is_not_compiled_again(compilations, doubled):
    program, state, batches = doubled
    threads = threading.active_count()
    count = compilations.count
    with parallel.making_ready(program, state, batches=batches) as wait:
        for length, rows in batches.items():
            wait(length)
            assert compilations.count >= count + 1
            np.testing.assert_array_equal(program(state, rows), 2 * rows)
    assert compilations.count == count + len(batches)
    assert threading.active_count() == threads


def test_making_ready_ends_with_its_body(doubled):
    program, state, batches = doubled
    threads = threading.active_count()
    with (
        pytest.raises(KeyboardInterrupt),
        parallel.making_ready(program, state, batches=batches),
    ):
        raise KeyboardInterrupt
    assert threading.active_count() == threads


def test_what_cannot_be_made_ready_fails_when_it_is_called(doubled):
    _, state, batches = doubled

    class Full:
        def __call__(self, *arguments):
            raise MemoryError

        def lower(self, *arguments):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")

    program = Full()
    with parallel.making_ready(program, state, batches=batches) as wait:
        wait(2)
        with pytest.raises(MemoryError):
            program(state, batches[2])


def test_a_part_of_programs_is_traced_once_for_each_shape_and_platform():
    traces = []

    @functools.partial(parallel.traced_once, static=["times"])
    def scaled(x, *, times):
        traces.append((parallel.platform(), x.shape, times))
        return times * x

    def program(x):
        return scaled(scaled(x, times=2), times=2) + scaled(x[:1], times=3)

    x = jnp.arange(4.0)
    np.testing.assert_array_equal(jax.jit(program)(x), 4 * x)
    assert traces == [("cpu", (4,), 2), ("cpu", (1,), 3)]
    with parallel.targeting("tpu"):
        jax.make_jaxpr(lambda x: scaled(x, times=2))(x)
    assert traces[2:] == [("tpu", (4,), 2)]


def test_a_failure_to_compile_ahead_is_logged(accelerated, caplog):
    _, state, batches = accelerated

    class Full:
        def __call__(self, *arguments):
            pass

        def lower(self, *arguments):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no room\nmore")

    caplog.set_level("INFO", "vaswani_jax")
    with parallel.compiling_ahead(Full(), state, batches=batches):
        pass
    message = "note: compiling ahead ends: RESOURCE_EXHAUSTED: no room"
    assert caplog.messages == [message]


DISPATCHING = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
from vaswani_jax.core import parallel
if sys.argv[1] == "sync":
    parallel.disable_async_dispatch()
run = parallel.over_devices(
    lambda state, rows: jax.lax.fori_loop(
        0, int(sys.argv[2]), lambda i, x: jnp.tanh(x @ x), state + rows.sum()
    ),
    donate_state=False,
)
state, rows = parallel.replicate(jnp.ones((256, 256))), np.ones((1, 1))
run(state, rows).block_until_ready()
print(run(state, rows).is_ready())
"""


@pytest.mark.parametrize(
    # Without waiting, 4,000 products take too long to be done already.
    ("dispatch", "products", "is_done"),
    [("sync", 200, "True"), ("async", 4000, "False")],
)
def test_without_async_dispatch_a_step_is_done_when_its_call_returns(
    dispatch, products, is_done
):
    printed = interpreter.output_of(
        DISPATCHING, dispatch, str(products), JAX_NUM_CPU_DEVICES="1"
    )
    assert printed == is_done


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
        assert parallel.on_tpu() and not parallel.on_cpu() and not parallel.has_gpu()
        assert parallel.describe().startswith("2 tpu device(s)")
        with pytest.raises(KeyError), parallel.targeting("gpu"):
            assert parallel.has_gpu() and parallel.num_devices() == 8
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
