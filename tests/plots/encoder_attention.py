"""Attention over a sentence of words that have several subwords."""

import numpy as np

from vaswani_jax.inference.results import Attention
from vaswani_jax.plots import attention_layer
from vaswani_jax.plots.attention_layer import Layer

N, H = 3, 4
SOURCE = ("▁The", "▁L", "aw", ",", "▁its", "▁app", "li", "cation", ".", "</s>")
WORDS = ("The", "Law", ",", "its", "application", ".", "</s>")


def make_attention(*, source: tuple[str, ...] = SOURCE) -> Attention:
    """Return weights all of which differ; no head or layer is like another."""
    S = len(source)
    weights = np.random.default_rng(0).dirichlet(np.ones(S), (N, H, S))
    return Attention(
        source=source,
        target_in=("<s>",),
        target_out=("</s>",),
        encoder=weights,
        decoder=weights[..., :1, :1],
        memory=weights[..., :1, :],
    )


def read(layer: int, *, by_word: bool = True) -> Layer:
    """Return a layer of them, the lowest being 0."""
    return attention_layer.read_layer(make_attention(), layer, by_word=by_word)
