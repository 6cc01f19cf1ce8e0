"""The demo's step and search as libtpu compiles them, for absent chips."""

from collections.abc import Callable
from typing import Any

import jax
import pytest

from tests.hardware import demo_on_tpus
from vaswani_jax.core import memory, parallel, shards
from vaswani_jax.hardware import topology
from vaswani_jax.model import cost
from vaswani_jax.training import step

pytestmark = pytest.mark.tpu_compiler
VerdictOf = Callable[..., dict[str, Any]]
# Instructions of the step, and kernels and cycles of a position of the search; a
# twentieth more is no failure. The search has hundreds of instructions that only view
# an array in another shape, and cost nothing.
MOST_WORK = {
    "v5e:2x4": (1447, 148, 155_191),
    "v5p:2x2x2": (1549, 148, 291_931),
    "v6e:2x4": (1319, 149, 161_347),
}
# Copies of a search into another layout, and their bytes: keys and values of the
# encoder, and what a position has of each hypothesis, in loops of growing caches.
MOST_RELAYOUTS = (39, 622_592)
# A generation takes half a minute to compile; the newest is compiled in every run.
eight_chips = pytest.mark.parametrize(
    "name",
    [
        "v6e:2x4",
        pytest.param("v5e:2x4", marks=pytest.mark.slow),
        pytest.param("v5p:2x2x2", marks=pytest.mark.slow),
    ],
)
many_chips = pytest.mark.parametrize(
    "name", ["v5e:64", "v5e:512", "v5p:64", "v5p:512", "v6e:64", "v6e:512"]
)


def check(verdict: dict[str, Any]) -> None:
    """Assert what must hold of the demo for any number of chips."""
    [step] = verdict["steps"]
    assert verdict["fits"]
    model = demo_on_tpus.run().settings.model
    parameters = cost.count_parameters(model, vocab_size=vocab_size())
    # Float32 gradients and four sums, each once.
    communication = step["communication"]
    gradient_bytes = 4 * parameters + 4 * 4
    if topology.parse(verdict["hardware"]).num_slices == 1:
        assert communication["kinds"]["all-reduce"] == communication["count"] > 0
        assert communication["bytes"] == gradient_bytes
    else:  # Within a slice, between slices, and within it again.
        assert communication["bytes"] > gradient_bytes
        assert "slower network" in verdict["notes"][-1]
    assert step["relayouts"]["count"] == 0
    # Parameters, two moments and three counters in their old place.
    state_bytes = 3 * 4 * parameters + 3 * 4
    assert verdict["memory"]["state_bytes"] == state_bytes
    assert step["memory"]["alias_size_in_bytes"] >= state_bytes
    # XLA's count, of one device, has more than matrix products.
    assert step["rows"] == demo_on_tpus.ROWS_OF_A_CHIP
    flops = cost.update_flops(
        model, vocab_size=vocab_size(), rows=step["rows"], source=32, target=32
    )
    assert flops < step["flops"] < 1.5 * flops
    assert step["estimated_cycles"] > 0
    assert 0 < verdict["expected_mfu"] < 1


def vocab_size() -> int:
    return demo_on_tpus.run().vocab_size


@eight_chips
def test_the_demo_compiles_as_it_should(verdict_of: VerdictOf, name: str) -> None:
    verdict = verdict_of(demo_on_tpus.run(), name)
    check(verdict)
    # Some gradients cross while products compute others.
    assert verdict["steps"][0]["communication"]["hidden_cycles"] > 0


@eight_chips
def test_programs_do_no_more_work(verdict_of: VerdictOf, name: str) -> None:
    verdict = verdict_of(demo_on_tpus.run(), name)
    [step], position = verdict["steps"], verdict["search"]["loops"][0]
    work = step["instructions"], position["kernels"], position["estimated_cycles"]
    for number, most in zip(work, MOST_WORK[name], strict=True):
        assert number <= 1.05 * most


@eight_chips
def test_a_search_copies_no_more(verdict_of: VerdictOf, name: str) -> None:
    relayouts = verdict_of(demo_on_tpus.run(), name)["search"]["relayouts"]
    assert 0 < relayouts["count"] <= MOST_RELAYOUTS[0]
    assert 0 < relayouts["bytes"] <= MOST_RELAYOUTS[1]


@pytest.mark.slow
def test_float32_takes_more_cycles(verdict_of: VerdictOf) -> None:
    """Its products are float32's: six passes of bfloat16, not one."""
    [before] = verdict_of(demo_on_tpus.run(), "v6e:2x4")["steps"]
    verdict = verdict_of(demo_on_tpus.run(**{"model.dtype": "float32"}), "v6e:2x4")
    check(verdict)
    [after] = verdict["steps"]
    assert after["estimated_cycles"] > 1.2 * before["estimated_cycles"]


@pytest.mark.slow
def test_a_wider_model_changes_the_numbers(verdict_of: VerdictOf) -> None:
    before = verdict_of(demo_on_tpus.run(), "v6e:2x4")
    after = verdict_of(demo_on_tpus.run(**{"model.d_ff": 1024}), "v6e:2x4")
    model = demo_on_tpus.run().settings.model
    # W_1, b_1 and W_2 of two layers, 512 wider.
    more = 2 * 512 * (2 * model.d_model + 1)
    bytes_of = [each["steps"][0]["communication"]["bytes"] for each in (before, after)]
    assert bytes_of[1] - bytes_of[0] == 4 * more
    states = [each["memory"]["state_bytes"] for each in (before, after)]
    assert states[1] - states[0] == 3 * 4 * more
    for name in ("flops", "estimated_cycles"):
        narrow, wide = (each["steps"][0][name] for each in (before, after))
        assert wide > narrow, name


def test_a_sharded_optimizer_moves_its_shards(verdict_of: VerdictOf) -> None:
    work = demo_on_tpus.run(**{"training.shard_optimizer": True})
    after = verdict_of(work, "v6e:2x4")
    with parallel.targeting("tpu", [None] * 8):
        state = step.placed_shapes(work.settings, vocab_size=vocab_size())
        kept = memory.size_in_bytes(state)
    assert after["memory"]["state_bytes"] == kept
    [program] = after["steps"]
    communication = program["communication"]
    parameters = 4 * cost.count_parameters(work.settings.model, vocab_size=vocab_size())
    divided = 4 * sum(
        leaf.size
        for leaf, moment in zip(
            jax.tree.leaves(state.params),
            jax.tree.leaves(state.opt_state.unpack()[0].mu, is_leaf=shards.is_shard),
            strict=True,
        )
        if shards.is_shard(moment)
    )
    # Scattered and gathered; the rest, the four sums and the norm's as a whole.
    rest = parameters - divided + 5 * 4
    expected = divided // 8 + divided + rest
    # The compiler rounds the table's 125 rows of a device up.
    assert expected <= communication["bytes"] <= 1.002 * expected
    assert communication["kinds"]["reduce-scatter"] > 0
    assert communication["kinds"]["all-gather"] > 0
    assert program["relayouts"]["count"] == 0
    assert program["memory"]["alias_size_in_bytes"] >= kept


@pytest.mark.slow
@many_chips
def test_the_demo_compiles_for_many_chips(verdict_of: VerdictOf, name: str) -> None:
    num_chips = topology.parse(name).num_chips
    check(verdict_of(demo_on_tpus.run(num_chips=num_chips), name))
