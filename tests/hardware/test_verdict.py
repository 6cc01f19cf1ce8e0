"""Verdicts on a tiny run, whose programs are compiled for the CPU's devices here."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests import settings
from tests.hardware import tiny_run
from vaswani_jax.core import compilation_cache
from vaswani_jax.data import batching
from vaswani_jax.hardware import chips, origins, programs, summary, verdict
from vaswani_jax.hardware.workload import Shape, Workload
from vaswani_jax.inference import padding
from vaswani_jax.training import microbatching

Judge = Callable[..., dict[str, Any]]


def test_the_largest_and_the_commonest_shape_are_compiled(judge_once: Judge) -> None:
    work = tiny_run.run_of()
    result = judge_once(work)
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
    assert [step["length"] for step in judge_once(one)["steps"]] == [8]


def test_the_programs_of_all_shapes_count(judge_once: Judge) -> None:
    work = tiny_run.run_of()
    memory = judge_once(work)["memory"]
    more = judge_once(dataclasses.replace(work, num_shapes=6))["memory"]
    assert more["step_programs_bytes"] == 2 * memory["step_programs_bytes"]


def test_every_number_names_its_origin_and_is_json(judge_once: Judge) -> None:
    result = judge_once(tiny_run.run_of())
    paths = set(origins.number_paths({**result, "origin": None}))
    assert paths == set(result["origin"])
    assert "steps[].memory.temp_size_in_bytes" in paths
    assert json.loads(json.dumps(result)) == result
    with pytest.raises(KeyError, match="unknown_number"):
        origins.find_origins({"unknown_number": 1}, chips.CHIPS["v5e"])


def test_a_larger_model_changes_the_numbers(judge_once: Judge) -> None:
    small, wide = (
        judge_once(tiny_run.run_of()),
        judge_once(tiny_run.run_of(**{"model.d_ff": 80})),
    )
    for name in ("state_bytes", "step_bytes", "search_bytes"):
        assert wide["memory"][name] > small["memory"][name], name
    for before, after in zip(small["steps"], wide["steps"], strict=True):
        assert after["communication"]["bytes"] > before["communication"]["bytes"]
        assert after["flops"] > before["flops"]


def test_auto_divides_what_does_not_fit(judge_once: Judge) -> None:
    def with_long_rows(**overrides: Any) -> Workload:
        work = tiny_run.run_of(**overrides)
        return dataclasses.replace(work, shapes=work.shapes[1:])

    whole = judge_once(with_long_rows())["memory"]
    memory_bytes = whole["needed_bytes"] - whole["step_bytes"] // 3
    tight = judge_once(with_long_rows(), memory_bytes=memory_bytes)
    assert not tight["fits"]
    assert tight["how_to_fit"] == microbatching.HOW_TO_FIT
    auto = with_long_rows(**{"training.accumulate_steps": "auto"})
    assert judge_once(auto)["num_microbatches"] == 1
    divided = judge_once(auto, memory_bytes=memory_bytes)
    assert divided["num_microbatches"] > 1
    assert divided["memory"]["step_bytes"] < whole["step_bytes"]
    impossible = judge_once(auto, memory_bytes=1000)
    assert not impossible["fits"]
    assert "not even single rows" in impossible["reason"]
    assert impossible["reason"].endswith("a smaller model needs less")
    assert not impossible["how_to_fit"]


def refuse(*arguments: Any, **options: Any) -> None:
    """Fail in place of a compiler."""
    raise RuntimeError(
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for "
        "HLO temporaries (97.12G) exceeds available HBM (15.75G)."
    )


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no program be compiled, for what follows from the settings alone."""
    monkeypatch.setattr(verdict.programs, "train_step", refuse)
    monkeypatch.setattr(verdict.programs, "search", refuse)


def test_what_a_compiler_refuses_does_not_fit(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict.programs, "train_step", refuse)
    result = judge(tiny_run.run_of())
    assert not result["fits"]
    assert "(97.12G)" in result["reason"]
    assert result["memory"]["step_bytes"] == int(97.12 * 2**30)
    assert result["how_to_fit"] == microbatching.HOW_TO_FIT
    assert result["steps"] == []
    assert "97.12G" in summary.describe({**result, "launch": "launch/one_host.sh"})


@pytest.mark.usefixtures("without_compiler")
def test_a_refused_search_needs_what_the_compiler_says(judge: Judge) -> None:
    memory = judge(tiny_run.run_of())["memory"]
    assert memory["search_bytes"] == int(97.12 * 2**30)
    available = 2**40
    memory = judge(tiny_run.run_of(), memory_bytes=available)["memory"]
    assert memory["search_bytes"] == available


def test_no_shape_is_forgotten_when_all_are_compiled(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    middle = batching.Bucket(64, 12, 10)
    work = dataclasses.replace(
        tiny_run.run_of(),
        shapes=[
            Shape(bucket=bucket, batches=1)
            for bucket in (tiny_run.SHORT, middle, tiny_run.LONG)
        ],
        all_shapes=True,
    )
    compiled: dict[batching.Bucket, programs.Program] = {}
    searches: list[programs.Program] = []
    train_step, search = verdict.programs.train_step, verdict.programs.search

    def compile_search(*arguments: Any, **options: Any) -> programs.Program:
        # Both judgements need the same search.
        if not searches:
            searches.append(search(*arguments, **options))
        return searches[0]

    def compile_step(*arguments: Any, **options: Any) -> programs.Program:
        bucket = options["bucket"]
        if bucket not in compiled:
            compiled[bucket] = train_step(*arguments, **options)
        return compiled[bucket]

    def refuse_short(*arguments: Any, **options: Any) -> programs.Program:
        if options["bucket"] == tiny_run.SHORT:
            raise RuntimeError("RESOURCE_EXHAUSTED: needs (97.12G)")
        return compile_step(*arguments, **options)

    def enlarge_short(*arguments: Any, **options: Any) -> programs.Program:
        program = compile_step(*arguments, **options)
        if options["bucket"] != tiny_run.SHORT:
            return program
        needed = program.needed._replace(step=2 * 10**9)
        return dataclasses.replace(program, needed=needed)

    monkeypatch.setattr(verdict.programs, "search", compile_search)
    with monkeypatch.context() as patched:
        patched.setattr(verdict.programs, "train_step", enlarge_short)
        larger = judge(work)
    assert not larger["fits"]
    assert larger["memory"]["step_bytes"] == 2 * 10**9
    assert [step["length"] for step in larger["steps"]] == [8, 12, 16]
    assert [step["target_length"] for step in larger["steps"]] == [8, 10, 16]
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    monkeypatch.setattr(verdict.programs, "train_step", refuse_short)
    refused = judge(work)
    assert not refused["fits"]
    assert "(97.12G)" in refused["reason"]
    assert refused["memory"]["step_bytes"] == int(97.12 * 2**30)
    assert [step["length"] for step in refused["steps"]] == [12, 16]


def test_notes_say_what_the_figures_leave_out(judge_once: Judge) -> None:
    [evaluation] = judge_once(tiny_run.run_of())["notes"]
    assert "programs of the validation's loss" in evaluation
    work = dataclasses.replace(tiny_run.run_of(), target_tokens=None)
    [_, data] = judge_once(work)["notes"]
    assert "padding counts as target tokens" in data


@pytest.mark.usefixtures("without_compiler")
def test_searches_of_full_batches_and_of_the_rest_count(judge: Judge) -> None:
    lengths = {"data.max_length": 33, "search.max_source_tokens": 64}
    result = judge(tiny_run.run_of(**lengths))
    shapes = {
        (group.num_rows, *group.shape)
        for length in (16, 32, 64)
        for group in padding.group_by_shape([(length,)] * 50, max_rows=lambda _: 40)
    }
    assert result["num_search_shapes"] == len(shapes) == 6


@pytest.mark.usefixtures("without_compiler")
def test_a_tpu_is_better_served_by_one_shape_and_whole_tiles(judge: Judge) -> None:
    work = tiny_run.run_of(
        **{"data.source_tokens_per_batch": 1300, "data.target_tokens_per_batch": 1300}
    )
    shapes = [Shape(bucket=batching.Bucket(80, 16, 16), batches=1)]
    packed, tiles = judge(dataclasses.replace(work, shapes=shapes))["recommendations"]
    assert "config.data.batching=packed" in packed
    assert "of 1024 give each device 128 tokens of length 16" in tiles


@pytest.mark.usefixtures("without_compiler")
def test_the_search_of_a_packed_run_is_of_sentences(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = {
        "data.batching": "packed",
        "data.packed_length": 256,
        "data.max_length": 64,
        "data.source_tokens_per_batch": 2048,
        "data.target_tokens_per_batch": 2048,
        "search.max_source_tokens": 512,
        "search.source_tokens_per_batch": 4096,
    }
    work = tiny_run.run_of(**packed)
    rows = [Shape(bucket=batching.Bucket(8, 256, 256), batches=1)]
    lengths = []

    def search(*_: Any, length: int, **__: Any) -> None:
        lengths.append(length)
        refuse()

    monkeypatch.setattr(verdict.programs, "search", search)
    judge(dataclasses.replace(work, shapes=rows))
    assert lengths == [32]


def test_a_search_that_is_too_large_by_itself_is_named() -> None:
    plan = microbatching.Plan(1, state_bytes=5, step_bytes=3, available_bytes=10)
    steps = verdict._Steps(plan, compiled={}, reason="")
    assert "a search needs more memory" in verdict._how_to_fit(steps, search_fits=False)
    assert "the programs of all shapes" in verdict._how_to_fit(steps, search_fits=True)


def test_no_backward_pass_is_certain_with_frozen_parameters() -> None:
    shape: dict[str, Any] = {"bucket": tiny_run.LONG, "vocab_size": tiny_run.V}
    whole, frozen = (
        programs.update_flops(settings.small_settings(**changes), **shape)
        for changes in ({}, {"optimizer.frozen": "encoder/*"})
    )
    assert frozen == whole / 3


def test_no_search_is_longer_than_its_pieces() -> None:
    limits = {"search.max_source_tokens": 100, "search.source_tokens_per_batch": 1000}
    small = settings.small_settings(**limits, **{"search.beam_size": 4})
    assert verdict.search_shape(small, length=98) == (10, 100)
    assert verdict.search_shape(small, length=30) == (31, 32)
