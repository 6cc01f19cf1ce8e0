"""Which lines of a validation set a page shows."""

import dataclasses

import pytest

from tests import settings
from vaswani_jax.data import prepared
from vaswani_jax.pages import default_lines


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared.open_or_prepare(
        settings.small_settings(**{"data.num_valid": 20}),
        tmp_path_factory.mktemp("run") / "data",
        rebuild=False,
    )


def lengths(data, lines):
    return [len(ids) for ids in data.vocabulary.encode(lines)]


def test_lines_are_spread_over_the_lengths(data):
    lines = default_lines.choose(data, count=4, max_tokens=99)
    valid = data.text("valid")[0]
    assert len({*lines}) == 4 and {*lines} <= {*valid}
    of_all = sorted(lengths(data, valid))
    # The middle of each quarter of the lengths.
    assert lengths(data, lines) == [of_all[n] for n in (2, 7, 12, 17)]
    assert len(default_lines.choose(data, count=99, max_tokens=99)) == 20


def test_no_line_is_too_long(data):
    shortest = min(lengths(data, data.text("valid")[0]))
    lines = default_lines.choose(data, count=8, max_tokens=shortest + 2)
    assert lines
    assert max(lengths(data, lines)) <= shortest + 1
    assert default_lines.choose(data, count=8, max_tokens=1) == []


def test_a_run_without_validation_text_has_no_lines(data):
    manifest = dataclasses.replace(data.manifest, counts={})
    without = dataclasses.replace(data, manifest=manifest)
    assert default_lines.choose(without, count=8, max_tokens=99) == []
