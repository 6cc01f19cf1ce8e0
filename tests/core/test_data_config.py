"""What the settings of data say before there is any."""

import pytest

from tests import settings
from vaswani_jax.core import types


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, 40),
        ({"data.vocabulary_sharing": "separate"}, types.VocabSizes(40, 40)),
        (
            {"data.vocabulary_sharing": "separate", "data.target_vocab_size": 9},
            types.VocabSizes(40, 9),
        ),
    ],
)
def test_the_planned_size_is_of_one_vocabulary_or_of_two(changes, size):
    data = settings.small_settings(**{"data.vocab_size": 40}, **changes).data
    assert data.planned_vocab_size == size


def test_symbols_are_separated_by_commas():
    small = settings.small_settings(**{"data.user_symbols": "<2de>,\u27e6N\u27e7"})
    assert small.data.symbols == ("<2de>", "\u27e6N\u27e7")
    assert settings.small_settings().data.symbols == ()
