"""The serialized programs compute the logits of the paper's formulas."""

import pathlib
import re
from typing import Any

import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import types
from vaswani_jax.exchange import stablehlo

V = 11


@pytest.mark.parametrize(
    "changes",
    [
        {"model.num_encoder_layers": 3, "model.num_decoder_layers": 2},
        {"model.layer_norm_position": "pre"},
    ],
)
def test_the_loaded_programs_have_the_reference_models_logits(
    tmp_path: pathlib.Path, changes: dict[str, Any]
) -> None:
    model = settings.small_settings(**changes).model
    params = settings.random_params(model, vocab_size=V, seed=1)
    stablehlo.save(tmp_path, params=params, model=model, vocab_size=V)
    programs = stablehlo.load(tmp_path)
    sources = [[5, 9, 4, types.EOS_ID], [7, types.EOS_ID]]
    # Two hypotheses a sentence.
    targets = np.array([[[1, 7, 4], [1, 5, 5]], [[1, 10, 8], [1, 3, 6]]])
    B, W, T = targets.shape
    source = np.zeros((B, 4), np.int32)
    for row, ids in zip(source, sources, strict=True):
        row[: len(ids)] = ids
    memory = programs.encode(jnp.asarray(source))
    beams = stablehlo.empty_beams(programs.record, B=B, W=W, T=T)
    steps = []
    for position in range(T):
        tokens = jnp.asarray(targets[:, :, position], jnp.int32)
        logits, beams = programs.decode_step(tokens, jnp.int32(position), memory, beams)
        steps.append(np.asarray(logits))
    for b in range(B):
        for w in range(W):
            expected = reference.logits(
                reference.to_float64(params),
                np.array(sources[b]),
                targets[b, w],
                model=model,
            )
            found = [step[b, w] for step in steps]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_programs_multiply_float32_as_float32_on_all_platforms(
    tmp_path: pathlib.Path, dtype: str
) -> None:
    """The default of TPUs and GPUs is fewer bits."""
    model = settings.small_settings(**{"model.dtype": dtype}).model
    params = settings.random_params(model, vocab_size=V, seed=1)
    stablehlo.save(tmp_path, params=params, model=model, vocab_size=V)
    for name in ("encode", "decode_step"):
        program = bytearray((tmp_path / f"{name}.bin").read_bytes())
        text = jax.export.deserialize(program).mlir_module()
        dots = re.findall(r"stablehlo\.dot_general.*", text)
        exact = [each for each in dots if re.search("HIGHEST.*HIGHEST", each)]
        assert len(dots) > 7
        assert len(exact) == (len(dots) if dtype == "float32" else 0)
