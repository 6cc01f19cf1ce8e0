"""Programs compiled ahead, and the devices they run on."""

import os
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import parallel, processes
from vaswani_jax.training import step

COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compilations():
    """How often XLA has compiled."""
    found = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: found.append(event) if event == COMPILED else None
    )
    yield found
    jax.monitoring.clear_event_listeners()


@pytest.fixture
def ahead(monkeypatch):
    """A program, its state and batches; as if the devices were accelerators."""
    monkeypatch.setattr(parallel, "on_cpu", lambda: False)

    def add(state, rows):
        return state + parallel.sum_over_devices(rows.sum())

    run = parallel.over_devices(add, donate_state=True)
    several = [
        parallel.split_rows(np.ones((8, length), np.float32), multiple=1)
        for length in (3, 5)
    ]
    return run, parallel.replicate(jnp.zeros(())), several


def test_a_program_compiled_ahead_is_not_compiled_again(compilations, ahead):
    run, state, several = ahead
    others = len(compilations)
    with parallel.compiling_ahead(run, state, several, told=pytest.fail):
        while len(compilations) < others + 2:
            time.sleep(0.01)
    before = len(compilations)
    for rows in several:
        state = run(state, rows)
    assert float(state) == 24 + 40
    assert len(compilations) == before


def test_compiling_ahead_ends_with_the_training_it_is_for(ahead):
    run, state, several = ahead
    threads = threading.active_count()
    with (
        pytest.raises(KeyError),
        parallel.compiling_ahead(run, state, several * 9, told=pytest.fail),
    ):
        assert threading.active_count() > threads
        raise KeyError
    assert threading.active_count() == threads


def test_one_of_several_processes_compiles_nothing_ahead(ahead, monkeypatch):
    run, state, several = ahead
    # pmap then asks for the values that a lowering for shapes alone has not.
    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    threads = threading.active_count()
    with parallel.compiling_ahead(run, state, several, told=pytest.fail):
        assert threading.active_count() == threads


def test_what_cannot_be_compiled_ahead_is_told(ahead):
    _, state, several = ahead

    class Full:
        def __call__(self, *arguments):
            pass

        def lower(self, *arguments):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no room\nmore")

    told = []
    with parallel.compiling_ahead(Full(), state, several, told=told.append):
        pass
    assert told == ["note: compiling ahead ends: RESOURCE_EXHAUSTED: no room"]


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
        step.train_step(fused, vocab_size=9, parts=1)


IN_TURN = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
from vaswani_jax.core import parallel
if sys.argv[1] == "in turn":
    parallel.compute_in_turn()
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
    # So long ahead that nobody misses it.
    ("how", "products", "done"),
    [("in turn", 200, "True"), ("ahead", 4000, "False")],
)
def test_in_turn_a_step_is_done_when_it_has_been_asked_for(how, products, done):
    found = subprocess.run(
        [sys.executable, "-c", IN_TURN, how, str(products)],
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [done]


@pytest.mark.parametrize(("rows", "multiple"), [(1, 1), (8, 1), (13, 2), (40, 3)])
def test_own_rows_are_those_that_split_rows_gives(monkeypatch, rows, multiple):
    numbers = np.arange(1, rows + 1)[:, None]
    whole = parallel.split_rows(numbers, multiple=multiple).reshape(-1)
    # As if two processes had four of the eight devices each.
    monkeypatch.setattr(jax, "local_device_count", lambda: 4)
    for process in (0, 1):
        monkeypatch.setattr(jax, "process_index", lambda process=process: process)
        split = parallel.split_rows(numbers, multiple=multiple).reshape(-1)
        own = parallel.own_rows(rows, multiple=multiple)
        assert numbers[own.start : own.stop, 0].tolist() == split[split > 0].tolist()
    assert whole[whole > 0].tolist() == numbers[:, 0].tolist()
