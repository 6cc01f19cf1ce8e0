"""Memory that devices have, and that is released for a step."""

import jax
import numpy as np

from vaswani_jax.core import cpu_allocator, memory, parallel

MIB = 2**20


def test_available_memory_is_that_of_one_of_the_devices():
    with open("/proc/meminfo") as file:
        total = int(file.readline().split()[1]) * 1024
    assert 0 < memory.available_bytes() * jax.local_device_count() <= total


def test_memory_is_released_when_a_step_has_too_little(monkeypatch):
    calls = []
    monkeypatch.setattr(
        cpu_allocator, "release_memory", lambda: calls.append(1) or True
    )
    free = 64 * MIB // jax.local_device_count()
    monkeypatch.setattr(memory, "free_bytes", lambda: 64 * MIB)
    assert not memory.make_room(free) and not calls
    assert memory.make_room(free + 1) and calls
    monkeypatch.setattr(parallel, "on_cpu", lambda: False)
    assert not memory.make_room(free + 1)


def test_the_memory_of_the_state_counts_as_available(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 64 * MIB)
    free = memory.available_bytes()
    state = parallel.replicate(
        {"m": np.zeros(MIB, np.int8), "v": np.zeros(9, np.float32)}
    )
    assert memory.available_bytes(state) == free + MIB + 36


def test_of_several_processes_the_least_counts(monkeypatch):
    monkeypatch.setattr(memory.processes, "num_processes", lambda: 2)
    monkeypatch.setattr(memory, "free_bytes", lambda: 544 << 30)
    # As JAX gathers: 32 bits.
    monkeypatch.setattr(
        memory.processes,
        "gather_from_all",
        lambda local: np.stack([local, np.array(9000)]).astype(np.int32),
    )
    assert memory.available_bytes() == 9000 << 20


def test_a_program_lies_in_the_memory_of_an_accelerator_alone():
    def double(state, rows):
        return 2 * state + parallel.sum_over_devices(rows.sum())

    state = {"m": jax.ShapeDtypeStruct((9, 5), np.float32)}
    rows = jax.ShapeDtypeStruct((jax.device_count(), 4), np.float32)
    step = parallel.over_devices(
        lambda state, rows: jax.tree.map(lambda m: double(m, rows), state),
        donate_state=False,
    )
    compiled = step.lower(state, rows).compile()
    code = compiled.memory_analysis().generated_code_size_in_bytes
    here = memory.needed_by(compiled, state=state)
    assert (here.state, here.program) == (180, 0)
    with parallel.targeting("tpu"):
        there = memory.needed_by(compiled, state=state)
    assert there == (here.state, here.step, code)


def test_a_container_has_what_its_limit_leaves(tmp_path, monkeypatch):
    host = memory.available_bytes()
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    (tmp_path / "memory.current").write_text(f"{5 * MIB}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {2 * MIB}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes() > 0.5 * host
    (tmp_path / "memory.max").write_text(f"{9 * MIB}\n")
    assert memory.available_bytes() == 6 * MIB // jax.local_device_count()
