"""Programs compiled ahead of their first call, and their parts traced once."""

import concurrent.futures
import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.core import compilation, parallel, processes

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
    with compilation.making_ready(step, state, batches=batches):
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
        compilation.making_ready(step, state, batches=batches),
    ):
        assert threading.active_count() > threads
        raise KeyError
    assert threading.active_count() == threads


def test_a_second_ctrl_c_does_not_wait_for_the_compiler(accelerated):
    _, state, batches = accelerated
    has_begun, may_end = threading.Event(), threading.Event()
    compilers = []

    class Slow:
        def __call__(self, *arguments):
            pass

        def lower(self, *arguments):
            compilers.append(threading.current_thread())
            has_begun.set()
            may_end.wait(TIMEOUT_SECONDS)
            return self

        def compile(self):
            pass

    with (
        pytest.raises(KeyboardInterrupt),
        compilation.making_ready(Slow(), state, batches=batches),
    ):
        assert has_begun.wait(TIMEOUT_SECONDS)
        raise KeyboardInterrupt
    [compiler] = compilers
    assert compiler.is_alive()
    assert compiler.daemon, "the interpreter would wait for it at its exit"
    may_end.set()
    compiler.join(TIMEOUT_SECONDS)
    assert compilers == [compiler], "the other shapes are left out"


def test_one_of_several_processes_compiles_nothing_ahead(accelerated, monkeypatch):
    # pmap asks for values then, which a lowering for shapes alone does not have.
    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    threads = threading.active_count()
    step, state, batches = accelerated
    with compilation.making_ready(step, state, batches=batches):
        assert threading.active_count() == threads


@pytest.fixture
def doubled():
    """A program of each platform, its state and batches of three shapes."""
    program = parallel.over_rows(lambda state, rows: state * rows)
    batches = [
        parallel.split_rows(np.ones((8, length), np.float32), num_microbatches=1)
        for length in (2, 3, 5)
    ]
    return program, parallel.replicate(jnp.full((), 2.0)), batches


def test_what_was_made_ready_is_not_compiled_again(compilations, doubled):
    program, state, batches = doubled
    threads = threading.active_count()
    count = compilations.count
    with compilation.making_ready(program, state, batches=batches) as make_ready:
        # The last first, which is compiled here while the thread compiles others.
        for rows in [*reversed(batches), *batches]:
            make_ready(rows)
            assert compilations.count >= count + 1
            np.testing.assert_array_equal(program(state, rows), 2 * rows)
    assert compilations.count == count + len(batches)
    assert threading.active_count() == threads


def test_a_shape_is_compiled_once_whoever_needs_it_first():
    compiled, others = [], threading.Barrier(3)
    batches = [np.ones((1, length)) for length in (2, 3, 5)]

    class Program:
        def __call__(self, *arguments):
            pass

        def lower(self, state, rows):
            compiled.append(rows.shape)
            return self

        def compile(self):
            pass

    def use_all(make_ready):
        others.wait(TIMEOUT_SECONDS)
        for rows in reversed(batches):
            make_ready(rows)
            assert rows.shape in compiled

    with (
        compilation.making_ready(Program(), np.ones(2), batches=batches) as make_ready,
        concurrent.futures.ThreadPoolExecutor(3) as executor,
    ):
        for future in [executor.submit(use_all, make_ready) for _ in range(3)]:
            future.result()
        make_ready(np.ones((1, 7)))  # It waits for no other shape.
    assert sorted(compiled) == [(1, 2), (1, 3), (1, 5)]


def test_making_ready_ends_with_its_body(doubled):
    program, state, batches = doubled
    threads = threading.active_count()
    with (
        pytest.raises(KeyboardInterrupt),
        compilation.making_ready(program, state, batches=batches),
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
    with compilation.making_ready(program, state, batches=batches) as make_ready:
        for rows in batches:
            make_ready(rows)
            with pytest.raises(MemoryError):
                program(state, rows)


def test_a_part_of_programs_is_traced_once_for_each_shape_and_platform():
    traces = []

    @functools.partial(compilation.traced_once, static=["times"])
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
    with compilation.making_ready(Full(), state, batches=batches):
        pass
    message = "note: compiling ahead ends: RESOURCE_EXHAUSTED: no room"
    assert caplog.messages == [message]
