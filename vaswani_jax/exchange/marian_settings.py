"""Section 3's settings, and section 6.1's, from those of a MarianMT directory."""

import pathlib
from typing import Any

from vaswani_jax.core import config

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
SAMPLING = {
    "temperature": ("temperature", 1.0),
    "top_k": ("top_k", 50),
    "top_p": ("top_p", 1.0),
}
# What `rules` wants where nothing is sampled.
UNSAMPLED = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
LENGTHS = ("max_length", "max_new_tokens", "min_new_tokens")
# Must be as in config.json.
MARKS = ("eos_token_id", "decoder_start_token_id")
READ = {*(theirs for theirs, _ in (SEARCH | SAMPLING).values()), *LENGTHS, *MARKS}
# What changes nothing that is found: how it is computed and what comes with it.
HARMLESS = {
    *("bos_token_id", "pad_token_id", "transformers_version", "_from_model_config"),
    *("use_cache", "cache_implementation", "cache_config", "max_cache_len"),
    *("low_memory", "disable_compile", "compile_config", "remove_invalid_values"),
    *("output_scores", "output_logits", "output_attentions", "output_hidden_states"),
    *("return_dict_in_generate", "num_return_sequences"),
}
# Others, and the values with which they change nothing either.
OTHERS: dict[str, list[Any]] = {
    "repetition_penalty": [1.0],
    "encoder_repetition_penalty": [1.0],
    "encoder_no_repeat_ngram_size": [0],
    "num_beam_groups": [1],
    "diversity_penalty": [0.0],
    "suppress_tokens": [[]],
    "begin_suppress_tokens": [[]],
    "forced_bos_token_id": [],
    "forced_eos_token_id": [],
    "bad_words_ids": [],
    "early_stopping": [False, "never"],
    "renormalize_logits": [False],
    "typical_p": [1.0],
    "epsilon_cutoff": [0.0],
    "eta_cutoff": [0.0],
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
    if theirs.get("activation_function") not in list(ACTIVATIONS):
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


def search(
    generation: dict[str, Any], theirs: dict[str, Any], path: pathlib.Path
) -> tuple[dict[str, Any], list[str]]:
    """Our settings of the search, and what of theirs we have not.

    Args:
        generation: The values of generation_config.json.
        theirs: Those of config.json, which count where the others are silent.
        path: Of generation_config.json.

    Raises:
        ValueError: The two have other marks, or a value is of another type: the file,
            the value and the rule are named.
    """
    for key in MARKS:
        own = theirs.get(key)
        if generation.get(key) not in (None, own, [own]):
            raise ValueError(
                f"{path}: {key} must be {own!r} as in config.json, got "
                f"{generation[key]!r}"
            )
    wanted = [*(SEARCH | SAMPLING).values(), *((name, 0) for name in LENGTHS)]
    both = {
        name: _value(name, absent, generation=generation, theirs=theirs, path=path)
        for name, absent in wanted
    }
    found: dict[str, Any] = {"length_penalty_form": "power"}
    found |= {key: both[name] for key, (name, _) in SEARCH.items()}
    found |= UNSAMPLED
    if found["sampling"]:
        found |= {key: both[name] for key, (name, _) in SAMPLING.items()}
    found["min_tokens"] = max(1, found["min_tokens"])
    if both["min_new_tokens"]:
        found["min_tokens"] = both["min_new_tokens"] + 1  # without the end mark
    if both["max_new_tokens"]:
        found["max_tokens"] = both["max_new_tokens"]
    elif both["max_length"] > 1:
        found["max_tokens"] = both["max_length"] - 1  # with the begin mark
    given = {key: value for key, value in theirs.items() if key in OTHERS} | generation
    notes = [
        f"note: {key}={value!r} of its generation settings is none of our search"
        for key, value in given.items()
        if key not in READ | HARMLESS and not _changes_nothing(key, value, theirs)
    ]
    if found["sampling"] and found["beam_size"] > 1:
        beams = found["beam_size"]
        notes.append(f"note: our sampling has no beams, its num_beams={beams}")
    return found, notes


def written(search: config.SearchConfig) -> dict[str, Any]:
    """The values of generation_config.json that make our search, see `unwritten`."""
    longest = search.max_tokens or max(
        search.min_tokens, search.max_source_tokens + search.max_extra_tokens
    )
    found: dict[str, Any] = {
        "num_beams": search.beam_size,
        "length_penalty": search.length_penalty,
        "min_length": search.min_tokens,
        "max_length": longest + 1,  # with the begin mark
        "no_repeat_ngram_size": search.no_repeat_ngram,
    }
    if search.sampling:
        found |= {"do_sample": True, "num_beams": 1, "top_k": search.top_k}
        found |= {"temperature": search.temperature, "top_p": search.top_p}
    return found


def unwritten(search: config.SearchConfig) -> list[str]:
    """What of our search transformers has not."""
    value = search.length_penalty
    notes = [
        "note: MarianMT has no config.search.max_extra_tokens: its outputs end at "
        "max_length, whatever their sources' length"
    ]
    if search.sampling or search.length_penalty_form == "power" or not value:
        return notes
    return [
        *notes,
        f"note: in MarianMT config.search.length_penalty={value} is of |Y|^alpha: it "
        "has no config.search.length_penalty_form=paper",
    ]


def _value(
    name: str,
    absent: Any,
    *,
    generation: dict[str, Any],
    theirs: dict[str, Any],
    path: pathlib.Path,
) -> Any:
    """A generation setting, of the type of what it is if it is absent."""
    place = path if name in generation else path.with_name("config.json")
    value = generation.get(name, theirs.get(name))
    kind = type(absent)
    if value is None:
        return absent
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(
            f"{place}: {name} must be of type {kind.__name__}, got {value!r}"
        )
    return value


def _changes_nothing(key: str, value: Any, theirs: dict[str, Any]) -> bool:
    """Whether a setting that our search lacks would find the same."""
    if key == "bad_words_ids":  # We never choose these.
        never = [[theirs.get(name)] for name in ("pad_token_id", MARKS[1])]
        return value is None or (
            isinstance(value, list) and all(word in never for word in value)
        )
    if key == "forced_eos_token_id":  # What is longest ends anyway.
        return value in (None, theirs.get("eos_token_id"))
    return value is None or value in OTHERS.get(key, [])
