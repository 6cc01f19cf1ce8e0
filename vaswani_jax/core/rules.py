"""Check rules between settings: what one needs, and what it excludes.

Each setting declares its range on its field in `core.config`. All functions raise
ValueError; the message has the key, the value and the rule.
"""

import re
from collections.abc import Iterator

from vaswani_jax.core import corpora, corpora_stages, languages, locales, suggestions
from vaswani_jax.core.config import (
    SETTINGS,
    Config,
    DataConfig,
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

# A language's code, alone or with a script or a country.
LOCALE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
# SentencePiece leaves out no more characters than the rest of this.
LEAST_COVERAGE = 0.98
# What a user symbol may not have, and may not be.
NOT_IN_SYMBOL = re.compile(r"[\s\u2581\0]")
# The settings that data.corpora replaces.
TRAINING_FILES = ("train_source", "train_target")
SPECIAL = re.compile(r"<pad>|<s>|</s>|<unk>|<0x[0-9A-F]{2}>")


def check(settings: Config) -> None:
    """Refuse settings that exclude each other."""
    _check_model(settings.model)
    _check_data(settings.data)
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


def _check_data(data: DataConfig) -> None:
    _check_source(data)
    if (data.subword_samples > 1) != (data.subword_dropout > 0):
        raise ValueError(
            "config.data.subword_samples must be above 1 if and only if "
            "config.data.subword_dropout is above 0, "
            f"got {data.subword_samples} and {data.subword_dropout}"
        )
    if data.subword_dropout and data.subword_model != "bpe":
        raise ValueError(
            "config.data.subword_dropout needs config.data.subword_model=bpe, "
            f"got {data.subword_model!r}"
        )
    for split in ("valid", "test"):
        keys = f"{split}_source", f"{split}_target"
        names = [getattr(data, key) for key in keys]
        if bool(names[0]) != bool(names[1]):
            raise ValueError(
                f"config.data.{keys[0]} and config.data.{keys[1]} go together, got "
                f"{names[0]!r} and {names[1]!r}"
            )
    _check_vocabulary(data)
    _check_corpora(data)
    _check_cleaning(data)
    longest = "max_length"
    if data.bucket_lengths == "separate" and data.batching != "buckets":
        raise ValueError(
            "config.data.bucket_lengths=separate needs config.data.batching=buckets, "
            f"got {data.batching!r}"
        )
    if data.batching == "packed":
        _check_at_least(data, "packed_length", minimum_key=longest)
        longest = "packed_length"
    for side in ("source", "target"):
        _check_at_least(data, f"{side}_tokens_per_batch", minimum_key=longest)


def _check_corpora(data: DataConfig) -> None:
    """Refuse corpora of generated text, and settings of a mixture without corpora."""
    mixed = data.training_corpora
    for key in ("stages", "epoch_pairs", "corpora_temperature"):
        value = getattr(data, key)
        if value != SETTINGS[f"data.{key}"].legacy and not mixed:
            raise ValueError(
                f"config.data.{key} needs config.data.corpora, got {value!r}"
            )
    if not mixed:
        return
    if data.source != "text":
        raise ValueError(
            f"config.data.corpora needs config.data.source=text, got {data.source!r}"
        )
    if data.corpora_temperature != 1 and mixed[0].weight is not None:
        raise ValueError(
            "config.data.corpora_temperature is for corpora without weights: leave "
            "their weights out, or set it to 1, got "
            f"{data.corpora_temperature}"
        )
    corpora_stages.check_stages(data.training_stages, mixed)
    corpora.check_tags(mixed, data.symbols)


def _check_cleaning(data: DataConfig) -> None:
    """Refuse limits that no pair can keep, and rules for trees."""
    for key, setting in SETTINGS.items():
        if not key.startswith("data.clean_"):
            continue
        value = getattr(data, setting.name)
        if value == setting.legacy:
            continue
        if data.source == "treebank":
            raise ValueError(
                f"config.data.source=treebank needs config.{key}={setting.legacy}, "
                f"got {value}"
            )
        if setting.values and 0 < value < 1:
            raise ValueError(f"config.{key} must be {setting.values}, got {value}")


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
    required = {
        "config.data.vocabulary_sharing": (data.vocabulary_sharing, "separate"),
        "config.data.target_vocabulary": (data.target_vocabulary, ""),
        "config.data.target_vocab_size": (data.target_vocab_size, 0),
        "config.data.batching": (data.batching, "buckets"),
    }
    for key, (value, needed) in required.items():
        if value != needed:
            raise ValueError(
                f"config.data.source=treebank needs {key}={needed}, got {value!r}"
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
    for key, needed in {"no_repeat_ngram": 0, "min_tokens": 1, "max_tokens": 0}.items():
        value = getattr(search, key)
        if value != needed:
            raise ValueError(
                f"config.search.legal_trees=True needs config.search.{key}={needed}, "
                f"got {value}"
            )
    if search.max_extra_tokens < 2:  # The two brackets of the root.
        raise ValueError(
            "config.search.legal_trees=True needs config.search.max_extra_tokens of at "
            f"least 2, got {search.max_extra_tokens}"
        )


def _check_vocabulary(data: DataConfig) -> None:
    for key in ("target_vocabulary", "target_vocab_size"):
        if getattr(data, key) and data.vocabulary_sharing == "shared":
            raise ValueError(
                f"config.data.{key}={getattr(data, key)!r} needs "
                "config.data.vocabulary_sharing=separate, got 'shared'"
            )
    if 0 < data.target_vocab_size < 5:
        raise ValueError(
            "config.data.target_vocab_size must be 0, or at least 5, got "
            f"{data.target_vocab_size}"
        )
    if 0 < data.character_coverage < LEAST_COVERAGE:
        raise ValueError(
            "config.data.character_coverage must be 0, or from "
            f"{LEAST_COVERAGE} to 1, got {data.character_coverage}"
        )
    symbols = data.user_symbols.split(",") if data.user_symbols else []
    for symbol in symbols:
        if not symbol or NOT_IN_SYMBOL.search(symbol) or SPECIAL.fullmatch(symbol):
            raise ValueError(
                "config.data.user_symbols must be symbols without white space, "
                "separated by commas, and none that SentencePiece uses itself (<pad>, "
                f"<s>, </s>, <unk>, <0x41>, \u2581), got {symbol!r}"
            )
        if symbols.count(symbol) > 1:
            raise ValueError(f"config.data.user_symbols has {symbol!r} twice")


def _check_source(data: DataConfig) -> None:
    """Refuse a source of text whose settings are missing or out of range."""
    if data.source.startswith("tfds:"):
        _check_tfds(data)
    for setting in SETTINGS.values():
        is_read = data.source in (setting.for_source or (data.source,))
        # The corpora replace the two files of training text.
        is_read &= not (data.corpora and setting.name in TRAINING_FILES)
        if setting.range_depends_on_source and is_read:
            setting.check_range(getattr(data, setting.name))
    _check_target_locales(data)
    for key, locale in _locales_of_text(data):
        # Scores choose their tokeniser by the language's code.
        if not LOCALE.fullmatch(locale):
            raise ValueError(
                f"config.data.{key} must be a code of two or three letters, or begin "
                f"with one, as de, pt_BR or zh-Hans; got {locale!r}"
                f"{locales.suggest_language(locale)}"
            )


def check_languages(data: DataConfig) -> None:
    """Refuse a locale of text files that begins with no language's code.

    Checked before data is prepared: runs that have begun keep their locales.
    """
    for key, locale in _locales_of_text(data):
        locales.check_language(locale, name=f"config.data.{key}")


def _locales_of_text(data: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield the setting and each locale of text files; none of other text."""
    if data.source == "text":
        yield "source_locale", data.source_locale
        for locale in languages.target_locales(data):
            yield "target_locale", locale


def _check_target_locales(data: DataConfig) -> None:
    """Refuse several target locales where no line would have the tag of its own."""
    target_locales = languages.target_locales(data)
    if len(target_locales) == 1:
        return
    if data.source not in ("cldr", "text"):
        raise ValueError(
            "config.data.target_locale may list several locales if config.data.source "
            f"is cldr or text, got {data.target_locale!r} with {data.source!r}"
        )
    are_codes = all(map(LOCALE.fullmatch, target_locales))
    if len(set(target_locales)) < len(target_locales) or not are_codes:
        raise ValueError(
            "config.data.target_locale must be different locales, separated by commas "
            f"alone, as de,fr; got {data.target_locale!r}"
        )
    tags = languages.locales_by_tag(data)
    if not set(tags) <= set(data.symbols):
        raise ValueError(
            f"config.data.target_locale={data.target_locale} needs its tags among "
            f"config.data.user_symbols, as {','.join(tags)}; got {data.user_symbols!r}"
        )
    for key in ("num_valid", "num_test") if data.source == "cldr" else ():
        # Each language counts as much as another in what is scored.
        number = getattr(data, key)
        if number % len(target_locales):
            raise ValueError(
                f"config.data.{key} must be a multiple of the {len(target_locales)} "
                f"locales of config.data.target_locale={data.target_locale}, got "
                f"{number}"
            )


def _check_tfds(data: DataConfig) -> None:
    """Refuse languages that are not the two of the dataset, in either direction."""
    languages = re.fullmatch(r"tfds:\w+/(\w+)-(\w+)(:[\w.]+)?", data.source)
    if not languages:
        raise ValueError(
            "config.data.source must be like tfds:wmt14_translate/de-en, got "
            f"{data.source!r}"
        )
    if {data.source_locale, data.target_locale} != {languages[1], languages[2]}:
        raise ValueError(
            "config.data.source_locale and config.data.target_locale must be the two "
            f"languages of {data.source}, in the direction of the translation, got "
            f"{data.source_locale!r} and {data.target_locale!r}"
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


def _check_at_least(data: DataConfig, key: str, *, minimum_key: str) -> None:
    tokens, minimum = getattr(data, key), getattr(data, minimum_key)
    if tokens < minimum:
        raise ValueError(
            f"config.data.{key} must be at least config.data.{minimum_key} "
            f"({minimum}), got {tokens}"
        )


def check_positions(settings: Config) -> None:
    """Refuse fewer learned positions than the longest sentence needs."""
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


def check_length(name: str, length: int, *, model: ModelConfig) -> None:
    """Refuse more tokens than there are learned positions.

    Args:
        name: The flag or the setting, for the message.
        length: Its value in tokens.
        model: The settings of the model.
    """
    if model.positional_encoding == "learned" and length > model.max_positions:
        raise ValueError(
            f"{name} is longer than config.model.max_positions "
            f"({model.max_positions}) learned positions"
        )


def check_fused_length(name: str, length: int, *, model: ModelConfig) -> None:
    """Refuse an odd length, which cuDNN's fused attention cannot compute.

    The arguments are those of `check_length`.
    """
    if model.attention == "cudnn" and length % 2:
        raise ValueError(
            f"config.model.attention=cudnn needs an even {name}, got {length}"
        )
