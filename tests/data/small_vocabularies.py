"""Vocabularies of a few syllables."""

import functools
import random

from tests import settings
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords

SYLLABLES = "ba ko ri tu sen mal do fi gra lo pe zu ä ßt".split()
# With 256 bytes, 4 special ids and the letters, or without the bytes.
SIZES = {True: 310, False: 50}


@functools.cache
def training_lines(seed):
    generator = random.Random(seed)
    words = ["".join(generator.choices(SYLLABLES, k=k)) for k in (1, 2, 3) * 25]
    return [" ".join(generator.choices(words, k=6)) for _ in range(150)]


def data_settings(subword_model, byte_fallback, **overrides):
    values = {
        "data.subword_model": subword_model,
        "data.byte_fallback": byte_fallback,
        "data.vocab_size": SIZES[byte_fallback],
        "data.normalization": "identity",
    }
    return settings.small_settings(**(values | overrides)).data


@functools.cache
def trained(subword_model, byte_fallback, *, normalization="identity", seed=1):
    data = data_settings(
        subword_model, byte_fallback, **{"data.normalization": normalization}
    )
    return Vocabulary.shared(learn_subwords(training_lines(seed), data))
