"""Section 3's parameters in the layout of Hugging Face's MarianMT, in NumPy.

MarianMT is the paper's post-norm model with a few habits of its own: attention has
biases (here zero), matrices have their outputs first, and of each position all sines
stand before all cosines. The last is a permutation of d_model, which every other part
of the network takes along.
"""

import json
import pathlib
from typing import Any

import flax.traverse_util
import numpy as np

from vaswani_jax.core import config, types
from vaswani_jax.data import vocabulary

# Our modules, and those of MarianMT in the encoder and the decoder.
BLOCKS = {
    "self_attention": "self_attn",
    "memory_attention": "encoder_attn",
    "self_attention_residual": "self_attn_layer_norm",
    "memory_attention_residual": "encoder_attn_layer_norm",
    "feed_forward_residual": "final_layer_norm",
}
PARTS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
    "inner": "fc1",
    "outer": "fc2",
}


def check(model: config.ModelConfig) -> None:
    """Refuse a model that MarianMT cannot be.

    Raises:
        ValueError: Names the value and the rule.
    """
    rules = {
        "layer_norm_position=post": model.layer_norm_position == "post",
        "positional_encoding=sinusoidal": model.positional_encoding == "sinusoidal",
        "d_k=d_v=d_model/num_heads": model.d_k == model.d_v
        and model.d_k * model.num_heads == model.d_model,
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(f"MarianMT needs config.model.{rule}, got {model}")


def settings(model: config.ModelConfig, *, vocab_size: int) -> dict[str, Any]:
    """The values of transformers' MarianConfig."""
    check(model)
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (
            ("layers", model.num_layers),
            ("attention_heads", model.num_heads),
            ("ffn_dim", model.d_ff),
        )
    }
    return {
        **sides,
        "architectures": ["MarianMTModel"],
        "vocab_size": vocab_size,
        "d_model": model.d_model,
        "activation_function": "relu",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "max_position_embeddings": model.max_positions,
        "dropout": model.dropout_rate,
        "pad_token_id": types.PAD_ID,
        "bos_token_id": types.BOS_ID,
        "eos_token_id": types.EOS_ID,
        "forced_eos_token_id": None,
        "decoder_start_token_id": types.BOS_ID,
    }


def save(
    directory: pathlib.Path,
    params: Any,
    settings_: config.Config,
    subwords: vocabulary.Vocabulary,
) -> None:
    """Write what `MarianMTModel` and `MarianTokenizer` load from a directory.

    Raises:
        ValueError: MarianMT cannot be such a model.
        ImportError: safetensors, which comes with transformers, is not installed.
    """
    import safetensors.numpy

    model, search, data = settings_.model, settings_.search, settings_.data
    marks = {
        "pad_token_id": types.PAD_ID,
        "bos_token_id": types.BOS_ID,
        "eos_token_id": types.EOS_ID,
        "decoder_start_token_id": types.BOS_ID,
    }
    files = {
        "config.json": {
            "model_type": "marian",
            **settings(model, vocab_size=subwords.size),
        },
        "generation_config.json": {
            **marks,
            "num_beams": search.beam_size,
            "length_penalty": search.length_penalty,
            "bad_words_ids": [[types.PAD_ID], [types.BOS_ID]],
            "max_length": search.max_source_tokens + search.max_extra_tokens,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": data.source_locale,
            "target_lang": data.target_locale,
            "model_max_length": search.max_source_tokens,
        },
        "vocab.json": {subwords.name(token): token for token in range(subwords.size)},
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (directory / name).write_text(text, encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(subwords.model)
    tensors = parameters(params, model)
    path = str(directory / "model.safetensors")
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})


def parameters(params: Any, model: config.ModelConfig) -> dict[str, np.ndarray]:
    """Our parameters by MarianMT's names, float32; tied ones are given once."""
    check(model)
    order = np.concatenate(
        [np.arange(0, model.d_model, 2), np.arange(1, model.d_model, 2)]
    )
    flat = flax.traverse_util.flatten_dict(params)
    table = np.asarray(flat.pop(("embedding", "embedding")))
    found = {
        "model.shared.weight": table[:, order],
        "final_logits_bias": np.zeros((1, len(table)), np.float32),
    }
    for (stack, layer, block, *names), leaf in flat.items():
        prefix = f"model.{stack}.layers.{layer.removeprefix('layers_')}"
        value = np.asarray(leaf)
        if block == "feed_forward":
            name = f"{prefix}.{PARTS[names[0]]}"
            _add_dense(found, name, names, value, order)
        elif block.endswith("residual"):
            kind = "weight" if names[-1] == "scale" else "bias"
            found[f"{prefix}.{BLOCKS[block]}.{kind}"] = value[order]
        else:
            name = f"{prefix}.{BLOCKS[block]}.{PARTS[names[0]]}"
            if names[0] == "output":
                weight = value.reshape(-1, model.d_model)[:, order].T
            else:
                weight = value.reshape(model.d_model, -1)[order].T
            found[f"{name}.weight"] = weight
            found[f"{name}.bias"] = np.zeros(len(weight), np.float32)
    return {name: np.ascontiguousarray(value) for name, value in found.items()}


def _add_dense(
    found: dict[str, np.ndarray],
    name: str,
    names: list[str],
    value: np.ndarray,
    order: np.ndarray,
) -> None:
    """W_1 reads d_model and W_2 writes it; so does W_2's bias."""
    inner, kernel = names[0] == "inner", names[1] == "kernel"
    if kernel:
        found[f"{name}.weight"] = value[order].T if inner else value[:, order].T
    else:
        found[f"{name}.bias"] = value if inner else value[order]
