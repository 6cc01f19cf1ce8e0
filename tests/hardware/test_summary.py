"""A verdict in words."""

from collections.abc import Callable
from typing import Any

from tests.hardware import tiny_run
from vaswani_jax.hardware import summary

Judge = Callable[..., dict[str, Any]]


def test_words_keep_facts_and_estimates_apart(judge_once: Judge) -> None:
    result = {
        **judge_once(tiny_run.run_of()),
        "launch": "launch/one_host.sh --config=demo",
    }
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


def test_a_step_has_two_lengths_where_the_sides_differ(judge_once: Judge) -> None:
    result = {**judge_once(tiny_run.run_of()), "launch": ""}
    assert "step 8 x 16 " in summary.describe(result)
    result["steps"][1]["target_length"] = 24
    assert "step 8 x 16 x 24 " in summary.describe(result)


def test_each_program_has_its_own_relayouts(judge_once: Judge) -> None:
    result = {**judge_once(tiny_run.run_of()), "launch": ""}
    programs = [*result["steps"], result["search"]]
    for number, program in enumerate(programs, start=7001):
        program["relayouts"] = {"count": number, "bytes": 0}
    text = summary.describe(result)
    for number in (7001, 7002, 7003):
        assert f"{number} copies of activations or gradients" in text


def test_only_communication_that_hides_work_is_overlapped(judge_once: Judge) -> None:
    result = {**judge_once(tiny_run.run_of()), "launch": ""}
    for step in result["steps"]:
        facts = {"asynchronous": 9, "overlapped": 4, "hidden_kernels": 3}
        step["communication"].update(facts)
    text = summary.describe(result)
    assert "4 of them overlapped with 3 kernels" in text
    assert "latency is left out" in text
