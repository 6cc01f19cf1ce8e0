"""Translators of models that have learned nothing, and the ids of their lines."""

from typing import Any

import numpy as np

from tests import settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import types
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator

LINES = ["a b c", "", "d e f g", "h a a"]
# A search compiles one loop for its first 16 tokens, and more for longer outputs.
ONE_LOOP = {"search.max_tokens": 16}
# Where layers could be taken for one another; elsewhere one layer is enough.
TWO_LAYERS = {"model.num_layers": 2}


def learn_vocabulary() -> Vocabulary:
    """Return the subwords of eight letters."""
    data = settings.small_settings(**{"data.vocab_size": 20}).data
    return settings.learn_vocabulary(["a b c d e f g h", "c d a b h g e f"] * 20, data)


def make_translator(
    vocabulary: Vocabulary, *, seeds: tuple[int, ...] = (1,), **overrides: Any
) -> Translator:
    small = settings.small_settings(**{**ONE_LOOP, **overrides})
    members = []
    for seed in seeds:
        params = settings.random_params(
            small.model, vocab_size=vocabulary.size, seed=seed
        )
        members.append(Member(small.model, Checkpoint(0, {"params": params}, {})))
    return Translator(small, vocabulary, members=members)


def make_parser() -> Translator:
    """Return an ensemble of two models of trees."""
    data = settings.small_settings(**{"data.vocab_size": 20}).data
    words = WordSubwords(learn_subwords(["a b c d e f g h"] * 20, data).model)
    symbols = TreeSymbols.learn(["(S (NP (DT a) (NN b)) (VP (V c)))"], terminals="tag")
    vocabulary = Vocabulary(words, symbols, is_shared=False)
    return make_translator(vocabulary, seeds=(1, 2), **{"search.max_tokens": 12})


def ids_of(
    translator: Translator, line: str, target: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    [source] = translator.vocabulary.encode([line])
    [output] = translator.vocabulary.encode([target])
    return (
        np.array([*source, types.EOS_ID]),
        np.array([types.BOS_ID, *output]),
        np.array([*output, types.EOS_ID]),
    )


def names(translator: Translator, ids: np.ndarray) -> tuple[str, ...]:
    return tuple(translator.vocabulary.target.subword(int(token)) for token in ids)
