"""Section 3.1: the decoder, a stack of N layers of three sub-layers."""

import functools
from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import compilation, config, parallel
from vaswani_jax.model import (
    attention,
    feed_forward,
    next_word,
    rematerialize,
    residual,
)


class BeamCache(flax.struct.PyTreeNode):
    """Keys and values of W beams, and the ancestors of each hypothesis.

    `layers` holds the W keys and values computed at each of T positions; they never
    move. `ancestors` holds, for each hypothesis and position, the beam whose keys and
    values belong to it. Reordering hypotheses moves only these integers.
    """

    layers: tuple[attention.CachedHeads, ...]  # K = T * W
    ancestors: Int[Array, "B W T"]
    words_written: Int[Array, "B W"] | None = None

    def reorder(self, origin: Int[Array, "B W"]) -> "BeamCache":
        """Return the cache after each hypothesis continues that of beam `origin`."""
        ancestors = jnp.take_along_axis(self.ancestors, origin[:, :, None], axis=1)
        written = self.words_written
        if written is not None:
            written = jnp.take_along_axis(written, origin, axis=1)
        return self.replace(ancestors=ancestors, words_written=written)

    def resize(self, length: int) -> "BeamCache":
        """Return the same cache with room for `length` positions, at least T."""
        _, W, T = self.ancestors.shape
        widths = [(0, 0), (0, 0), (0, length - T)]
        return self.replace(
            layers=tuple(layer.pad((length - T) * W) for layer in self.layers),
            ancestors=jnp.pad(self.ancestors, widths),
        )


class DecoderCache(flax.struct.PyTreeNode):
    """All that decoding the next position needs.

    `memory` holds each layer's keys and values of the memory, projected once for all
    beams of a sentence.
    """

    beams: BeamCache
    memory: tuple[attention.CachedHeads, ...]
    memory_mask: Bool[Array, "B 1 1 S"]
    words: next_word.WordStates | None = None


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the memory, feed-forward network."""

    model: config.ModelConfig

    def setup(self) -> None:
        model = self.model
        self.self_attention = attention.MultiHeadAttention(model)
        self.self_attention_residual = residual.Residual(model)
        self.memory_attention = attention.MultiHeadAttention(model)
        self.memory_attention_residual = residual.Residual(model)
        self.feed_forward = feed_forward.FeedForward(model)
        self.feed_forward_residual = residual.Residual(model)

    def __call__(
        self,
        x: Float[Array, "B T d_model"],
        memory: Float[Array, "B S d_model"],
        *,
        masks: tuple[Bool[Array, "#B 1 T T"], Bool[Array, "B 1 #T S"]],
        deterministic: bool,
    ) -> Float[Array, "B T d_model"]:
        """Return the layer's output for every target position at once.

        Args:
            x: The layer's input.
            memory: What the encoder hands over.
            masks: For self-attention and for memory attention.
            deterministic: Whether dropout is off.
        """
        self_mask, memory_mask = masks

        def attend_self(x: Array) -> Array:
            keys_values = self.self_attention.keys_values(x)
            return self.self_attention(
                x, keys_values, mask=self_mask, deterministic=deterministic
            )

        x = self.self_attention_residual(x, attend_self, deterministic=deterministic)
        keys_values = self.memory_attention.keys_values(memory)

        def attend_memory(x: Array) -> Array:
            return self.memory_attention(
                x, keys_values, mask=memory_mask, deterministic=deterministic
            )

        x = self.memory_attention_residual(
            x, attend_memory, deterministic=deterministic
        )
        return self._feed(x, deterministic=deterministic)

    def _feed(self, x: Array, *, deterministic: bool) -> Array:
        def feed(x: Array) -> Array:
            return self.feed_forward(x, deterministic=deterministic)

        return self.feed_forward_residual(x, feed, deterministic=deterministic)

    def start_cache(self, memory: Float[Array, "B S d_model"]) -> attention.CachedHeads:
        """Project the memory to this layer's keys and values."""
        keys_values = self.memory_attention.keys_values(memory)
        return attention.CachedHeads.lay_out(keys_values)

    def decode_step(
        self,
        x: Float[Array, "*rows d_model"],
        *,
        self_cache: attention.CachedHeads,
        memory: attention.CachedHeads,
        masks: tuple[Bool[Array, "B 1 W TW"], Bool[Array, "B 1 1 S"]],
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "*rows d_model"], attention.CachedHeads]:
        """Return the output at one position for W beams, and the extended cache.

        The beams of a sentence are W queries of one attention over its memory, and of
        one attention over all keys that its beams have computed so far.
        """
        B, _, W, _ = masks[0].shape
        new_self_cache = self_cache

        def attend_self(x: Array) -> Array:
            nonlocal new_self_cache
            latest = jax.tree.map(
                lambda leaf: leaf.reshape(B, W, *leaf.shape[-2:]),
                self.self_attention.keys_values(x),
            )
            new_self_cache = self_cache.write(latest, position)
            return self.self_attention.attend_cached(x, new_self_cache, mask=masks[0])

        def attend_memory(x: Array) -> Array:
            return self.memory_attention.attend_cached(x, memory, mask=masks[1])

        x = self.self_attention_residual(x, attend_self, deterministic=True)
        x = self.memory_attention_residual(x, attend_memory, deterministic=True)
        return self._feed(x, deterministic=True), new_self_cache


class Decoder(nn.Module):
    """N layers; "pre" normalisation adds a LayerNorm at the top."""

    model: config.ModelConfig

    def setup(self) -> None:
        depth = self.model.decoder_layers
        self.layers = [DecoderLayer(self.model) for _ in range(depth)]
        if self.model.layer_norm_position == "pre":
            self.final_norm = residual.layer_norm(self.model)

    def _apply_final_norm(self, x: Array) -> Array:
        return self.final_norm(x) if self.model.layer_norm_position == "pre" else x

    def __call__(
        self,
        x: Float[Array, "B T d_model"],
        memory: Float[Array, "B S d_model"],
        *,
        masks: tuple[Bool[Array, "#B 1 T T"], Bool[Array, "B 1 #T S"]],
        deterministic: bool,
    ) -> Float[Array, "B T d_model"]:
        """Return the stack's output for every target position at once."""

        def run(layer: DecoderLayer, x: Array, memory: Array, masks: Any) -> Array:
            return layer(x, memory, masks=masks, deterministic=deterministic)

        for layer in self.layers:
            if self.model.rematerialize:
                x = rematerialize.call(run, layer, x, memory, masks)
            else:
                x = run(layer, x, memory, masks)
        return self._apply_final_norm(x)

    def start_cache(
        self,
        memory: Float[Array, "B S d_model"],
        memory_mask: Bool[Array, "B 1 1 S"],
        *,
        beam_size: int,
        max_length: int,
    ) -> DecoderCache:
        """Return an empty cache for W beams of at most `max_length` positions."""
        model, B = self.model, memory.shape[0]
        empty = attention.CachedHeads.zeros(model, B=B, K=max_length * beam_size)
        return DecoderCache(
            beams=BeamCache(
                layers=(empty,) * model.decoder_layers,
                ancestors=jnp.zeros((B, beam_size, max_length), jnp.int32),
            ),
            memory=tuple(layer.start_cache(memory) for layer in self.layers),
            memory_mask=memory_mask,
        )

    def decode_step(
        self,
        x: Float[Array, "B W d_model"],
        cache: DecoderCache,
        *,
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "B W d_model"], DecoderCache]:
        """Return the stack's output at one position, and the extended cache."""
        B, W, _ = x.shape
        T = cache.beams.ancestors.shape[2]
        beam_index = jnp.arange(W)[None, :, None]
        is_current = jnp.arange(T) == position
        ancestors = jnp.where(is_current, beam_index, cache.beams.ancestors)
        # Of the W keys at each position, a hypothesis sees only its ancestor's.
        is_ancestor = ancestors[..., None] == jnp.arange(W)
        mask = is_ancestor & (jnp.arange(T) <= position)[:, None]
        masks = (mask.reshape(B, 1, W, T * W), cache.memory_mask)
        layers = []
        if parallel.on_tpu():
            # Eight rows fill a tile of memory, a few beams do not.
            x = x.reshape(B * W, -1)
        for layer, self_cache, memory in zip(
            self.layers, cache.beams.layers, cache.memory, strict=True
        ):
            x, self_cache = _decode_step(
                layer.variables,
                x,
                self_cache,
                memory,
                masks,
                position,
                model=self.model,
            )
            layers.append(self_cache)
        beams = cache.beams.replace(layers=tuple(layers), ancestors=ancestors)
        x = self._apply_final_norm(x).reshape(B, W, -1)
        return x, cache.replace(beams=beams)


@functools.partial(compilation.traced_once, static=["model"])
def _decode_step(
    variables: Any,
    x: Float[Array, "*rows d_model"],
    self_cache: attention.CachedHeads,
    memory: attention.CachedHeads,
    masks: tuple[Bool[Array, "B 1 W TW"], Bool[Array, "B 1 1 S"]],
    position: Int[Array, ""],
    *,
    model: config.ModelConfig,
) -> tuple[Float[Array, "*rows d_model"], attention.CachedHeads]:
    """Return what `DecoderLayer.decode_step` does, traced once for all layers."""
    layer = DecoderLayer(model, parent=None)
    output: Any = layer.apply(
        variables,
        x,
        self_cache=self_cache,
        memory=memory,
        masks=masks,
        position=position,
        method="decode_step",
    )
    x, self_cache = output
    return x, self_cache
