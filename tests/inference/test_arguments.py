"""What a translator is asked for is checked before anything is computed."""

import types

import pytest

from tests import settings
from vaswani_jax.inference import arguments


def test_one_string_is_no_list_of_lines() -> None:
    arguments.check_lines(["a", ""], "lines")
    with pytest.raises(TypeError, match=r"^sources must be a list of strings.*'a b'"):
        arguments.check_lines("a b", "sources")


def test_any_iterable_of_lines_becomes_a_list() -> None:
    assert arguments.check_lines(iter(["a", "b"]), "lines") == ["a", "b"]
    table = types.MappingProxyType({"a": 7, "b": 8})  # Has no line of number 0.
    assert arguments.check_lines(table, "lines") == ["a", "b"]
    with pytest.raises(TypeError, match="lines must be strings, got 3"):
        arguments.check_lines(iter(["a", 3]), "lines")  # type: ignore[list-item]


def test_lists_of_different_lengths_are_named() -> None:
    arguments.check_equal_numbers(sources=["a"], targets=["b"])
    sentence = "^lines and prefixes must have equal numbers of lines, got 2 and 1$"
    with pytest.raises(ValueError, match=sentence):
        arguments.check_equal_numbers(lines=["a", "b"], prefixes=["c"])


def test_the_end_mark_counts_among_the_tokens_of_a_line() -> None:
    changes = {"search.max_source_tokens": 4, "search.max_extra_tokens": 2}
    search = settings.small_settings(**changes).search
    arguments.check_lengths([[5] * 3], [[5] * 5], search=search, first_line=1)
    sentence = (
        r"^source, line 8: 5 tokens are more than .*max_source_tokens = 4; shorten"
    )
    with pytest.raises(ValueError, match=sentence):
        arguments.check_lengths([[5], [5] * 4], [[5]] * 2, search=search, first_line=7)
    sentence = (
        r"^target, line 7: 7 tokens are more than .*max_extra_tokens = 6; shorten"
    )
    with pytest.raises(ValueError, match=sentence):
        arguments.check_lengths([[5]], [[5] * 6], search=search, first_line=7)


def test_only_samples_are_more_than_the_beam() -> None:
    beam = settings.small_settings(**{"search.beam_size": 3}).search
    arguments.check_n_best(3, beam)
    for n_best, sentence in (
        (0, "^--num_hypotheses must be at least 1, got 0$"),
        (4, "^--num_hypotheses=4 is more than config.search.beam_size=3; "),
    ):
        with pytest.raises(ValueError, match=sentence):
            arguments.check_n_best(n_best, beam, name="--num_hypotheses")
    changes = {"search.beam_size": 3, "search.sampling": True}
    arguments.check_n_best(4, settings.small_settings(**changes).search)


def test_phrases_of_a_generator_are_read_once() -> None:
    phrases = arguments.read_constraints(["a", "b"], [iter(["hello"]), ()])
    assert phrases == [["hello"], []]
