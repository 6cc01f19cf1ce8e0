"""Section 3.1: the encoder, a stack of N layers of two sub-layers."""

import flax.linen as nn
from jaxtyping import Array, Bool, Float

from vaswani_jax.core import config
from vaswani_jax.model import attention, feed_forward, rematerialize, residual


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    model: config.ModelConfig

    def setup(self) -> None:
        model = self.model
        self.self_attention = attention.MultiHeadAttention(model)
        self.self_attention_residual = residual.Residual(model)
        self.feed_forward = feed_forward.FeedForward(model)
        self.feed_forward_residual = residual.Residual(model)

    def __call__(
        self,
        x: Float[Array, "B S d_model"],
        mask: Bool[Array, "B 1 #S S"],
        *,
        deterministic: bool,
    ) -> Float[Array, "B S d_model"]:
        """Return the layer's output for every source position."""

        def attend(x: Array) -> Array:
            keys_values = self.self_attention.keys_values(x)
            return self.self_attention(
                x, keys_values, mask=mask, deterministic=deterministic
            )

        def feed(x: Array) -> Array:
            return self.feed_forward(x, deterministic=deterministic)

        x = self.self_attention_residual(x, attend, deterministic=deterministic)
        return self.feed_forward_residual(x, feed, deterministic=deterministic)


class Encoder(nn.Module):
    """N layers; "pre" normalisation adds a LayerNorm at the top."""

    model: config.ModelConfig

    def setup(self) -> None:
        depth = self.model.encoder_layers
        self.layers = [EncoderLayer(self.model) for _ in range(depth)]
        if self.model.layer_norm_position == "pre":
            self.final_norm = residual.layer_norm(self.model)

    def __call__(
        self,
        x: Float[Array, "B S d_model"],
        mask: Bool[Array, "B 1 #S S"],
        *,
        deterministic: bool,
    ) -> Float[Array, "B S d_model"]:
        """Return the memory that the decoder attends to."""

        def run(layer: EncoderLayer, x: Array, mask: Array) -> Array:
            return layer(x, mask, deterministic=deterministic)

        for layer in self.layers:
            if self.model.rematerialize:
                x = rematerialize.call(run, layer, x, mask)
            else:
                x = run(layer, x, mask)
        if self.model.layer_norm_position == "pre":
            x = self.final_norm(x)
        return x
