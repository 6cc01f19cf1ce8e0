"""Write a model for CTranslate2, the fastest engine on CPUs."""

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import config, types
from vaswani_jax.model import positional_encoding


def save(
    directory: pathlib.Path,
    *,
    params: Any,
    model: config.ModelConfig,
    spellings: tuple[Sequence[str], Sequence[str]],
    quantization: str | None,
) -> None:
    """Write the directory that `ctranslate2.Translator` loads.

    Args:
        directory: To be written; files in it are replaced.
        params: Of the model, as NumPy arrays.
        model: Its architecture.
        spellings: Every subword of the source, and of the target, by the ids.
        quantization: "int8" and the like, or None for float32.

    Raises:
        ValueError: CTranslate2 has no such model.
        ImportError: ctranslate2 is not installed.
    """
    from ctranslate2.specs import common_spec, transformer_spec

    if model.d_k != model.d_v or model.d_k * model.num_heads != model.d_model:
        raise ValueError(
            "CTranslate2 needs config.model.d_k=d_v=d_model/num_heads, got "
            f"{model.d_k}, {model.d_v}, {model.d_model} and {model.num_heads}"
        )
    spec = transformer_spec.TransformerSpec.from_config(
        (model.encoder_layers, model.decoder_layers),
        model.num_heads,
        pre_norm=model.layer_norm_position == "pre",
        no_final_norm=model.layer_norm_position == "post",
        activation={
            "relu": common_spec.Activation.RELU,
            "swish": common_spec.Activation.SWISH,
        }[model.activation],
    )
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        _fill_stack(part, params, model=model, side=side)
    source, target = map(list, spellings)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.bos_token = target[types.BOS_ID]
    spec.config.eos_token = target[types.EOS_ID]
    spec.config.unk_token = target[types.UNK_ID]
    spec.config.decoder_start_token = target[types.BOS_ID]
    spec.config.layer_norm_epsilon = model.layer_norm_epsilon
    # Our encoder reads the sentence and its end mark.
    spec.config.add_source_bos = False
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=quantization)
    directory.mkdir(parents=True, exist_ok=True)
    spec.save(str(directory))


def _fill_stack(
    part: Any, params: Any, *, model: config.ModelConfig, side: str
) -> None:
    stack = params[side]
    side_embedding = "source_embedding" if side == "encoder" else "target_embedding"
    embedding = params.get("embedding") or params[side_embedding]
    table = np.asarray(embedding["embedding"])
    embeddings = part.embeddings[0] if side == "encoder" else part.embeddings
    embeddings.weight = table
    part.scale_embeddings = math.sqrt(model.d_model)
    part.position_encodings.encodings = _positions(params, model, side=side)
    if side == "decoder":
        part.projection.weight = table
        bias = np.zeros(len(table), np.float32)
        if model.logits_bias:
            bias += np.asarray(embedding["bias"])
        # Our search never chooses these; CTranslate2 has no such rule.
        bias[[types.PAD_ID, types.BOS_ID]] = types.NEVER
        part.projection.bias = bias
    if model.layer_norm_position == "pre":
        _fill_norm(part.layer_norm, stack["final_norm"])
    for index, layer in enumerate(part.layer):
        arrays = stack[f"layers_{index}"]
        _fill_attention(layer.self_attention, arrays["self_attention"], fused=3)
        _fill_norm(
            layer.self_attention.layer_norm, arrays["self_attention_residual"]["norm"]
        )
        if side == "decoder":
            _fill_attention(layer.attention, arrays["memory_attention"], fused=2)
            _fill_norm(
                layer.attention.layer_norm, arrays["memory_attention_residual"]["norm"]
            )
        for linear, name in (
            (layer.ffn.linear_0, "inner"),
            (layer.ffn.linear_1, "outer"),
        ):
            linear.weight = np.asarray(arrays["feed_forward"][name]["kernel"]).T
            linear.bias = np.asarray(arrays["feed_forward"][name]["bias"])
        _fill_norm(layer.ffn.layer_norm, arrays["feed_forward_residual"]["norm"])


def _positions(params: Any, model: config.ModelConfig, *, side: str) -> np.ndarray:
    if model.positional_encoding == "learned":
        text = "source" if side == "encoder" else "target"
        return np.asarray(params[f"{text}_positions"]["embedding"])
    positions = jnp.arange(model.max_positions)
    return np.asarray(positional_encoding.sinusoids(positions, d_model=model.d_model))


def _fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = np.asarray(norm["scale"]), np.asarray(norm["bias"])


def _fill_attention(spec: Any, attention: Any, *, fused: int) -> None:
    """Fill in one matrix for query, key and value; for the memory's attention two."""

    def weight(name: str) -> np.ndarray:
        kernel = np.asarray(attention[name]["kernel"])
        if name == "output":
            return kernel.reshape(-1, kernel.shape[-1]).T
        return kernel.reshape(kernel.shape[0], -1).T

    names = ["query", "key", "value"]
    groups = [names] if fused == 3 else [names[:1], names[1:]]
    for linear, group in zip(spec.linear, [*groups, ["output"]], strict=True):
        linear.weight = np.concatenate([weight(name) for name in group])
        if "bias" in attention["query"]:
            biases = [np.asarray(attention[n]["bias"]).reshape(-1) for n in group]
            linear.bias = np.concatenate(biases)
