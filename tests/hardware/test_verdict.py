"""Verdicts on a tiny run, whose programs are compiled for the CPU's devices here."""

import dataclasses
import json
import logging
from collections.abc import Callable
from typing import Any

import jax
import pytest

from tests import settings
from vaswani_jax.core import compilation_cache
from vaswani_jax.data import batching
from vaswani_jax.hardware import chips, origins, summary, topology, verdict
from vaswani_jax.hardware.workload import Shape, Workload
from vaswani_jax.training import microbatching

V = 40
SHORT, LONG = batching.Bucket(8, 64), batching.Bucket(16, 64)
Judge = Callable[..., dict[str, Any]]


def run_of(**overrides: Any) -> Workload:
    return Workload(
        settings=settings.small_settings(**overrides),
        vocab_size=V,
        shapes=[Shape(bucket=SHORT, batches=5), Shape(bucket=LONG, batches=2)],
        num_shapes=3,
        target_tokens=100.0,
        all_shapes=False,
        dollars_per_hour=None,
    )


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Judge:
    """Judge on 8 devices of some memory, which are those of this CPU."""
    monkeypatch.setattr(topology, "devices", lambda hardware: jax.devices())
    monkeypatch.setattr(compilation_cache, "directory", lambda: tmp_path)

    def judge(work: Workload, *, memory_bytes: int = 10**9) -> dict[str, Any]:
        chip = dataclasses.replace(chips.CHIPS["v5e"], memory_bytes=memory_bytes)
        return verdict.judge(work, topology.Hardware(chip, (2, 4)))

    return judge


def test_the_largest_and_the_commonest_shape_are_compiled(judge: Judge) -> None:
    work = run_of()
    result = judge(work)
    assert [step["length"] for step in result["steps"]] == [8, 16]
    assert [step["rows"] for step in result["steps"]] == [8, 8]
    assert [step["batches_per_epoch"] for step in result["steps"]] == [5, 2]
    assert result["fits"] and not result["how_to_fit"]
    memory = result["memory"]
    assert memory["free_bytes"] == 10**9 - memory["needed_bytes"]
    needed = memory["state_bytes"] + max(memory["step_bytes"], memory["search_bytes"])
    needed += memory["step_programs_bytes"] + memory["search_programs_bytes"]
    assert memory["needed_bytes"] == needed
    one = dataclasses.replace(work, shapes=work.shapes[:1])
    assert [step["length"] for step in judge(one)["steps"]] == [8]


def test_the_programs_of_all_shapes_count(judge: Judge) -> None:
    work = run_of()
    memory = judge(work)["memory"]
    more = judge(dataclasses.replace(work, num_shapes=6))["memory"]
    assert more["step_programs_bytes"] == 2 * memory["step_programs_bytes"]


def test_every_number_names_its_origin_and_is_json(judge: Judge) -> None:
    result = judge(run_of())
    paths = set(origins.number_paths({**result, "origin": None}))
    assert paths == set(result["origin"])
    assert "steps[].memory.temp_size_in_bytes" in paths
    assert json.loads(json.dumps(result)) == result
    with pytest.raises(KeyError, match="unknown_number"):
        origins.of({"unknown_number": 1}, chips.CHIPS["v5e"])


def test_a_larger_model_changes_the_numbers(judge: Judge) -> None:
    small, wide = judge(run_of()), judge(run_of(**{"model.d_ff": 80}))
    for name in ("state_bytes", "step_bytes", "search_bytes"):
        assert wide["memory"][name] > small["memory"][name], name
    for before, after in zip(small["steps"], wide["steps"], strict=True):
        assert after["communication"]["bytes"] > before["communication"]["bytes"]
        assert after["flops"] > before["flops"]


def test_auto_divides_what_does_not_fit(judge: Judge) -> None:
    whole = judge(run_of())["memory"]
    memory_bytes = whole["needed_bytes"] - whole["step_bytes"] // 3
    tight = judge(run_of(), memory_bytes=memory_bytes)
    assert not tight["fits"]
    assert tight["how_to_fit"] == microbatching.HOW_TO_FIT
    auto = run_of(**{"training.accumulate_steps": "auto"})
    assert judge(auto)["num_microbatches"] == 1
    divided = judge(auto, memory_bytes=memory_bytes)
    assert divided["num_microbatches"] > 1
    assert divided["memory"]["step_bytes"] < whole["step_bytes"]
    impossible = judge(auto, memory_bytes=1000)
    assert not impossible["fits"]
    assert "not even single rows" in impossible["reason"]


def test_what_a_compiler_refuses_does_not_fit(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise RuntimeError(
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required "
            "for HLO temporaries (97.12G) exceeds available HBM (15.75G)."
        )

    monkeypatch.setattr(verdict.programs, "train_step", refuse)
    result = judge(run_of())
    assert not result["fits"]
    assert "(97.12G)" in result["reason"]
    assert result["memory"]["step_bytes"] == int(97.12 * 2**30)
    assert result["how_to_fit"] == microbatching.HOW_TO_FIT
    assert result["steps"] == []
    assert "97.12G" in summary.describe({**result, "launch": "launch/one_host.sh"})


def test_what_was_found_is_kept(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    first = judge(run_of())

    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("compiled again")

    with monkeypatch.context() as patched:
        patched.setattr(verdict.programs, "train_step", fail)
        patched.setattr(verdict.programs, "search", fail)
        assert judge(run_of()) == first
        with pytest.raises(AssertionError, match="compiled again"):
            judge(run_of(**{"model.d_ff": 20}))


def test_progress_says_how_many_programs_are_left(
    judge: Judge, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="vaswani_jax"):
        judge(run_of())
    lines = [line for line in caplog.messages if "compiling" in line]
    assert [line.partition("(")[2][0] for line in lines] == ["3", "2", "1"]
    assert "the step of 64 x 16 tokens" in lines[0]
    assert "the search of" in lines[2]


def test_notes_say_what_the_figures_leave_out(judge: Judge) -> None:
    assert judge(run_of())["notes"] == []
    [note] = judge(dataclasses.replace(run_of(), target_tokens=None))["notes"]
    assert "padding counts as target tokens" in note


def test_words_keep_facts_and_estimates_apart(judge: Judge) -> None:
    result = {**judge(run_of()), "launch": "launch/one_host.sh --config=demo"}
    text = summary.describe(result)
    assert "compiled, not run" in text
    assert "bound; no estimate without cycles" in text
    assert "estimates, not measured" not in text
    expected = {
        "expected_step_seconds": 0.002,
        "expected_target_tokens_per_second": 1e6,
        "expected_mfu": 0.25,
        "expected_hours": 2.0,
        "expected_device_hours": 16.0,
        "expected_dollars": 24.0,
    }
    text = summary.describe({**result, **expected})
    facts, estimates = text.split("estimates, not measured")
    assert "of 1.00 GB left" in facts and "25.0%" not in facts
    assert "MFU            25.0%" in estimates
    assert "24.00 dollars" in estimates
    assert text.endswith("launch: launch/one_host.sh --config=demo")


def test_a_tpu_is_better_served_by_one_shape_and_whole_tiles(judge: Judge) -> None:
    work = run_of(
        **{"data.source_tokens_per_batch": 1300, "data.target_tokens_per_batch": 1300}
    )
    shapes = [Shape(bucket=batching.Bucket(16, 80), batches=1)]
    packed, tiles = judge(dataclasses.replace(work, shapes=shapes))["recommendations"]
    assert "config.data.batching=packed" in packed
    assert "of 1024 give each device 128 tokens of length 16" in tiles
