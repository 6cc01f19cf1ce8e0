"""Scores and sizes of models that have learned nothing."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference
from tests.inference import small_translators
from tests.inference.small_translators import (
    LINES,
    TWO_LAYERS,
    ids_of,
    make_translator,
    names,
)
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.loaded_models import LoadedModels
from vaswani_jax.inference.translator import Translator


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator(small_translators.learn_vocabulary(), **TWO_LAYERS)


def test_scores_are_those_of_the_reference_model(
    translator: Translator,
) -> None:
    targets = ["g f", "a", "", "e e d"]
    scores = translator.score(LINES, targets)
    params = reference.to_float64(translator.params)
    for line, target, score in zip(LINES, targets, scores, strict=True):
        source, target_in, target_out = ids_of(translator, line, target)
        logits = reference.logits(
            params, source, target_in, model=translator.config.model
        )
        probabilities = reference.softmax(logits)
        expected = np.log(probabilities[np.arange(len(target_out)), target_out])
        np.testing.assert_allclose(score.log_probs, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(score.log_prob, expected.sum(), rtol=1e-4)
        assert score.tokens == names(translator, target_out)


def test_a_target_that_is_no_tree_has_no_score() -> None:
    parser = small_translators.make_parser()
    with pytest.raises(ValueError, match=r"target, line 6: the tree has 2 words"):
        parser.score(["a b", "c"], ["(S (X a) (X b))"] * 2, first_line=5)


def test_module_and_params_compute_logits(translator: Translator) -> None:
    source, target_in, _ = map(jnp.asarray, ids_of(translator, "a b", "c"))
    logits: Any = translator.module.apply(
        {"params": translator.params}, source[None], target_in[None], deterministic=True
    )
    assert logits.shape == (1, len(target_in), translator.vocabulary.size)


def test_an_ensemble_has_the_parameters_and_the_names_of_its_members(
    translator: Translator,
) -> None:
    [member] = translator.members
    checkpoints = [
        Checkpoint(800, member.checkpoint.items, {}),
        Checkpoint(900, member.checkpoint.items, {"averaged": [700, 800]}),
    ]
    models = LoadedModels(
        translator.config,
        translator.vocabulary,
        members=[Member(member.model, checkpoint) for checkpoint in checkpoints],
    )
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(member.params))
    assert translator.num_parameters == size
    assert models.num_parameters == 2 * size
    assert models.checkpoint_name == "800,averaged"
