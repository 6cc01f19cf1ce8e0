"""A log without texts has none of their characters."""

import logging

import pytest

from tests import settings
from tests.service import shouting
from vaswani_jax.inference import line_warnings
from vaswani_jax.service import log_texts


@pytest.fixture
def _log_texts_again():
    """Let other tests read warnings; `setLevel` clears what loggers remember."""
    logger = logging.getLogger(line_warnings.__name__)
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.usefixtures("_log_texts_again")
def test_characters_that_a_vocabulary_lacks_are_not_logged(caplog):
    warnings = line_warnings.LineWarnings(
        shouting.vocabulary(), settings.small_settings()
    )
    warnings.count(["Ω"])
    warnings.log()
    assert "Ω" in caplog.text
    caplog.clear()
    log_texts.hide()
    warnings.log()
    assert not caplog.text
