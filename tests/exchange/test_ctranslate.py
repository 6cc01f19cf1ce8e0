"""CTranslate2 computes the probabilities of the paper's formulas with our weights."""

import pathlib
from typing import Any

import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import types
from vaswani_jax.exchange import ctranslate

engine = pytest.importorskip(
    "ctranslate2", reason="ctranslate2 is not installed: .[export]"
)
V = 11
NAMES = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{token}" for token in range(4, V))]


def save(directory: pathlib.Path, **changes: Any) -> tuple[Any, Any]:
    model = settings.small_settings(**({"model.d_v": 4} | changes)).model
    params = settings.random_params(model, vocab_size=V, seed=1)
    ctranslate.save(
        directory,
        params=params,
        model=model,
        spellings=(NAMES, NAMES),
        quantization=None,
    )
    return model, params


@pytest.mark.parametrize(
    "changes",
    [
        {"model.num_encoder_layers": 2, "model.num_decoder_layers": 3},
        {"model.layer_norm_position": "pre", "model.positional_encoding": "learned"},
        {
            "model.activation": "swish",
            "model.attention_bias": True,
            "model.logits_bias": True,
            "model.layer_norm_epsilon": 0.1,
        },
    ],
)
def test_probabilities_are_those_of_the_reference_model(
    tmp_path: pathlib.Path, changes: dict[str, Any]
) -> None:
    model, params = save(tmp_path, **changes)
    source, target = [5, 9, 4], [7, 4, 10, 8]
    logits = reference.logits(
        reference.to_float64(params),
        np.array([*source, types.EOS_ID]),
        np.array([types.BOS_ID, *target]),
        model=model,
    )
    # These marks have no probability there.
    logits[:, [types.PAD_ID, types.BOS_ID]] = -np.inf
    probabilities = reference.softmax(logits)
    ids = [*target, types.EOS_ID]
    expected = np.log(probabilities[np.arange(len(ids)), ids])
    [result] = engine.Translator(str(tmp_path), intra_threads=1).score_batch(
        [[NAMES[token] for token in source]], [[NAMES[token] for token in target]]
    )
    np.testing.assert_allclose(result.log_probs, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("changes", [{"model.d_v": 6}, {"model.num_heads": 4}])
def test_heads_must_share_the_model_out(
    tmp_path: pathlib.Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"d_k=d_v=d_model/num_heads, got 4"):
        save(tmp_path, **changes)
