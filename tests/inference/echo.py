"""Translators whose model repeats its source: what is tested is the rest."""

import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import generate
from vaswani_jax.inference.line_translator import LineTranslator


def echoing(
    translator: LineTranslator, monkeypatch: pytest.MonkeyPatch
) -> LineTranslator:
    """Return the translator with a model that repeats its source."""

    def echo(params: object, rows: generate.Rows) -> types.Hypotheses:
        scores = np.zeros((*rows.source.shape[:2], 1), np.float32)
        return types.Hypotheses(rows.source[:, :, None], scores)

    monkeypatch.setattr(translator, "search", echo)
    return translator


def echo_translator(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, **overrides: int
) -> LineTranslator:
    changed = {f"search.{key}": value for key, value in overrides.items()}
    small = settings.small_settings(**changed)
    return echoing(LineTranslator(small, vocabulary), monkeypatch)
