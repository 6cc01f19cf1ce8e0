"""Pairs generated in small numbers."""

from vaswani_jax.data.cldr import locale_phrases, phrase_pairs

ALL_PHRASES = locale_phrases.all_phrases


def make_pairs(
    source_locale="en",
    target_locale="de",
    *,
    num_train=3000,
    num_valid=100,
    num_test=200,
    seed=3,
):
    return phrase_pairs.cldr_pairs(
        source_locale=source_locale,
        target_locale=target_locale,
        num_train=num_train,
        num_valid=num_valid,
        num_test=num_test,
        seed=seed,
    )


def months_only(rng):
    return (phrase for phrase in ALL_PHRASES(rng) if phrase.kind == "month")


def all_pairs(splits):
    return [pair for pairs in splits.values() for pair in pairs]
