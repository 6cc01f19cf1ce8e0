"""Each number of a verdict names where it comes from."""

import pytest

from vaswani_jax.hardware import chips, origins


def test_paths_name_numbers_and_join_the_items_of_lists() -> None:
    value = {"a": 1, "b": [{"c": 2.0}, {"c": 3.0, "d": None}], "e": True, "f": "4"}
    assert list(origins.number_paths(value)) == ["a", "b[].c", "b[].c"]


def test_a_number_of_the_data_sheet_names_the_sheet() -> None:
    verdict = {"memory": {"available_bytes": 1}, "steps": [{"flops": 2.0}]}
    for name in ("v5e", "h100"):
        chip = chips.CHIPS[name]
        result = origins.find_origins(verdict, chip)
        assert set(result) == {"memory.available_bytes", "steps[].flops"}
        assert chip.origin in result["memory.available_bytes"]
        is_shared = "75 %" in result["memory.available_bytes"]
        assert is_shared == (chip.platform == "gpu")


def test_the_clock_and_the_links_have_origins_of_their_own() -> None:
    expected = {"computing_seconds": 1.0, "communication_seconds": 2.0}
    chip = chips.CHIPS["v6e"]
    result = origins.find_origins({"steps": [{"expected": expected}]}, chip)
    assert chip.clock_origin in result["steps[].expected.computing_seconds"]
    assert chip.link_origin in result["steps[].expected.communication_seconds"]


def test_a_number_without_an_origin_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="unknown_number"):
        origins.find_origins({"unknown_number": 1}, chips.CHIPS["v5e"])
