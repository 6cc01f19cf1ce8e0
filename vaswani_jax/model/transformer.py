"""Section 3: the whole model, from token ids to logits."""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import flax.linen as nn
import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, parallel, types
from vaswani_jax.model import (
    decoder,
    dropout,
    embeddings,
    encoder,
    masks,
    next_word,
    positional_encoding,
)


class Transformer(nn.Module):
    """Encoder and decoder (figure 1), with one embedding or one a vocabulary."""

    model: config.ModelConfig
    vocab_size: types.VocabSize

    def setup(self) -> None:
        model = self.model
        embed = functools.partial(
            embeddings.Embedding, d_model=model.d_model, dtype=jnp.dtype(model.dtype)
        )
        # Deviation: section 3.4 shares one embedding; with two vocabularies the
        # softmax shares the target's.
        if isinstance(self.vocab_size, types.VocabSizes):
            sizes = self.vocab_size
            self.source_embedding = embed(sizes.source, logits_bias=False)
            self.target_embedding = embed(sizes.target, logits_bias=model.logits_bias)
        else:
            self.embedding = embed(self.vocab_size, logits_bias=model.logits_bias)
        self.encoder = encoder.Encoder(model)
        self.decoder = decoder.Decoder(model)
        if model.deterministic_attention:
            self.next_word = next_word.NextWord(model, self._tree_ids())
        self.source_dropout = dropout.Dropout(model.dropout_rate)
        self.target_dropout = dropout.Dropout(model.dropout_rate)
        if model.positional_encoding == "learned":
            shape = (model.max_positions, model.d_model)
            self.source_positions = positional_encoding.LearnedPositions(*shape)
            self.target_positions = positional_encoding.LearnedPositions(*shape)

    def _tree_ids(self) -> types.TreeIds:
        """Return what the ids of words and symbols mean."""
        trees = getattr(self.vocab_size, "trees", None)
        if trees is None:
            raise ValueError(
                "config.model.deterministic_attention=True needs a vocabulary of tree "
                "symbols (config.data.source=treebank)"
            )
        return trees

    def _embedding(self, *, source: bool) -> embeddings.Embedding:
        """Return the embedding of one side; the target's gives the logits."""
        if not isinstance(self.vocab_size, types.VocabSizes):
            return self.embedding
        return self.source_embedding if source else self.target_embedding

    def _positions(
        self, positions: Int[Array, "*axes"], *, source: bool
    ) -> Float[Array, "*axes d_model"]:
        if self.model.positional_encoding == "learned":
            table = self.source_positions if source else self.target_positions
            return table(positions)
        d_model = self.model.d_model
        if parallel.on_cpu() or positions.ndim < 2:
            return positional_encoding.sinusoids(positions, d_model=d_model)
        # Packed rows repeat their positions; accelerators compute a sine of each once.
        every = jnp.arange(positions.shape[-1])
        encodings = positional_encoding.sinusoids(every, d_model=d_model)
        return jnp.take(encodings, positions, axis=0)

    def _embed(
        self,
        tokens: Int[Array, "B T"],
        segments: Int[Array | np.ndarray, "B T"] | None,
        *,
        source: bool,
        deterministic: bool,
    ) -> Float[Array, "B T d_model"]:
        index = jnp.arange(tokens.shape[1])
        if segments is not None:
            index = positional_encoding.within_segments(segments)
        embedding = self._embedding(source=source)
        x = embedding(tokens) + self._positions(index, source=source)
        drop = self.source_dropout if source else self.target_dropout
        x = drop(x, deterministic=deterministic)
        return x.astype(jnp.dtype(self.model.dtype))

    def encode(
        self,
        source: Int[Array, "B S"],
        segments: Int[Array | np.ndarray, "B S"] | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "B S d_model"]:
        """Return the memory of each source sentence."""
        x = self._embed(source, segments, source=True, deterministic=deterministic)
        if segments is None:
            mask = masks.padding_mask(source)
        else:
            mask = masks.segment_mask(segments, segments)
        return self.encoder(x, mask, deterministic=deterministic)

    def __call__(
        self,
        source: Int[Array, "B S"],
        target_in: Int[Array, "B T"],
        *,
        segments: types.Segments | None = None,
        deterministic: bool,
    ) -> Float[Array, "B T V"]:
        """Return float32 logits of the token after each position of `target_in`.

        With `segments` a row holds several pairs. Each is computed as if it had a row
        to itself: its positions start at 0 and attention stays inside the pair.
        """
        source_segments, target_segments = segments or (None, None)
        memory = self.encode(source, source_segments, deterministic=deterministic)
        x = self._embed(
            target_in, target_segments, source=False, deterministic=deterministic
        )
        if segments is None:
            self_mask = masks.padding_mask(target_in)
            memory_mask = masks.padding_mask(source)
        else:
            self_mask = masks.segment_mask(segments.target, segments.target)
            memory_mask = masks.segment_mask(segments.target, segments.source)
        self_mask = masks.causal_mask(target_in.shape[1]) & self_mask
        if self.model.deterministic_attention:
            words = self.next_word.states(source, memory)
            written = jnp.cumsum(self.next_word.is_word(target_in), axis=1)
            x = x + self.next_word(words, written)
        decoder_masks = (self_mask, memory_mask)
        x = self.decoder(x, memory, masks=decoder_masks, deterministic=deterministic)
        return self._embedding(source=False).logits(x)

    def start_cache(
        self, source: Int[Array, "B S"], *, beam_size: int, max_length: int
    ) -> decoder.DecoderCache:
        """Encode, project the memory once, and allocate the cache of the beams."""
        memory = self.encode(source, deterministic=True)
        cache = self.decoder.start_cache(
            memory,
            masks.padding_mask(source),
            beam_size=beam_size,
            max_length=max_length,
        )
        if not self.model.deterministic_attention:
            return cache
        written = jnp.zeros((source.shape[0], beam_size), jnp.int32)
        return cache.replace(
            beams=cache.beams.replace(words_written=written),
            words=self.next_word.states(source, memory),
        )

    def decode_step(
        self,
        tokens: Int[Array, "B W"],
        cache: decoder.DecoderCache,
        *,
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "B W V"], decoder.DecoderCache]:
        """Return logits of the token after `tokens` at `position`, and the cache."""
        embedding = self._embedding(source=False)
        x = embedding(tokens) + self._positions(position[None], source=False)
        x = x.astype(jnp.dtype(self.model.dtype))
        words, written = cache.words, cache.beams.words_written
        if words is not None and written is not None:
            written = written + self.next_word.is_word(tokens)
            cache = cache.replace(beams=cache.beams.replace(words_written=written))
            x = x + self.next_word(words, written)
        x, cache = self.decoder.decode_step(x, cache, position=position)
        return embedding.logits(x), cache


def logits_table_name(params: Mapping[str, Any]) -> str:
    """Return the name of the embedding whose table gives the logits."""
    return "embedding" if "embedding" in params else "target_embedding"


def num_logits(vocab_size: types.VocabSize) -> int:
    """Return how many logits `variables_for_decoding` gives: V, or more."""
    vocab_size = types.num_target_subwords(vocab_size)
    lanes = embeddings.LANES
    return vocab_size if parallel.on_cpu() else -(-vocab_size // lanes) * lanes


def variables_for_decoding(model: config.ModelConfig, params: Any) -> dict[str, Any]:
    """Return the variables with which a model decodes many positions.

    Accelerators get what they multiply with in the type of the products, and as many
    logits as fill their tiles: those after the vocabulary's are -inf.
    """
    if parallel.on_cpu():
        return {"params": params}
    dtype = jnp.dtype(model.dtype)
    flat = flax.traverse_util.flatten_dict(params)
    flat = {
        path: leaf.astype(dtype) if (*path[:-1], "kernel") in flat else leaf
        for path, leaf in flat.items()
    }
    name = logits_table_name(params)
    table = embeddings.table_for_products(
        params[name]["embedding"], dtype=dtype, multiple=embeddings.LANES
    )
    return {
        "params": flax.traverse_util.unflatten_dict(flat),
        embeddings.PRODUCTS: {name: {"embedding": table}},
    }


@functools.cache
def param_shapes(
    model: config.ModelConfig, vocab_size: types.VocabSize
) -> Mapping[str, tuple[int, ...]]:
    """Return the shape of every parameter by its path, "decoder/layers_0/...".

    Traces the model without computing anything.
    """
    tokens = jnp.ones((1, 2), jnp.int32)
    variables = jax.eval_shape(
        lambda key: Transformer(model, vocab_size).init(
            key, tokens, tokens, deterministic=True
        ),
        jax.random.key(0),
    )
    flat = flax.traverse_util.flatten_dict(variables["params"], sep="/")
    return MappingProxyType({path: leaf.shape for path, leaf in flat.items()})
