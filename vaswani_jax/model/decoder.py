"""Section 3.1: the decoder, a stack of N layers of three sub-layers."""

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import config
from vaswani_jax.model import attention, feed_forward, residual


class DecoderCache(flax.struct.PyTreeNode):
    """All that decoding one more position needs.

    `beams` has one `KeysValues` a layer, `[B * W, T, H, d]`, filled up to the current
    position and permuted by the search. `memory` has one a layer, `[B, S, H, d]`,
    projected once for all beams of a sentence.
    """

    beams: tuple[attention.KeysValues, ...]
    memory: tuple[attention.KeysValues, ...]
    memory_mask: Bool[Array, "B 1 1 S"]


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
        masks: tuple[Bool[Array, "#B 1 T T"], Bool[Array, "B 1 #T S"]],
        *,
        deterministic: bool,
    ) -> Float[Array, "B T d_model"]:
        """One layer's output for every target position at once.

        `masks` are those of the self-attention and of the memory.
        """
        self_mask, memory_mask = masks

        def attend_self(x: Array) -> Array:
            keys_values = self.self_attention.keys_values(x)
            return self.self_attention(
                x, keys_values, self_mask, deterministic=deterministic
            )

        x = self.self_attention_residual(x, attend_self, deterministic=deterministic)
        keys_values = self.memory_attention.keys_values(memory)
        return self._rest(x, keys_values, memory_mask, deterministic=deterministic)

    def _rest(
        self,
        x: Float[Array, "B Q d_model"],
        memory: attention.KeysValues,
        memory_mask: Bool[Array, "B 1 #Q S"],
        *,
        deterministic: bool,
    ) -> Float[Array, "B Q d_model"]:
        def attend_memory(x: Array) -> Array:
            return self.memory_attention(
                x, memory, memory_mask, deterministic=deterministic
            )

        def feed(x: Array) -> Array:
            return self.feed_forward(x, deterministic=deterministic)

        x = self.memory_attention_residual(
            x, attend_memory, deterministic=deterministic
        )
        return self.feed_forward_residual(x, feed, deterministic=deterministic)

    def start_cache(self, x: Float[Array, "B S d_model"]) -> attention.KeysValues:
        """The memory's keys and values for this layer."""
        return self.memory_attention.keys_values(x)

    def decode_step(
        self,
        x: Float[Array, "B W d_model"],
        beams: attention.KeysValues,
        memory: attention.KeysValues,
        memory_mask: Bool[Array, "B 1 1 S"],
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "B W d_model"], attention.KeysValues]:
        """The output at one position for W beams of each sentence, and the cache.

        The beams of a sentence are W queries of one attention over its memory, which
        therefore is not repeated for them.
        """
        B, W, d_model = x.shape
        T = beams.key.shape[1]
        grown = beams

        def attend_self(x: Array) -> Array:
            nonlocal grown
            rows = x.reshape(B * W, 1, d_model)
            latest = self.self_attention.keys_values(rows)
            grown = jax.tree.map(
                lambda all_, one: jax.lax.dynamic_update_slice_in_dim(
                    all_, one.astype(all_.dtype), position, axis=1
                ),
                beams,
                latest,
            )
            mask = (jnp.arange(T) <= position)[None, None, None, :]
            attended = self.self_attention(rows, grown, mask, deterministic=True)
            return attended.reshape(B, W, d_model)

        x = self.self_attention_residual(x, attend_self, deterministic=True)
        return self._rest(x, memory, memory_mask, deterministic=True), grown


class Decoder(nn.Module):
    """N layers; with "pre" normalisation one more LayerNorm at the top."""

    model: config.ModelConfig

    def setup(self) -> None:
        self.layers = [DecoderLayer(self.model) for _ in range(self.model.num_layers)]
        if self.model.layer_norm_position == "pre":
            self.final_norm = residual.layer_norm(self.model)

    def _top(self, x: Array) -> Array:
        return self.final_norm(x) if self.model.layer_norm_position == "pre" else x

    def __call__(
        self,
        x: Float[Array, "B T d_model"],
        memory: Float[Array, "B S d_model"],
        masks: tuple[Bool[Array, "#B 1 T T"], Bool[Array, "B 1 #T S"]],
        *,
        deterministic: bool,
    ) -> Float[Array, "B T d_model"]:
        """The stack's output for every target position at once."""

        def run(layer: DecoderLayer, x: Array) -> Array:
            return layer(x, memory, masks, deterministic=deterministic)

        if self.model.rematerialize:
            run = nn.remat(run)
        for layer in self.layers:
            x = run(layer, x)
        return self._top(x)

    def start_cache(
        self,
        memory: Float[Array, "B S d_model"],
        memory_mask: Bool[Array, "B 1 1 S"],
        *,
        beam_size: int,
        max_length: int,
    ) -> DecoderCache:
        """An empty cache for W beams of at most `max_length` positions."""
        model = self.model

        def empty(depth: int) -> Array:
            rows = memory.shape[0] * beam_size
            shape = (rows, max_length, model.num_heads, depth)
            return jnp.zeros(shape, jnp.dtype(model.dtype))

        return DecoderCache(
            beams=tuple(
                attention.KeysValues(key=empty(model.d_k), value=empty(model.d_v))
                for _ in self.layers
            ),
            memory=tuple(layer.start_cache(memory) for layer in self.layers),
            memory_mask=memory_mask,
        )

    def decode_step(
        self,
        x: Float[Array, "B W d_model"],
        cache: DecoderCache,
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "B W d_model"], DecoderCache]:
        """The stack's output at one position, and the grown cache."""
        beams = []
        for layer, own, memory in zip(
            self.layers, cache.beams, cache.memory, strict=True
        ):
            x, grown = layer.decode_step(x, own, memory, cache.memory_mask, position)
            beams.append(grown)
        return self._top(x), cache.replace(beams=tuple(beams))
