"""Parameters become MarianMT's tensors and come back; what does not fit is named."""

import pathlib
from typing import Any

import jax
import numpy as np
import pytest
import safetensors.numpy

from tests import settings
from vaswani_jax.exchange import marian_weights

V = 11
SMALL, FULL = (
    settings.small_settings(
        **{"model.attention_bias": True, "model.logits_bias": has_bias}
    ).model
    for has_bias in (False, True)
)
TABLE, LOGITS_BIAS = "model.shared.weight", "final_logits_bias"
FC1 = "model.encoder.layers.0.fc1.weight"


@pytest.fixture
def params() -> Any:
    return settings.random_params(SMALL, vocab_size=V, seed=1)


@pytest.fixture
def full() -> Any:
    """With a bias of the logits, too."""
    return settings.random_params(FULL, vocab_size=V, seed=2)


def imported(tensors: dict[str, np.ndarray], order: list[int]) -> Any:
    directory = pathlib.Path("here")
    return marian_weights.import_params(
        tensors, FULL, orders={"embedding": order}, directory=directory
    )


def test_matrices_are_transposed_and_have_all_sines_first(params: Any) -> None:
    tensors = marian_weights.export_params(params, SMALL)
    layer = params["encoder"]["layers_0"]
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    kernel = layer["feed_forward"]["inner"]["kernel"]
    np.testing.assert_array_equal(tensors[FC1], kernel[order].T)
    query = layer["self_attention"]["query"]["kernel"].reshape(8, -1)
    prefix = "model.encoder.layers.0"
    name = f"{prefix}.self_attn.q_proj.weight"
    np.testing.assert_array_equal(tensors[name], query[order].T)
    output = layer["self_attention"]["output"]["kernel"].reshape(-1, 8)
    name = f"{prefix}.self_attn.out_proj.weight"
    np.testing.assert_array_equal(tensors[name], output[:, order].T)
    scale = layer["feed_forward_residual"]["norm"]["scale"]
    name = f"{prefix}.final_layer_norm.weight"
    np.testing.assert_array_equal(tensors[name], scale[order])
    table = params["embedding"]["embedding"]
    np.testing.assert_array_equal(tensors[TABLE], table[:, order])
    # A bias that our model lacks.
    np.testing.assert_array_equal(tensors[LOGITS_BIAS], np.zeros((1, V)))


def test_imported_parameters_are_those_exported(full: Any) -> None:
    tensors = marian_weights.export_params(full, FULL)
    order = np.random.default_rng(0).permutation(V)
    positions = {"model.encoder.embed_positions.weight": np.ones(2)}
    back = imported({**tensors, **positions}, order.tolist())
    full["embedding"] = {name: leaf[order] for name, leaf in full["embedding"].items()}
    jax.tree.map(np.testing.assert_array_equal, back, full)


def test_a_mark_that_shares_a_row_is_never_chosen(full: Any) -> None:
    tensors = marian_weights.export_params(full, FULL)
    # Begin marks are pads there, as in the OPUS models.
    back = imported(tensors, [3, 3, 0, 1, 2])
    bias, exported = back["embedding"]["bias"], full["embedding"]["bias"]
    np.testing.assert_array_equal(bias[[0, 2, 3, 4]], exported[[3, 0, 1, 2]])
    assert bias[1] < -1e8


def test_tensors_must_fit_and_all_be_used(full: Any) -> None:
    tensors = marian_weights.export_params(full, FULL)

    def error(changed: dict[str, np.ndarray]) -> str:
        with pytest.raises(ValueError) as caught:
            imported(changed, list(range(V)))
        return str(caught.value)

    without = {name: tensor for name, tensor in tensors.items() if name != FC1}
    assert f"in here have no {FC1}" in error(without)
    assert "this model lacks: extra" in error(
        {**tensors, "extra": np.ones(2, np.float32)}
    )
    assert f"{FC1} does not fit" in error({**tensors, FC1: tensors[FC1][:-1]})
    short = tensors[LOGITS_BIAS][:, :-1]
    assert "has 10 values, the embedding 11 rows" in error(
        {**tensors, LOGITS_BIAS: short}
    )


def test_files_of_weights_are_checked(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"neither model\.safetensors nor"):
        marian_weights.read_tensors(tmp_path, is_shared=True)
    path = tmp_path / "model.safetensors"
    table = np.arange(6, dtype=np.float32).reshape(2, 3)

    def read(**tensors: np.ndarray) -> dict[str, np.ndarray]:
        names = {"head": "lm_head.weight", "shared": TABLE, "other": "other"}
        safetensors.numpy.save_file({names[k]: t for k, t in tensors.items()}, path)
        return marian_weights.read_tensors(tmp_path, is_shared=True)

    # The table has its main name, whichever it had.
    tensors = read(head=table, other=table.astype(np.float16))
    assert sorted(tensors) == [TABLE, "other"]
    assert tensors["other"].dtype == np.float32
    np.testing.assert_array_equal(tensors[TABLE], table)
    for wrong, message in (
        ({"other": table}, f"have no {TABLE}"),
        ({"head": table, "shared": table + 1}, r"another lm_head\.weight than"),
        ({"shared": table, "other": np.array([np.nan])}, "other has values that are"),
    ):
        with pytest.raises(ValueError, match=message):
            read(**wrong)
    path.write_bytes(b"{")
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        marian_weights.read_tensors(tmp_path, is_shared=True)
