"""Section 3's settings, and section 6.1's, from those of a MarianMT directory."""

import pathlib
from typing import Any

# torch's, which MarianMT keeps.
LAYER_NORM_EPSILON = 1e-5
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
COUNTS = (
    *("d_model", "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"),
    "max_position_embeddings",
)
RATES = ("dropout", "attention_dropout", "activation_dropout")
# What MarianMT reads of a source, if it does not say.
MAX_LENGTH = 512
# Generation settings, ours and theirs with what each does if it is absent.
SEARCH = {
    "beam_size": ("num_beams", 1),
    "length_penalty": ("length_penalty", 1.0),
    "min_tokens": ("min_length", 1),
    "no_repeat_ngram": ("no_repeat_ngram_size", 0),
    "sampling": ("do_sample", False),
}
# Others that would change what is found, and the values with which they do not.
OTHERS = {
    "repetition_penalty": (None, 1.0),
    "num_beam_groups": (None, 1),
    "diversity_penalty": (None, 0.0),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "forced_bos_token_id": (None,),
    "early_stopping": (None, False, "never"),
}


def check(
    theirs: dict[str, Any], tokenizer: dict[str, Any], path: pathlib.Path
) -> None:
    """Refuse a model that ours cannot be.

    Raises:
        ValueError: Names the file, the value and the rule.
    """
    for key, wanted in RULES.items():
        absent = None if key in ABSENT_MEANS_ANOTHER else wanted
        if theirs.get(key, absent) != wanted:
            raise ValueError(f"{path}: {key} must be {wanted}, got {theirs.get(key)!r}")
    for key in ("layers", "attention_heads", "ffn_dim"):
        sides = [theirs.get(f"{side}_{key}") for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise ValueError(
                f"{path}: encoder_{key} and decoder_{key} must be the same number, got "
                f"{sides[0]} and {sides[1]}"
            )
    for key in COUNTS:
        if type(theirs.get(key)) is not int or theirs[key] < 1:
            raise ValueError(
                f"{path}: {key} must be a positive number, got {theirs.get(key)!r}"
            )
    if theirs["d_model"] % theirs["encoder_attention_heads"]:
        raise ValueError(
            f"{path}: d_model must be a multiple of encoder_attention_heads, got "
            f"{theirs['d_model']} and {theirs['encoder_attention_heads']}"
        )
    for key in RATES:
        if type(theirs.get(key, 0.0)) not in (int, float):
            raise ValueError(f"{path}: {key} must be a number, got {theirs[key]!r}")
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


def model(theirs: dict[str, Any]) -> dict[str, Any]:
    """Our settings of a model that `check` lets through."""
    heads = theirs["encoder_attention_heads"]
    dropout, attention, activation = (float(theirs.get(key, 0.0)) for key in RATES)
    return {
        "num_layers": theirs["encoder_layers"],
        "d_model": theirs["d_model"],
        "d_ff": theirs["encoder_ffn_dim"],
        "num_heads": heads,
        "d_k": theirs["d_model"] // heads,
        "d_v": theirs["d_model"] // heads,
        "dropout_rate": dropout,
        "attention_dropout_rate": attention,
        "relu_dropout_rate": activation,
        "activation": ACTIVATIONS[theirs["activation_function"]],
        "attention_bias": True,
        "logits_bias": True,
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
        "layer_norm_position": "post",
        "positional_encoding": "sinusoidal",
        "max_positions": theirs["max_position_embeddings"],
    }


def search(generation: dict[str, Any], *, pad: Any) -> tuple[dict[str, Any], list[str]]:
    """Our settings of the search, and what of theirs we have not."""
    found: dict[str, Any] = {"length_penalty_form": "power"}
    for key, (theirs, absent) in SEARCH.items():
        value = generation.get(theirs)
        found[key] = type(absent)(absent if value is None else value)
    found["min_tokens"] = max(1, found["min_tokens"])
    most = generation.get("max_length")
    if type(most) is int and most > 1:
        found["max_tokens"] = most - 1  # It counts the begin mark.
    others = {
        key: generation[key]
        for key, harmless in OTHERS.items()
        if key in generation and generation[key] not in harmless
    }
    if generation.get("bad_words_ids") not in (None, [[pad]]):
        others["bad_words_ids"] = generation["bad_words_ids"]
    notes = [
        f"note: {key}={value!r} of its generation settings is none of our search"
        for key, value in others.items()
    ]
    return found, notes
