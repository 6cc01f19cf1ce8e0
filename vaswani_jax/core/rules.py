"""What values a configuration may have, and which exclude each other."""

from vaswani_jax.core import checks, config, data_rules


def check(settings: config.Config) -> None:
    """Refuse what is out of range, and values that exclude each other.

    Raises:
        ValueError: The message has the key, the value and the rule.
    """
    _check_model(settings.model)
    data_rules.check(settings.data)
    check_fused_length(
        "config.data.max_length", settings.data.max_length, settings.model
    )
    if settings.data.batching == "packed":
        check_fused_length(
            "config.data.packed_length", settings.data.packed_length, settings.model
        )
    _check_search(settings.search)
    _check_training(settings)


def _check_model(model: config.ModelConfig) -> None:
    path = "config.model"
    counts = "num_layers d_model d_ff num_heads d_k d_v max_positions"
    checks.at_least(path, model, 1, counts)
    checks.rate(path, model, "dropout_rate attention_dropout_rate relu_dropout_rate")
    for key in ("init_scale", "layer_norm_epsilon"):
        if not getattr(model, key) > 0:
            value = getattr(model, key)
            raise ValueError(f"{path}.{key} must be positive, got {value}")
    checks.one_of(f"{path}.activation", model.activation, ("relu", "swish"))
    checks.one_of(
        f"{path}.layer_norm_position", model.layer_norm_position, ("post", "pre")
    )
    encodings = ("sinusoidal", "learned")
    checks.one_of(f"{path}.positional_encoding", model.positional_encoding, encodings)
    checks.one_of(f"{path}.dtype", model.dtype, ("float32", "bfloat16"))
    checks.one_of(f"{path}.attention", model.attention, ("xla", "cudnn"))
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


def _check_search(search: config.SearchConfig) -> None:
    path = "config.search"
    counts = "beam_size max_extra_tokens min_tokens source_tokens_per_batch"
    checks.at_least(path, search, 1, counts)
    checks.at_least(path, search, 2, "max_source_tokens")
    checks.at_least(path, search, 0, "max_tokens no_repeat_ngram top_k length_penalty")
    if search.max_tokens and search.max_tokens < search.min_tokens:
        raise ValueError(
            f"{path}.max_tokens must be 0 or at least {path}.min_tokens "
            f"({search.min_tokens}), got {search.max_tokens}"
        )
    forms = ("paper", "power")
    checks.one_of(f"{path}.length_penalty_form", search.length_penalty_form, forms)
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
    checks.at_least(path, settings.training, 1, counts)
    checks.at_least(
        path, settings.training, 0, "patience max_skipped_batches max_loss_rise r_drop"
    )
    rates = "dropout_rate", "attention_dropout_rate", "relu_dropout_rate"
    if settings.training.r_drop and not any(getattr(settings.model, r) for r in rates):
        raise ValueError(
            f"{path}.r_drop compares two draws of dropout and needs one of "
            f"config.model.{', '.join(rates)} above 0, got {settings.training.r_drop}"
        )
    metric = settings.training.best_metric
    checks.one_of(f"{path}.best_metric", metric, ("bleu", "loss"))
    checks.rate(path, settings.training, "label_smoothing")
    form = settings.training.label_smoothing_form
    checks.one_of(f"{path}.label_smoothing_form", form, ("uniform", "others", "no_pad"))
    parts = settings.training.accumulate_steps
    if parts != "auto" and not (parts.isdecimal() and int(parts) > 0):
        raise ValueError(
            f"{path}.accumulate_steps must be auto or a positive number, got {parts!r}"
        )
    checks.at_least("config.optimizer", settings.optimizer, 1, "warmup_steps")
    checks.rate("config.optimizer", settings.optimizer, "beta1 beta2")
    for key in ("epsilon", "learning_rate_scale"):
        value = getattr(settings.optimizer, key)
        if not value > 0:
            raise ValueError(f"config.optimizer.{key} must be positive, got {value}")
    checks.at_least("config", settings, 0, "seed")
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


def check_length(flag: str, length: int, model: config.ModelConfig) -> None:
    """Refuse more tokens than there are learned positions.

    Raises:
        ValueError: Names the flag.
    """
    if model.positional_encoding == "learned" and length > model.max_positions:
        raise ValueError(
            f"{flag} is longer than config.model.max_positions "
            f"({model.max_positions}) learned positions"
        )


def check_fused_length(key: str, length: int, model: config.ModelConfig) -> None:
    """Refuse a length that cuDNN's attention cannot have.

    Raises:
        ValueError: Names the key or the flag.
    """
    if model.attention == "cudnn" and length % 2:
        raise ValueError(
            f"config.model.attention=cudnn needs an even {key}, got {length}"
        )
