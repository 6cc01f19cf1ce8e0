"""Section 3's parameters in the layout of Hugging Face's MarianMT, in NumPy.

MarianMT is the paper's post-norm model with a few habits of its own: attention has
biases, matrices have their outputs first, and of each position all sines
stand before all cosines. The last is a permutation of d_model, which every other part
of the network takes along.
"""

import dataclasses
import json
import pathlib
from typing import Any

import flax.traverse_util
import numpy as np

from vaswani_jax.core import config, types
from vaswani_jax.data import vocabulary
from vaswani_jax.exchange import marian_settings

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
        "layer_norm_epsilon at most 1e-5": model.layer_norm_epsilon <= 1e-5,
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
        "activation_function": model.activation,
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

    All but the SentencePiece files, source.spm and target.spm.

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
            **marian_settings.written(search),
            "bad_words_ids": [[types.PAD_ID], [types.BOS_ID]],
        },
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": data.source_locale,
            "target_lang": data.target_locale,
            "model_max_length": search.max_source_tokens,
        },
        "vocab.json": {
            subwords.subword(token): token for token in range(subwords.size)
        },
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (directory / name).write_text(text, encoding="utf-8")
    tensors = parameters(params, model)
    path = str(directory / "model.safetensors")
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})


@dataclasses.dataclass(frozen=True)
class Place:
    """Where one of our arrays lies in MarianMT, and how.

    A kernel `[in, out]` of ours, its heads flattened, is a weight `[out, in]` of
    theirs. `reads` and `writes` say whether the one axis or the other is d_model, which
    is permuted.
    """

    name: str
    is_kernel: bool
    reads: bool
    writes: bool

    def to_theirs(self, value: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Our array as their tensor."""
        if self.is_kernel:
            shape = (len(order), -1) if self.reads else (-1, value.shape[-1])
            value = value.reshape(shape)
        elif not self.writes:
            value = value.reshape(-1)
        value = value[order] if self.reads else value
        value = value[..., order] if self.writes else value
        return np.ascontiguousarray(value.T if self.is_kernel else value)

    def to_ours(
        self, value: np.ndarray, order: np.ndarray, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Their tensor as our array of a shape."""
        inverse = np.argsort(order)
        value = value.T if self.is_kernel else value
        value = value[inverse] if self.reads else value
        value = value[..., inverse] if self.writes else value
        return np.ascontiguousarray(value.reshape(shape))


def interleaving(d_model: int) -> np.ndarray:
    """Which of our dimensions each of theirs is: all sines, then all cosines."""
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def place(path: tuple[str, ...]) -> Place:
    """Where the parameter of a path lies.

    >>> place(("encoder", "layers_0", "self_attention", "output", "kernel")).name
    'model.encoder.layers.0.self_attn.out_proj.weight'
    """
    if path == ("embedding", "embedding"):
        return Place("model.shared.weight", False, reads=False, writes=True)
    if path == ("embedding", "bias"):
        return Place("final_logits_bias", False, reads=False, writes=False)
    stack, layer, block, *names = path
    prefix = f"model.{stack}.layers.{layer.removeprefix('layers_')}"
    if block.endswith("residual"):
        kind = "weight" if names[-1] == "scale" else "bias"
        name = f"{prefix}.{BLOCKS[block]}.{kind}"
        return Place(name, False, reads=False, writes=True)
    part, leaf = names
    inside = [BLOCKS[block]] if block in BLOCKS else []
    kind = "weight" if leaf == "kernel" else "bias"
    writes = part in ("output", "outer")
    return Place(
        ".".join([prefix, *inside, PARTS[part], kind]),
        is_kernel=leaf == "kernel",
        reads=leaf == "kernel" and not writes,
        writes=writes,
    )


def parameters(params: Any, model: config.ModelConfig) -> dict[str, np.ndarray]:
    """Our parameters by MarianMT's names, float32; tied ones are given once.

    Biases that we lack are zero.
    """
    check(model)
    order = interleaving(model.d_model)
    flat = flax.traverse_util.flatten_dict(params)
    found = {}
    for path, leaf in flat.items():
        own = place(path)
        found[own.name] = own.to_theirs(np.asarray(leaf), order)
    for name, value in list(found.items()):
        if name.endswith("_proj.weight"):
            beside = name.removesuffix("weight") + "bias"
            found.setdefault(beside, np.zeros(len(value), np.float32))
    rows = len(found["model.shared.weight"])
    bias = found.get("final_logits_bias", np.zeros(rows, np.float32))
    return found | {"final_logits_bias": bias.reshape(1, rows)}
