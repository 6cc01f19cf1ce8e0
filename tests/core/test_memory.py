"""Memory that devices have, and that is released for a step."""

import jax
import numpy as np
import pytest

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


VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def limit_group(group, names, limit):
    """Write what the kernel shows of a group that uses 5 MiB, 2 of them cache."""
    limit_file, usage_file, cache = names
    group.mkdir(parents=True, exist_ok=True)
    (group / limit_file).write_text(f"{limit}\n")
    (group / usage_file).write_text(f"{5 * MIB}\n")
    (group / "memory.stat").write_text(f"anon 1\n{cache} {2 * MIB}\n")


@pytest.mark.parametrize(
    ("membership", "names", "groups"),
    [
        ("0::/system/run", VERSION_2, ["", "system", "system/run"]),
        ("5:cpu:/\n4:memory:/job/1\n0::/", VERSION_1, ["memory", "memory/job/1"]),
        # A container sees its own group alone, and perhaps its path on the host.
        ("0::/../outside", VERSION_2, [""]),
        ("4:memory:/docker/1", VERSION_1, ["memory"]),
    ],
)
def test_a_process_has_what_the_limits_around_it_leave(
    tmp_path, monkeypatch, membership, names, groups
):
    host = memory.free_bytes()
    root = tmp_path / "cgroup"
    monkeypatch.setattr(memory, "CGROUP", root)
    monkeypatch.setattr(memory, "MEMBERSHIP", tmp_path / "membership")
    (tmp_path / "membership").write_text(f"{membership}\n")
    limit_group(tmp_path / "outside", names, 6 * MIB)
    no_limit = 2**63 - 4096 if names == VERSION_1 else "max"
    for group in groups:
        limit_group(root / group, names, no_limit)
    assert memory.free_bytes() > 0.5 * host
    for group in groups:
        limit_group(root / group, names, 9 * MIB)
        assert memory.free_bytes() == 6 * MIB
        assert memory.available_bytes() == 6 * MIB // jax.local_device_count()
        limit_group(root / group, names, no_limit)


def test_a_process_without_a_known_group_has_what_a_container_leaves(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "MEMBERSHIP", tmp_path / "missing")
    limit_group(tmp_path, VERSION_2, 9 * MIB)
    assert memory.free_bytes() == 6 * MIB
