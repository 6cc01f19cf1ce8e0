"""Check rules between settings: what one needs, and what it excludes.

Those between the settings of data stand in `data_rules`.

Each setting declares its range on its field in `core.config`. All functions raise
ValueError; the message has the key, the value and the rule.
"""

from vaswani_jax.core import data_rules, suggestions
from vaswani_jax.core.config import (
    SETTINGS,
    Config,
    ModelConfig,
    SearchConfig,
    flatten,
    to_dict,
)
from vaswani_jax.core.training_config import (
    LOGGERS,
    OptimizerConfig,
    TrainingConfig,
    names_of_loggers,
)


def check(settings: Config) -> None:
    """Refuse settings that exclude each other."""
    _check_model(settings.model)
    data_rules.check(settings.data)
    _check_trees(settings)
    _check_fused_lengths(settings)
    _check_search(settings.search)
    _check_needs(settings)
    _check_training(settings.training)
    _check_schedule(settings.optimizer, num_steps=settings.training.num_steps)
    check_positions(settings)
    _check_patience(settings)


def _check_patience(settings: Config) -> None:
    data, patience = settings.data, settings.training.patience
    names = {
        "text": ("valid_source", "valid_target"),
        "treebank": ("valid_trees",),
    }.get(data.source)
    if patience and names and not getattr(data, names[0]):
        keys = " and ".join(f"config.data.{name}" for name in names)
        raise ValueError(
            f"config.training.patience={patience} needs a validation set: name {keys}, "
            "or set config.training.patience=0"
        )


def _check_model(model: ModelConfig) -> None:
    if model.positional_encoding == "sinusoidal" and model.d_model % 2:
        raise ValueError(
            f"config.model.d_model must be a multiple of 2, got {model.d_model}"
        )
    if model.attention != "cudnn":
        return
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


def _check_fused_lengths(settings: Config) -> None:
    keys = ["max_length"]
    if settings.data.batching == "packed":
        keys.append("packed_length")
    for key in keys:
        length = getattr(settings.data, key)
        check_fused_length(f"config.data.{key}", length, model=settings.model)


def _check_trees(settings: Config) -> None:
    """Refuse what parsing excludes, and settings of parsing without a treebank."""
    data, model, training = settings.data, settings.model, settings.training
    is_treebank = data.source == "treebank"
    if model.deterministic_attention and not is_treebank:
        raise ValueError(
            "config.model.deterministic_attention=True needs "
            f"config.data.source=treebank, got {data.source!r}"
        )
    if (training.best_metric == "f1") and not is_treebank:
        raise ValueError(
            "config.training.best_metric=f1 needs config.data.source=treebank, got "
            f"{data.source!r}"
        )
    if not is_treebank:
        return
    required_values = {
        "config.data.vocabulary_sharing": (data.vocabulary_sharing, "separate"),
        "config.data.target_vocabulary": (data.target_vocabulary, ""),
        "config.data.target_vocab_size": (data.target_vocab_size, 0),
        "config.data.batching": (data.batching, "buckets"),
    }
    for key, (value, required_value) in required_values.items():
        if value != required_value:
            raise ValueError(
                f"config.data.source=treebank needs {key}={required_value}, "
                f"got {value!r}"
            )
    if training.best_metric == "bleu":
        raise ValueError(
            "config.data.source=treebank needs config.training.best_metric=f1 or loss, "
            "got 'bleu'"
        )
    if settings.search.legal_trees:
        _check_legal_trees(settings.search)


def _check_legal_trees(search: SearchConfig) -> None:
    """Refuse limits that leave no room for a tree, or no symbol to go on with."""
    for key, required_value in {
        "no_repeat_ngram": 0,
        "min_tokens": 1,
        "max_tokens": 0,
    }.items():
        value = getattr(search, key)
        if value != required_value:
            raise ValueError(
                "config.search.legal_trees=True needs "
                f"config.search.{key}={required_value}, got {value}"
            )
    if search.max_extra_tokens < 2:  # The two brackets of the root.
        raise ValueError(
            "config.search.legal_trees=True needs config.search.max_extra_tokens of at "
            f"least 2, got {search.max_extra_tokens}"
        )


def _check_search(search: SearchConfig) -> None:
    if search.max_tokens and search.max_tokens < search.min_tokens:
        raise ValueError(
            "config.search.max_tokens must be 0 or at least config.search.min_tokens "
            f"({search.min_tokens}), got {search.max_tokens}"
        )


def _check_needs(settings: Config) -> None:
    values = flatten(to_dict(settings))
    for key, setting in SETTINGS.items():
        is_free = not setting.needs or any(values[need] for need in setting.needs)
        if is_free or values[key] == setting.legacy:
            continue
        needs = [f"config.{need}" for need in setting.needs]
        if len(needs) == 1:
            raise ValueError(f"config.{key}={values[key]} needs {needs[0]}=True")
        raise ValueError(
            f"config.{key} needs one of {', '.join(needs)} above 0, got {values[key]}"
        )


def _check_training(training: TrainingConfig) -> None:
    key = "training.accumulate_steps"
    parts = training.accumulate_steps
    if parts != "auto" and not (parts.isdecimal() and int(parts) > 0):
        raise ValueError(f"config.{key} must be {SETTINGS[key].range}, got {parts!r}")
    names = names_of_loggers(training)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"config.training.loggers has {name!r} twice")
        if name not in LOGGERS:
            rule = SETTINGS["training.loggers"].range
            hint = suggestions.suggest(name, LOGGERS)
            raise ValueError(
                f"config.training.loggers must be {rule}; got {training.loggers!r}"
                f"{hint}"
            )
    if training.average_checkpoints > training.keep_checkpoints:
        raise ValueError(
            "config.training.average_checkpoints must be at most "
            f"config.training.keep_checkpoints ({training.keep_checkpoints}), got "
            f"{training.average_checkpoints}"
        )


def _check_schedule(optimizer: OptimizerConfig, *, num_steps: int) -> None:
    """Refuse a learning rate that the schedule does not read, and a missing one."""
    schedule, rate = optimizer.schedule, optimizer.learning_rate
    if schedule == "paper":
        if rate:
            raise ValueError(
                "config.optimizer.learning_rate must be 0 with "
                "config.optimizer.schedule=paper (learning_rate_scale changes equation "
                f"3's), got {rate}"
            )
        return
    if not rate:
        raise ValueError(
            f"config.optimizer.schedule={schedule} needs config.optimizer.learning_rate"
            f" above 0, got {rate}"
        )
    if optimizer.learning_rate_scale != 1:
        raise ValueError(
            "config.optimizer.learning_rate_scale is a factor of equation 3: "
            f"config.optimizer.schedule={schedule} needs it to be 1, got "
            f"{optimizer.learning_rate_scale}"
        )
    if schedule in ("linear", "cosine") and optimizer.warmup_steps >= num_steps:
        raise ValueError(
            f"config.optimizer.schedule={schedule} needs config.optimizer.warmup_steps "
            f"below config.training.num_steps ({num_steps}), got "
            f"{optimizer.warmup_steps}"
        )


def check_positions(settings: Config) -> None:
    """Refuse fewer learned positions than the longest sentence needs."""
    longest = max(
        settings.data.max_length,
        settings.search.min_tokens,
        settings.search.max_target_tokens,
    )
    limit = settings.model.position_limit
    if limit is not None and limit < longest:
        raise ValueError(
            f"config.model.max_positions must be at least {longest} (the longest of "
            "data.max_length, search.min_tokens and search.max_source_tokens + "
            "search.max_extra_tokens), "
            f"got {limit}"
        )


def check_length(name: str, length: int, *, model: ModelConfig) -> None:
    """Refuse more tokens than there are learned positions.

    Args:
        name: The flag or the setting, for the message.
        length: Its value in tokens.
        model: The settings of the model.
    """
    limit = model.position_limit
    if limit is not None and length > limit:
        raise ValueError(
            f"{name} is longer than config.model.max_positions "
            f"({limit}) learned positions"
        )


def check_fused_length(name: str, length: int, *, model: ModelConfig) -> None:
    """Refuse an odd length, which cuDNN's fused attention cannot compute.

    The arguments are those of `check_length`.
    """
    if model.attention == "cudnn" and length % 2:
        raise ValueError(
            f"config.model.attention=cudnn needs an even {name}, got {length}"
        )
