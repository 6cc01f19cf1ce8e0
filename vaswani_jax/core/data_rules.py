"""Check rules between the settings of data: what one needs, and what it excludes.

Each setting declares its range on its field in `core.data_config`. All functions raise
ValueError; the message has the key, the value and the rule.
"""

import re
from collections.abc import Collection, Iterator

from vaswani_jax.core import corpora, corpora_stages, languages, locales
from vaswani_jax.core.config import SETTINGS, DataConfig

# A language's code, alone or with a script or a country.
LOCALE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
# SentencePiece leaves out no more characters than the rest of this.
LEAST_COVERAGE = 0.98
# What a user symbol may not have, and may not be.
NOT_IN_SYMBOL = re.compile(r"[\s\u2581\0]")
# The settings that data.corpora replaces.
TRAINING_FILES = ("train_source", "train_target")
TREE_FILES = ("train_trees", "valid_trees", "test_trees", "silver_trees")
SPECIAL = re.compile(r"<pad>|<s>|</s>|<unk>|<0x[0-9A-F]{2}>")


def check(data: DataConfig) -> None:
    """Refuse settings of data that exclude each other."""
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
    mixed_corpora = data.training_corpora
    for key in ("stages", "epoch_pairs", "corpora_temperature"):
        value = getattr(data, key)
        if value != SETTINGS[f"data.{key}"].legacy and not mixed_corpora:
            raise ValueError(
                f"config.data.{key} needs config.data.corpora, got {value!r}"
            )
    if not mixed_corpora:
        return
    if data.source != "text":
        raise ValueError(
            f"config.data.corpora needs config.data.source=text, got {data.source!r}"
        )
    if data.corpora_temperature != 1 and mixed_corpora[0].weight is not None:
        raise ValueError(
            "config.data.corpora_temperature is for corpora without weights: leave "
            "their weights out, or set it to 1, got "
            f"{data.corpora_temperature}"
        )
    corpora_stages.check_stages(data.training_stages, mixed_corpora)
    corpora.check_tags(mixed_corpora, data.symbols)


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
    """Refuse a source of text whose settings are missing, useless or out of range."""
    if data.source.startswith("tfds:"):
        _check_tfds(data)
    for key in TREE_FILES if data.source != "treebank" else ():
        if value := getattr(data, key):
            raise ValueError(
                f"config.data.{key}={value} needs config.data.source=treebank, got "
                f"{data.source!r}"
            )
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
                f"with one, such as de, pt_BR or zh-Hans; got {locale!r}"
                f"{locales.suggest_language(locale)}"
            )


def check_training_files(data: DataConfig, keys: Collection[str]) -> None:
    """Refuse a training text that the user names although corpora replace it.

    Args:
        data: The settings, which may have names of files from a preset or a run.
        keys: The settings that the user has set, such as "data.train_source".
    """
    for name in TRAINING_FILES:
        value = getattr(data, name)
        if data.corpora and value and f"data.{name}" in keys:
            raise ValueError(
                f"config.data.{name}={value} is not read with config.data.corpora: add "
                "it as a corpus, or set --config.data.corpora="
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
            f"alone, such as de,fr; got {data.target_locale!r}"
        )
    tags = languages.locales_by_tag(data)
    if not set(tags) <= set(data.symbols):
        raise ValueError(
            f"config.data.target_locale={data.target_locale} needs the tags "
            f"{','.join(tags)} in config.data.user_symbols, got {data.user_symbols!r}"
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


def _check_at_least(data: DataConfig, key: str, *, minimum_key: str) -> None:
    tokens, minimum = getattr(data, key), getattr(data, minimum_key)
    if tokens < minimum:
        raise ValueError(
            f"config.data.{key} must be at least config.data.{minimum_key} "
            f"({minimum}), got {tokens}"
        )
