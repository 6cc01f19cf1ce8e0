"""Losses without a head, against parameters that are edited by hand."""

import copy

import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.analysis import importance
from vaswani_jax.core import parallel, types

V = 12
PAIRS = [([5, 6, 7], [8, 9, types.EOS_ID]), ([4, 3], [10, types.EOS_ID])]
MODEL = settings.small_settings().model


@pytest.fixture(scope="module")
def params():
    return settings.random_params(MODEL, vocab_size=V, seed=3)


def loss_by_formulas(params):
    """Return the loss of all tokens by the formulas in float64."""
    exact, losses = reference.to_float64(params), []
    for source, target in PAIRS:
        logits = reference.logits(
            exact,
            np.array([*source, types.EOS_ID]),
            np.array([types.BOS_ID, *target[:-1]]),
            model=MODEL,
        )
        probabilities = reference.softmax(logits)
        losses += [*-np.log(probabilities[np.arange(len(target)), target])]
    return np.mean(losses)


def test_the_importance_of_each_head_is_that_of_parameters_edited_by_hand(params):
    sizes = {"model": MODEL, "vocab_size": V}
    before = copy.deepcopy(params)
    replicated = parallel.replicate(params)
    full = importance.loss(PAIRS, params=replicated, **sizes)
    np.testing.assert_allclose(full, loss_by_formulas(params), rtol=1e-4)
    importances = list(
        importance.importances(PAIRS, params=replicated, full_loss=full, **sizes)
    )
    expected = []
    for stack, module in (
        ("encoder", "self_attention"),
        ("decoder", "self_attention"),
        ("decoder", "memory_attention"),
    ):
        for head in range(MODEL.num_heads):
            edited = copy.deepcopy(params)
            edited[stack]["layers_0"][module]["output"]["kernel"][head] = 0
            expected.append(loss_by_formulas(edited) - full)
    np.testing.assert_allclose(importances, expected, rtol=1e-3, atol=1e-5)
    # Heads differ, or their order would not matter.
    assert len({round(value, 4) for value in importances}) == len(importances)
    np.testing.assert_array_equal(
        params["encoder"]["layers_0"]["self_attention"]["output"]["kernel"],
        before["encoder"]["layers_0"]["self_attention"]["output"]["kernel"],
    )


def test_a_head_is_switched_off_in_its_layer_alone():
    model = settings.small_settings(**{"model.num_layers": 2}).model
    params = settings.random_params(model, vocab_size=V, seed=1)
    params_without_head = importance.switch_off(
        parallel.replicate(params), kind="memory", layer=1, head=0
    )
    kernel = np.asarray(
        params_without_head["decoder"]["layers_1"]["memory_attention"]["output"][
            "kernel"
        ]
    )
    assert kernel.shape == (model.num_heads, model.d_v, model.d_model)
    assert not kernel[0].any() and kernel[1].all()
    for stack, layer, module in (
        ("decoder", "layers_0", "memory_attention"),
        ("decoder", "layers_1", "self_attention"),
        ("encoder", "layers_1", "self_attention"),
    ):
        other = np.asarray(
            params_without_head[stack][layer][module]["output"]["kernel"]
        )
        assert other.all()
