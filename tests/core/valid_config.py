"""A valid configuration, and the message when a change of it is refused."""

import ml_collections
import pytest

from tests import settings
from vaswani_jax.core import config, parsing

VALID = {
    "data.source": "text",
    "data.max_length": 20,
    "data.source_tokens_per_batch": 64,
    "data.target_tokens_per_batch": 96,
    "data.text_directory": ".",
    "data.train_source": "train.en",
    "data.train_target": "train.de",
    "data.valid_source": "valid.en",
    "data.valid_target": "valid.de",
    "data.test_source": "test.en",
    "data.test_target": "test.de",
    "model.positional_encoding": "sinusoidal",
    "model.max_positions": 30,
    "search.max_source_tokens": 18,
    "search.max_extra_tokens": 12,
    "training.keep_checkpoints": 3,
    "training.average_checkpoints": 3,
}
GENERATED = {"data.num_train": 9, "data.num_valid": 5, "data.num_test": 4}


def values(overrides):
    """Return the valid configuration as nested dictionaries, with dotted overrides."""
    nested = config.to_dict(settings.small_settings(**VALID))
    for key, value in overrides.items():
        *sections, name = key.split(".")
        section = nested
        for part in sections:
            section = section[part]
        section[name] = value
    return nested


def parse_nested(nested):
    return parsing.parse(ml_collections.ConfigDict(nested))


def parsed(overrides):
    """Return the valid configuration with these overrides, parsed."""
    return parse_nested(values(overrides))


def refusal(overrides):
    """Return the error of the valid configuration with these overrides."""
    with pytest.raises(ValueError) as caught:
        parsed(overrides)
    return str(caught.value)
