"""What values a configuration may have, and which exclude each other."""

import re
from typing import Any

from vaswani_jax.core import config

# A language's code, with a script or a country or without.
LOCALE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")


def check(settings: config.Config) -> None:
    """Refuse what is out of range, and values that exclude each other.

    Raises:
        ValueError: The message has the key, the value and the rule.
    """
    _check_model(settings.model)
    _check_data(settings.data)
    _check_fused_lengths(settings)
    _check_search(settings.search)
    _check_training(settings)


def _one_of(path: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{path} must be one of {', '.join(allowed)}; got {value!r}")


def _at_least(path: str, section: Any, minimum: int, keys: str) -> None:
    for key in keys.split():
        value = getattr(section, key)
        if not value >= minimum:
            raise ValueError(f"{path}.{key} must be at least {minimum}, got {value}")


def _at_least_other(path: str, section: Any, key: str, other: str) -> None:
    value, minimum = getattr(section, key), getattr(section, other)
    if value < minimum:
        raise ValueError(
            f"{path}.{key} must be at least {path}.{other} ({minimum}), got {value}"
        )


def _rate(path: str, section: Any, keys: str) -> None:
    for key in keys.split():
        value = getattr(section, key)
        if not 0 <= value < 1:
            raise ValueError(f"{path}.{key} must be in [0, 1), got {value}")


def _check_model(model: config.ModelConfig) -> None:
    path = "config.model"
    counts = "num_layers d_model d_ff num_heads d_k d_v max_positions"
    _at_least(path, model, 1, counts)
    _rate(path, model, "dropout_rate attention_dropout_rate relu_dropout_rate")
    for key in ("init_scale", "layer_norm_epsilon"):
        if not getattr(model, key) > 0:
            value = getattr(model, key)
            raise ValueError(f"{path}.{key} must be positive, got {value}")
    _one_of(f"{path}.activation", model.activation, ("relu", "swish"))
    _one_of(f"{path}.layer_norm_position", model.layer_norm_position, ("post", "pre"))
    encodings = ("sinusoidal", "learned")
    _one_of(f"{path}.positional_encoding", model.positional_encoding, encodings)
    _one_of(f"{path}.dtype", model.dtype, ("float32", "bfloat16"))
    _one_of(f"{path}.attention", model.attention, ("xla", "cudnn"))
    if model.attention == "cudnn":
        _check_fused(model)
    if model.positional_encoding == "sinusoidal" and model.d_model % 2:
        raise ValueError(f"{path}.d_model must be a multiple of 2, got {model.d_model}")


def _check_fused(model: config.ModelConfig) -> None:
    """What cuDNN's kernel can do."""
    if model.dtype != "bfloat16" or model.attention_dropout_rate:
        raise ValueError(
            "config.model.attention=cudnn needs config.model.dtype=bfloat16 and "
            "config.model.attention_dropout_rate=0, got "
            f"{model.dtype!r} and {model.attention_dropout_rate}"
        )
    if model.d_k != model.d_v or model.d_k % 8 or model.d_k > 128:
        raise ValueError(
            "config.model.attention=cudnn needs config.model.d_k equal to d_v, a "
            f"multiple of 8 and at most 128, got {model.d_k} and {model.d_v}"
        )


def _check_fused_lengths(settings: config.Config) -> None:
    if settings.model.attention == "cudnn":
        packed = settings.data.batching == "packed"
        for key in ["max_length"] + ["packed_length"] * packed:
            value = getattr(settings.data, key)
            if value % 2:
                raise ValueError(
                    f"config.model.attention=cudnn needs an even config.data.{key}, "
                    f"got {value}"
                )


def _check_data(data: config.DataConfig) -> None:
    path = "config.data"
    if data.source.startswith("tfds:"):
        _check_tfds(data)
    else:
        sources = ("text", "cldr", "copy", "reverse", "tfds:DATASET/PAIR")
        _one_of(f"{path}.source", data.source, sources)
    _one_of(f"{path}.batching", data.batching, ("buckets", "packed"))
    _one_of(f"{path}.subword_model", data.subword_model, ("bpe", "unigram"))
    _one_of(f"{path}.text_form", data.text_form, ("detokenized", "tokenized"))
    _at_least(path, data, 2, "max_length")
    _rate(path, data, "subword_dropout")
    if (data.subword_samples > 1) != (data.subword_dropout > 0):
        raise ValueError(
            f"{path}.subword_samples is over 1 if {path}.subword_dropout is over 0, "
            f"got {data.subword_samples} and {data.subword_dropout}"
        )
    if data.subword_dropout and data.subword_model != "bpe":
        raise ValueError(
            f"{path}.subword_dropout is of merges, hence for {path}.subword_model=bpe, "
            f"got {data.subword_model!r}"
        )
    rules = ("identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf")
    _one_of(f"{path}.normalization", data.normalization, rules)
    counts = "sentencepiece_sample_size num_buckets subword_samples"
    _at_least(path, data, 1, counts)
    # The marks and a subword.
    _at_least(path, data, 5, "vocab_size")
    if data.source == "text":
        keys = "text_directory train_source train_target valid_source valid_target"
    else:
        keys = ""
        if not data.source.startswith("tfds:"):
            _at_least(path, data, 1, "num_train num_valid num_test")
    for key in ["source_locale", "target_locale", *keys.split()]:
        if not getattr(data, key):
            raise ValueError(
                f"{path}.{key} must not be empty: give it a value, as "
                f"--{path}.{key}=..."
            )
    for key in ("source_locale", "target_locale"):
        # Scores tokenise by the language's code; its name would get no rules.
        locale = getattr(data, key)
        if data.source == "text" and not LOCALE.fullmatch(locale):
            raise ValueError(
                f"{path}.{key} must be a code of two or three letters, or begin with "
                f"one, as de, pt_BR or zh-Hans; got {locale!r}"
            )
    if bool(data.test_source) != bool(data.test_target):
        raise ValueError(
            f"{path}.test_source and {path}.test_target go together, got "
            f"{data.test_source!r} and {data.test_target!r}"
        )
    longest = "max_length"
    if data.batching == "packed":
        _at_least_other(path, data, "packed_length", longest)
        longest = "packed_length"
    for side in ("source", "target"):
        _at_least_other(path, data, f"{side}_tokens_per_batch", longest)


def _check_tfds(data: config.DataConfig) -> None:
    """A corpus has one pair of languages; which is the source is the user's to say."""
    path = "config.data"
    found = re.fullmatch(r"tfds:\w+/(\w+)-(\w+)(:[\w.]+)?", data.source)
    if not found:
        raise ValueError(
            f"{path}.source must be like tfds:wmt14_translate/de-en, got "
            f"{data.source!r}"
        )
    pair = {found[1], found[2]}
    if {data.source_locale, data.target_locale} != pair:
        raise ValueError(
            f"{path}.source_locale and {path}.target_locale must be the two languages "
            f"of {data.source}, in the direction of the translation, got "
            f"{data.source_locale!r} and {data.target_locale!r}"
        )


def _check_search(search: config.SearchConfig) -> None:
    path = "config.search"
    counts = "beam_size max_extra_tokens min_tokens source_tokens_per_batch"
    _at_least(path, search, 1, counts)
    _at_least(path, search, 2, "max_source_tokens")
    _at_least(path, search, 0, "max_tokens no_repeat_ngram top_k length_penalty")
    if search.max_tokens and search.max_tokens < search.min_tokens:
        raise ValueError(
            f"{path}.max_tokens must be 0 or at least {path}.min_tokens "
            f"({search.min_tokens}), got {search.max_tokens}"
        )
    forms = ("paper", "power")
    _one_of(f"{path}.length_penalty_form", search.length_penalty_form, forms)
    if not search.temperature > 0:
        raise ValueError(
            f"{path}.temperature must be positive, got {search.temperature}"
        )
    if not 0 < search.top_p <= 1:
        raise ValueError(f"{path}.top_p must be over 0, at most 1, got {search.top_p}")
    usual = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    for key, value in usual.items():
        if not search.sampling and getattr(search, key) != value:
            raise ValueError(
                f"{path}.{key}={getattr(search, key)} is of {path}.sampling, which is "
                "False"
            )


def _check_training(settings: config.Config) -> None:
    path = "config.training"
    counts = (
        "num_steps log_every_steps evaluate_every_steps "
        "checkpoint_every_steps keep_checkpoints average_checkpoints"
    )
    _at_least(path, settings.training, 1, counts)
    _at_least(
        path, settings.training, 0, "patience max_skipped_batches max_loss_rise r_drop"
    )
    rates = "dropout_rate", "attention_dropout_rate", "relu_dropout_rate"
    if settings.training.r_drop and not any(getattr(settings.model, r) for r in rates):
        raise ValueError(
            f"{path}.r_drop compares two draws of dropout and needs one of "
            f"config.model.{', '.join(rates)} above 0, got {settings.training.r_drop}"
        )
    metric = settings.training.best_metric
    _one_of(f"{path}.best_metric", metric, ("bleu", "loss"))
    _rate(path, settings.training, "label_smoothing")
    form = settings.training.label_smoothing_form
    _one_of(f"{path}.label_smoothing_form", form, ("uniform", "others", "no_pad"))
    parts = settings.training.accumulate_steps
    if parts != "auto" and not (parts.isdecimal() and int(parts) > 0):
        raise ValueError(
            f"{path}.accumulate_steps must be auto or a positive number, got {parts!r}"
        )
    _at_least("config.optimizer", settings.optimizer, 1, "warmup_steps")
    _rate("config.optimizer", settings.optimizer, "beta1 beta2")
    for key in ("epsilon", "learning_rate_scale"):
        value = getattr(settings.optimizer, key)
        if not value > 0:
            raise ValueError(f"config.optimizer.{key} must be positive, got {value}")
    _at_least("config", settings, 0, "seed")
    for key, value, most in (
        ("config.seed", settings.seed, 2**63 - 1),
        (f"{path}.num_steps", settings.training.num_steps, 2**31 - 1),
        ("config.optimizer.warmup_steps", settings.optimizer.warmup_steps, 2**31 - 1),
    ):
        if value > most:
            raise ValueError(f"{key} must be at most {most}, got {value}")
    if settings.training.average_checkpoints > settings.training.keep_checkpoints:
        raise ValueError(
            f"{path}.average_checkpoints must be at most {path}.keep_checkpoints "
            f"({settings.training.keep_checkpoints}), got "
            f"{settings.training.average_checkpoints}"
        )
    check_positions(settings)


def check_positions(settings: config.Config) -> None:
    """Refuse a table of learned positions that ends before sentences do.

    Raises:
        ValueError: Names the values.
    """
    longest = max(
        settings.data.max_length,
        settings.search.min_tokens,
        settings.search.max_source_tokens + settings.search.max_extra_tokens,
    )
    model = settings.model
    if model.positional_encoding == "learned" and model.max_positions < longest:
        raise ValueError(
            f"config.model.max_positions must be at least {longest} (the longest of "
            "data.max_length, search.min_tokens and search.max_source_tokens + "
            "search.max_extra_tokens), "
            f"got {model.max_positions}"
        )
