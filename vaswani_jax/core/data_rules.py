"""What values a configuration of data may have: text, languages, batches."""

import re

from vaswani_jax.core import checks, config

# A language's code, with a script or a country or without.
LOCALE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")


def check(data: config.DataConfig) -> None:
    """Refuse what is out of range, and values that exclude each other.

    Raises:
        ValueError: The message has the key, the value and the rule.
    """
    path = "config.data"
    if data.source.startswith("tfds:"):
        _check_tfds(data)
    else:
        sources = ("text", "cldr", "copy", "reverse", "tfds:DATASET/PAIR")
        checks.one_of(f"{path}.source", data.source, sources)
    checks.one_of(f"{path}.batching", data.batching, ("buckets", "packed"))
    checks.one_of(f"{path}.subword_model", data.subword_model, ("bpe", "unigram"))
    checks.one_of(f"{path}.text_form", data.text_form, ("detokenized", "tokenized"))
    checks.at_least(path, data, 2, "max_length")
    checks.rate(path, data, "subword_dropout")
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
    checks.one_of(f"{path}.normalization", data.normalization, rules)
    counts = "sentencepiece_sample_size num_buckets subword_samples"
    checks.at_least(path, data, 1, counts)
    # The marks and a subword.
    checks.at_least(path, data, 5, "vocab_size")
    if data.source == "text":
        keys = "text_directory train_source train_target valid_source valid_target"
    else:
        keys = ""
        if not data.source.startswith("tfds:"):
            checks.at_least(path, data, 1, "num_train num_valid num_test")
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
        checks.at_least_other(path, data, "packed_length", longest)
        longest = "packed_length"
    for side in ("source", "target"):
        checks.at_least_other(path, data, f"{side}_tokens_per_batch", longest)


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
