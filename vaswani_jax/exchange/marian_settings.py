"""Settings of model and search from those of a MarianMT directory, and back."""

import pathlib
from typing import Any, NamedTuple

from vaswani_jax.core import config

# That of torch, which MarianMT keeps.
LAYER_NORM_EPSILON = 1e-5
# Values that config.json must have. A key that is absent has the value, but for two.
REQUIRED = {
    "model_type": "marian",
    "scale_embedding": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
}
REQUIRED_EXPLICITLY = ("model_type", "scale_embedding")
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish"}
# Other names that transformers takes for keys; what they say counts there.
ALIASES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
}
COUNTS = (
    *("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads"),
    *("encoder_ffn_dim", "max_position_embeddings"),
)
RATES = ("dropout", "attention_dropout", "activation_dropout")
# Shares of layers that its training leaves out; ours leaves out none.
LAYER_DROPS = ("encoder_layerdrop", "decoder_layerdrop")
# The most tokens of a source that MarianMT reads by default.
MAX_LENGTH = 512
# Settings of the search: ours, those of transformers, and their values if absent.
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
# Values that our search must have where it does not sample: those before it could.
UNSAMPLED = {key: config.SETTINGS[f"search.{key}"].legacy for key in SAMPLING}
LENGTHS = ("max_length", "max_new_tokens", "min_new_tokens")
# Marks that must be as in config.json.
MARKS = ("eos_token_id", "decoder_start_token_id")
READ = {*(name for name, _ in (SEARCH | SAMPLING).values()), *LENGTHS, *MARKS}
# Settings that change no output: how it is computed and what comes with it.
HARMLESS = {
    *("bos_token_id", "pad_token_id", "transformers_version", "_from_model_config"),
    *("use_cache", "cache_implementation", "cache_config", "max_cache_len"),
    *("low_memory", "disable_compile", "compile_config", "remove_invalid_values"),
    *("output_scores", "output_logits", "output_attentions", "output_hidden_states"),
    *("return_dict_in_generate", "num_return_sequences"),
}
# Settings that change no output with these values.
NEUTRAL_VALUES: dict[str, list[Any]] = {
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


class ImportedSearch(NamedTuple):
    """Our settings of the search, and notes on those that our search has not."""

    settings: dict[str, Any]
    notes: list[str]


def resolve_aliases(
    marian_config: dict[str, Any], *, path: pathlib.Path
) -> dict[str, Any]:
    """Return the values of config.json under the main names of their keys.

    Raises:
        ValueError: Two names of one key have different values; names the file.
    """
    resolved = {k: v for k, v in marian_config.items() if k not in ALIASES}
    for alias, key in ALIASES.items():
        if alias not in marian_config:
            continue
        value = marian_config[alias]
        if resolved.setdefault(key, value) != value:
            raise ValueError(
                f"{path}: {alias} is another name of {key}, got {value!r} and "
                f"{resolved[key]!r}"
            )
    return resolved


def check_importable(
    marian_config: dict[str, Any], tokenizer: dict[str, Any], *, path: pathlib.Path
) -> None:
    """Refuse a model that our model cannot be.

    Args:
        marian_config: The values of config.json, of `resolve_aliases`.
        tokenizer: The values of tokenizer_config.json.
        path: Of config.json.

    Raises:
        ValueError: Names the file, the value and the rule.
    """
    for key, required_value in REQUIRED.items():
        default = None if key in REQUIRED_EXPLICITLY else required_value
        if marian_config.get(key, default) != required_value:
            raise ValueError(
                f"{path}: {key} must be {required_value}, "
                f"got {marian_config.get(key)!r}"
            )
    for key in ("attention_heads", "ffn_dim"):
        sides = [marian_config.get(f"{side}_{key}") for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise ValueError(
                f"{path}: encoder_{key} and decoder_{key} must be the same number, got "
                f"{sides[0]} and {sides[1]}"
            )
    for key in COUNTS:
        if type(marian_config.get(key)) is not int or marian_config[key] < 1:
            count = marian_config.get(key)
            raise ValueError(f"{path}: {key} must be a positive number, got {count!r}")
    if marian_config["d_model"] % marian_config["encoder_attention_heads"]:
        raise ValueError(
            f"{path}: d_model must be a multiple of encoder_attention_heads, got "
            f"{marian_config['d_model']} and {marian_config['encoder_attention_heads']}"
        )
    for key in (*RATES, *LAYER_DROPS):
        if type(marian_config.get(key, 0.0)) not in (int, float):
            raise ValueError(
                f"{path}: {key} must be a number, got {marian_config[key]!r}"
            )
    if marian_config.get("activation_function") not in list(ACTIVATIONS):
        raise ValueError(
            f"{path}: activation_function must be one of {', '.join(ACTIVATIONS)}, got "
            f"{marian_config.get('activation_function')!r}"
        )
    _check_vocabularies(marian_config, tokenizer, path=path)


def _check_vocabularies(
    marian_config: dict[str, Any], tokenizer: dict[str, Any], *, path: pathlib.Path
) -> None:
    if not shares_embeddings(marian_config):
        return
    source = marian_config.get("vocab_size")
    target = marian_config.get("decoder_vocab_size") or source
    if source != target:
        raise ValueError(
            f"{path}: with share_encoder_decoder_embeddings, decoder_vocab_size must "
            f"be vocab_size ({source}), got {target}"
        )
    if tokenizer.get("separate_vocabs"):
        raise ValueError(
            f"{path.with_name('tokenizer_config.json')}: separate_vocabs must be "
            "false with share_encoder_decoder_embeddings: one row of the embedding "
            "would be two subwords"
        )


def shares_embeddings(marian_config: dict[str, Any]) -> bool:
    """Return whether encoder and decoder have one embedding."""
    return bool(marian_config.get("share_encoder_decoder_embeddings", True))


def import_model(marian_config: dict[str, Any]) -> dict[str, Any]:
    """Return our settings of a model that `check_importable` lets through."""
    heads = marian_config["encoder_attention_heads"]
    encoder, decoder = (marian_config[f"{s}_layers"] for s in ("encoder", "decoder"))
    dropout, attention, activation = (
        float(marian_config.get(key, 0.0)) for key in RATES
    )
    return {
        "num_layers": encoder,
        "num_encoder_layers": 0,
        "num_decoder_layers": 0 if decoder == encoder else decoder,
        "d_model": marian_config["d_model"],
        "d_ff": marian_config["encoder_ffn_dim"],
        "num_heads": heads,
        "d_k": marian_config["d_model"] // heads,
        "d_v": marian_config["d_model"] // heads,
        "dropout_rate": dropout,
        "attention_dropout_rate": attention,
        "relu_dropout_rate": activation,
        "activation": ACTIVATIONS[marian_config["activation_function"]],
        "attention_bias": True,
        "logits_bias": True,
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
        "layer_norm_position": "post",
        "positional_encoding": "sinusoidal",
        "max_positions": marian_config["max_position_embeddings"],
    }


def import_search(
    generation: dict[str, Any] | None,
    marian_config: dict[str, Any],
    *,
    path: pathlib.Path,
) -> ImportedSearch:
    """Return our settings of the search.

    Args:
        generation: The values of generation_config.json; None if there is no such
            file. As in transformers, those of config.json count only then.
        marian_config: The values of config.json, whose marks always count.
        path: Of generation_config.json.

    Raises:
        ValueError: The two files differ in a mark, or a value is of another type;
            names the file, the value and the rule.
    """
    if generation is None:
        names = READ | NEUTRAL_VALUES.keys()
        generation = {k: v for k, v in marian_config.items() if k in names}
        path = path.with_name("config.json")
    for key in MARKS:
        mark = marian_config.get(key)
        if generation.get(key) not in (None, mark, [mark]):
            raise ValueError(
                f"{path}: {key} must be {mark!r} as in config.json, got "
                f"{generation[key]!r}"
            )
    defaults = dict([*(SEARCH | SAMPLING).values(), *((name, 0) for name in LENGTHS)])
    values = {
        name: _read_value(name, default, generation=generation, path=path)
        for name, default in defaults.items()
    }
    settings: dict[str, Any] = {"length_penalty_form": "power"}
    settings |= {key: values[name] for key, (name, _) in SEARCH.items()}
    settings |= UNSAMPLED
    if settings["sampling"]:
        settings |= {key: values[name] for key, (name, _) in SAMPLING.items()}
    settings["min_tokens"] = max(1, settings["min_tokens"])
    if values["min_new_tokens"]:
        settings["min_tokens"] = values["min_new_tokens"] + 1  # without the end mark
    if values["max_new_tokens"]:
        settings["max_tokens"] = values["max_new_tokens"]
    elif values["max_length"] > 1:
        settings["max_tokens"] = values["max_length"] - 1  # with the begin mark
    notes = [
        f"note: our search has no {key}={value!r} of its generation settings"
        for key, value in generation.items()
        if key not in READ | HARMLESS
        and not _is_neutral(key, value, marian_config=marian_config)
    ]
    if settings["sampling"] and settings["beam_size"] > 1:
        beams = settings["beam_size"]
        notes.append(f"note: our sampling has no beams, its num_beams={beams}")
    return ImportedSearch(settings, notes)


def unimported(marian_config: dict[str, Any]) -> list[str]:
    """Return notes on settings of its training that ours has not."""
    return [
        f"note: our training has no {key}={marian_config[key]}"
        for key in LAYER_DROPS
        if marian_config.get(key)
    ]


def export_search(search: config.SearchConfig) -> dict[str, Any]:
    """Return the values of generation_config.json for our search, see `unexported`."""
    longest = max(search.min_tokens, search.max_target_tokens)
    if search.max_tokens:
        longest = min(longest, search.max_tokens)
    values: dict[str, Any] = {
        "num_beams": search.beam_size,
        "length_penalty": search.length_penalty,
        "min_length": search.min_tokens,
        "max_length": longest + 1,  # with the begin mark
        "no_repeat_ngram_size": search.no_repeat_ngram,
    }
    if search.sampling:
        values |= {"do_sample": True, "num_beams": 1, "top_k": search.top_k}
        values |= {"temperature": search.temperature, "top_p": search.top_p}
    elif search.beam_size > 1:
        # By default transformers would stop before hypotheses that may become better.
        values["early_stopping"] = "never"
    return values


def unexported(search: config.SearchConfig) -> list[str]:
    """Return notes on settings of our search that transformers has not."""
    alpha = search.length_penalty
    notes = [
        "note: MarianMT has no config.search.max_extra_tokens: its outputs end at "
        "max_length, whatever their sources' length"
    ]
    if search.sampling or search.length_penalty_form == "power" or not alpha:
        return notes
    return [
        *notes,
        f"note: in MarianMT config.search.length_penalty={alpha} is of |Y|^alpha: it "
        "has no config.search.length_penalty_form=paper",
    ]


def _read_value(
    name: str, default: Any, *, generation: dict[str, Any], path: pathlib.Path
) -> Any:
    """Return a generation setting, which must be of the default's type."""
    value = generation.get(name)
    kind = type(default)
    if value is None:
        return default
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(
            f"{path}: {name} must be of type {kind.__name__}, got {value!r}"
        )
    return value


def _is_neutral(key: str, value: Any, *, marian_config: dict[str, Any]) -> bool:
    """Return whether the outputs are the same without this setting."""
    if key == "bad_words_ids":  # We never choose these.
        never = [[marian_config.get(name)] for name in ("pad_token_id", MARKS[1])]
        return value is None or (
            isinstance(value, list) and all(word in never for word in value)
        )
    if key == "forced_eos_token_id":  # What is longest ends anyway.
        return value in (None, marian_config.get("eos_token_id"))
    return value is None or value in NEUTRAL_VALUES.get(key, [])
