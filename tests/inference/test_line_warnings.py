"""Lines that are unusual are counted, and each kind is one warning."""

import dataclasses

import pytest

from tests import settings
from vaswani_jax.inference import line_warnings
from vaswani_jax.inference.results import Hypothesis, Output


def hypothesis(*lengths: int, is_repaired: bool = False) -> Hypothesis:
    """Return a translation of a line whose pieces have so many subwords."""
    outputs = tuple(Output((5,) * length, (6, 2), -1.0) for length in lengths)
    return Hypothesis("a", -1.0, ("a",), outputs, is_repaired=is_repaired)


def test_each_kind_of_unusual_line_is_counted_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    small = settings.small_settings(
        **{"data.max_length": 6, "search.max_source_tokens": 8}
    )
    lines = [
        [hypothesis(5)],  # With the end mark as long as in training.
        [hypothesis(6), hypothesis(6, is_repaired=True)],  # Only the best counts.
        [hypothesis(7, 7)],
        [hypothesis(1, is_repaired=True)],
        [dataclasses.replace(hypothesis(), missing_phrases=("b",))],
        [dataclasses.replace(hypothesis(), outputs=(Output((5,), (6,), -1.0),))],
    ]
    counts = line_warnings.count_unusual_lines(lines, small)
    assert counts == {
        "data.max_length": 2,
        "search.max_source_tokens": 1,
        "search.legal_trees": 1,
        line_warnings.MISSING_PHRASES: 1,
        line_warnings.CUT: 1,
    }
    line_warnings.warn_of_unusual_lines(counts, small)
    long, pieces, repaired, cut, lacking = (
        record.getMessage() for record in caplog.records
    )
    assert long.startswith("2 lines over config.data.max_length=6 tokens: ")
    assert pieces.startswith("1 line over config.search.max_source_tokens=8 tokens: ")
    assert repaired.startswith("1 line got a repaired tree")
    assert cut.endswith(": increase config.search.max_extra_tokens=5")
    assert lacking.startswith("1 line lacks a phrase")
    caplog.clear()
    limited = settings.small_settings(**{"search.max_tokens": 9})
    line_warnings.warn_of_unusual_lines(
        line_warnings.count_unusual_lines(lines[-1:], limited), limited
    )
    assert caplog.messages[0].endswith(" or config.search.max_tokens=9")
    caplog.clear()
    usual = line_warnings.count_unusual_lines(lines[:1], small)
    line_warnings.warn_of_unusual_lines(usual, small)
    assert not caplog.records


def test_the_lines_of_all_blocks_are_counted_and_each_kind_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    small = settings.small_settings(**{"data.max_length": 6})
    treebank = dataclasses.replace(small.data, source="treebank")
    small = dataclasses.replace(small, data=treebank)
    warnings = line_warnings.LineWarnings(settings.letters_vocabulary(), small)
    for lines, targets in ((["a b"], ["\u2603"]), (["a (b"], ["c"]), (["d"], [])):
        warnings.count(lines, targets=targets)
        warnings.count_hypotheses([[hypothesis(6)]])
    assert warnings.counts == {"data.max_length": 3}
    warnings.log()
    long, unknown, plain_text = caplog.messages
    assert long.startswith("3 lines over config.data.max_length=6 tokens: ")
    assert unknown.startswith("2 lines have characters that the vocabulary lacks: ")
    assert plain_text.startswith("1 line looks like plain text, with words such")
