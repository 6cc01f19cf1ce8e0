"""Generate pairs in small numbers, from all phrases or from few."""

import dataclasses
import itertools

from configs import demo
from vaswani_jax.core import parsing
from vaswani_jax.data.cldr import pairs, phrases

ALL_PHRASES = phrases.all_phrases


def generate(
    source_locale="en",
    target_locale="de",
    *,
    num_train=3000,
    num_valid=100,
    num_test=200,
    seed=3,
):
    data = dataclasses.replace(
        parsing.parse(demo.get_config()).data,
        source_locale=source_locale,
        target_locale=target_locale,
        num_train=num_train,
        num_valid=num_valid,
        num_test=num_test,
    )
    return pairs.cldr_pairs(data, seed=seed)


def every_seventh_phrase(rng):
    """To write all phrases in two locales takes seconds."""
    return itertools.islice(ALL_PHRASES(rng), 0, None, 7)


def months_only(rng):
    return (phrase for phrase in ALL_PHRASES(rng) if phrase.kind == "month")


def all_pairs(splits):
    return [pair for pairs in splits.values() for pair in pairs]
