"""Section 3's model from a MarianMT directory, the inverse of `marian`."""

import dataclasses
import pathlib
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import ml_collections
import numpy as np

from vaswani_jax.core import config, parsing, types
from vaswani_jax.data import marian_vocabulary, vocabulary
from vaswani_jax.exchange import marian, marian_files
from vaswani_jax.model import transformer

# torch's, which MarianMT keeps.
LAYER_NORM_EPSILON = 1e-5
# A logit that takes no probability, yet gives no NaN.
NEVER = -1e9
# The sinusoids, which we compute.
COMPUTED = "embed_positions.weight"
# Values of its config.json that our model has no other of; what is absent is so.
RULES = {
    "model_type": "marian",
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
}
ABSENT_MEANS_ANOTHER = ("model_type", "scale_embedding")
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish"}


@dataclasses.dataclass(frozen=True)
class Imported:
    """A model as our programs take it."""

    settings: config.Config
    params: Any
    subwords: vocabulary.Vocabulary


def load(
    directory: pathlib.Path, values: ml_collections.ConfigDict, languages: list[str]
) -> Imported:
    """Read a directory that `MarianMTModel` and `MarianTokenizer` load.

    Args:
        directory: With config.json, model.safetensors or pytorch_model.bin,
            source.spm, target.spm and vocab.json.
        values: What MarianMT does not say: training, batches.
        languages: Of source and target; empty ones are read from
            tokenizer_config.json.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or the model is none of ours: the value, the
            rule and the file are named.
        ImportError: What reads the weights is not installed.
    """
    theirs = marian_files.read_json(directory / "config.json")
    generation = {
        **theirs,
        **marian_files.read_json(directory / "generation_config.json", missing={}),
    }
    tokenizer = marian_files.read_json(directory / "tokenizer_config.json", missing={})
    _check(theirs, tokenizer, directory / "config.json")
    model = _model(theirs)
    for key, given in zip(("source", "target"), languages, strict=True):
        found = given or tokenizer.get(f"{key}_lang")
        if not found:
            raise ValueError(
                f"{directory / 'tokenizer_config.json'} has no {key}_lang: give "
                f"--{key}_locale"
            )
        values.data[f"{key}_locale"] = str(found)
    tensors = marian_files.tensors(directory)
    table = marian_files.take_table(tensors, directory)
    names = marian_files.names(directory, len(table))
    order = _order(theirs, names, directory / "config.json")
    subwords = _subwords(directory, names, order)
    values.model.update(model)
    values.model.max_positions = theirs["max_position_embeddings"]
    values.data.vocab_size = subwords.size
    values.data.subword_model = "unigram"
    values.search.beam_size = generation.get("num_beams", 1)
    values.search.length_penalty = float(generation.get("length_penalty", 1.0))
    settings = parsing.parse(values)
    params = _params(tensors, table, order, settings.model, directory)
    return Imported(settings, params, subwords)


def _check(
    theirs: dict[str, Any], tokenizer: dict[str, Any], path: pathlib.Path
) -> None:
    for key, wanted in RULES.items():
        absent = None if key in ABSENT_MEANS_ANOTHER else wanted
        if theirs.get(key, absent) != wanted:
            raise ValueError(f"{path}: {key} must be {wanted}, got {theirs.get(key)!r}")
    for key in ("layers", "attention_heads", "ffn_dim"):
        sides = [theirs.get(f"{side}_{key}") for side in ("encoder", "decoder")]
        if type(sides[0]) is not int or sides[0] != sides[1]:
            raise ValueError(
                f"{path}: encoder_{key} and decoder_{key} must be the same number, got "
                f"{sides[0]} and {sides[1]}"
            )
    for key in ("d_model", "pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if type(theirs.get(key)) is not int:
            raise ValueError(f"{path}: {key} must be a number, got {theirs.get(key)!r}")
    if theirs.get("activation_function") not in ACTIVATIONS:
        raise ValueError(
            f"{path}: activation_function must be one of {', '.join(ACTIVATIONS)}, got "
            f"{theirs.get('activation_function')!r}"
        )
    if tokenizer.get("separate_vocabs"):
        raise ValueError(
            f"{path.with_name('tokenizer_config.json')}: separate_vocabs must be "
            "false: source and target share one vocabulary (section 3.4)"
        )


def _model(theirs: dict[str, Any]) -> dict[str, Any]:
    heads = theirs["encoder_attention_heads"]
    if theirs["d_model"] % heads:
        raise ValueError(
            f"d_model must be a multiple of the number of heads, got "
            f"{theirs['d_model']} and {heads}"
        )
    return {
        "num_layers": theirs["encoder_layers"],
        "d_model": theirs["d_model"],
        "d_ff": theirs["encoder_ffn_dim"],
        "num_heads": heads,
        "d_k": theirs["d_model"] // heads,
        "d_v": theirs["d_model"] // heads,
        "dropout_rate": float(theirs.get("dropout", 0.1)),
        "attention_dropout_rate": float(theirs.get("attention_dropout", 0.0)),
        "relu_dropout_rate": float(theirs.get("activation_dropout", 0.0)),
        "activation": ACTIVATIONS[theirs["activation_function"]],
        "attention_bias": True,
        "logits_bias": True,
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
    }


def _order(theirs: dict[str, Any], names: list[str], path: pathlib.Path) -> list[int]:
    """Which of their ids each of ours is: the special ones come first.

    What a sentence starts with is mostly one of the others, padding; it has a row of
    its own here.
    """
    keys = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
    special = [*(theirs[key] for key in keys), names.index("<unk>")]
    if not all(0 <= token < len(names) for token in special):
        raise ValueError(
            f"{path}: {', '.join(keys)} must be below {len(names)}, the rows of the "
            f"embedding, got {special[:3]}"
        )
    return [*special, *(t for t in range(len(names)) if t not in special)]


def _subwords(
    directory: pathlib.Path, names: list[str], order: list[int]
) -> vocabulary.Vocabulary:
    models = []
    for name in marian_vocabulary.FILES:
        # Names the file that is missing or damaged.
        models.append(vocabulary.Vocabulary.load(directory / name).models[0])
    own = [names[token] for token in order]
    if order.count(order[types.BOS_ID]) > 1:
        own[types.BOS_ID] = "<s>" if "<s>" not in names else "<start>"
    return marian_vocabulary.MarianVocabulary((models[0], models[1]), own)


def _params(
    tensors: dict[str, np.ndarray],
    table: np.ndarray,
    order: list[int],
    model: config.ModelConfig,
    directory: pathlib.Path,
) -> Any:
    """Every parameter of ours, from all that is in the files."""
    tensors = {k: v for k, v in tensors.items() if not k.endswith(COMPUTED)}
    zeros = np.zeros(len(table), np.float32)
    bias = tensors.get("final_logits_bias", zeros).reshape(-1)[order]
    pad, start, end, unknown = order[: types.UNK_ID + 1]
    if start in (pad, end, unknown):
        bias[types.BOS_ID] = NEVER
    if pad in (end, unknown):
        bias[types.PAD_ID] = NEVER
    tensors["final_logits_bias"] = bias
    tensors["model.shared.weight"] = table[order]
    network = transformer.Transformer(model, len(order))
    tokens = jnp.ones((1, 2), jnp.int32)
    shapes = jax.eval_shape(
        lambda key: network.init(key, tokens, tokens, deterministic=True),
        jax.random.key(0),
    )["params"]
    interleaving = marian.interleaving(model.d_model)
    found = {}
    for path, leaf in flax.traverse_util.flatten_dict(shapes).items():
        own = marian.place(path)
        if own.name not in tensors:
            raise ValueError(f"the weights in {directory} have no {own.name}")
        try:
            found[path] = own.to_ours(tensors.pop(own.name), interleaving, leaf.shape)
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"the weights in {directory}: {own.name} does not fit config.json: "
                f"{error}"
            ) from None
    if tensors:
        raise ValueError(
            f"the weights in {directory} have what our model has not: "
            f"{', '.join(sorted(tensors)[:5])}"
        )
    return flax.traverse_util.unflatten_dict(found)
