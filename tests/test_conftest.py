"""Test modules have no doctests, so none are collected from them."""

import pathlib


def test_no_module_of_tests_has_a_doctest() -> None:
    prompt = ">" * 3 + " "
    modules = list(pathlib.Path(__file__).parent.rglob("test_*.py"))
    assert len(modules) > 100
    for path in modules:
        assert prompt not in path.read_text(encoding="utf-8"), path
