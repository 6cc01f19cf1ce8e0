"""What the paper lacks is off in its configurations; loggers are read by name."""

import pytest

from configs import base_ende
from tests import settings
from vaswani_jax.core import config, parsing, training_config

NOT_IN_THE_PAPER = (
    *("optimizer.schedule", "optimizer.learning_rate", "optimizer.max_gradient_norm"),
    *("optimizer.weight_decay", "optimizer.frozen"),
    *("training.ema_decay", "training.loggers"),
)


@pytest.mark.parametrize("key", NOT_IN_THE_PAPER)
def test_the_base_model_has_the_value_before_the_setting_existed(key: str) -> None:
    values = config.flatten(config.to_dict(parsing.parse(base_ende.get_config())))
    assert values[key] == config.SETTINGS[key].legacy


def test_loggers_are_names_between_commas() -> None:
    small = settings.small_settings(**{"training.loggers": "wandb, trackio,"})
    names = training_config.names_of_loggers(small.training)
    assert names == ["wandb", "trackio"]
    assert training_config.names_of_loggers(settings.small_settings().training) == []
