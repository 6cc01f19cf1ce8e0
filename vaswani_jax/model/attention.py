"""Sections 3.2.1 and 3.2.2: scaled dot-product and multi-head attention."""

import math
from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import config, parallel
from vaswani_jax.model import dropout, initializers, parameters, products

# Finite, so that a query that may look at nothing gets a uniform row and never NaN.
MASKED_SCORE = -1e30


def attention_weights(
    query: Float[Array, "B Q H d_k"],
    key: Float[Array, "B K H d_k"],
    mask: Bool[Array, "#B #H #Q K"],
) -> Float[Array, "B H Q K"]:
    """Return softmax(Q K^T / sqrt(d_k)), equation 1 without its product with V.

    Args:
        query: What each position looks for.
        key: What each position offers.
        mask: True where a query may look at a key.

    Returns:
        Float32 weights over the keys that sum to 1 for every head and query; uniform
        where every key is masked.
    """
    # Deviation: softmax in float32 even when the model computes in bfloat16.
    return jax.nn.softmax(_masked_scores(query, key, mask), axis=-1)


def _masked_scores(query: Array, key: Array, mask: Array) -> Array:
    scale = 1 / math.sqrt(query.shape[-1])
    scores = products.einsum("bqhd,bkhd->bhqk", query * scale, key)
    return jnp.where(mask, scores, MASKED_SCORE)


class KeysValues(flax.struct.PyTreeNode):
    """Projected keys and values of the positions that attention looks at."""

    key: Float[Array, "*B K H d_k"]
    value: Float[Array, "*B K H d_v"]


class CachedHeads(flax.struct.PyTreeNode):
    """Keys and values of each head, laid out for few queries.

    On CPUs and GPUs a loop runs along the last axis while it sums over the axis before
    it. On TPUs the heads of a key stand side by side: they fill whole tiles of memory.
    """

    key: Float[Array, "B H d_k K"] | Float[Array, "B K H_d_k"]
    value: Float[Array, "B H K d_v"] | Float[Array, "B K H_d_v"]

    @classmethod
    def zeros(cls, model: config.ModelConfig, *, B: Any, K: int) -> "CachedHeads":
        """Return a cache with room for K keys of B sentences, a number or a symbol."""
        H, dtype = model.num_heads, jnp.dtype(model.dtype)
        if parallel.on_tpu():
            return cls(
                key=jnp.zeros((B, K, H * model.d_k), dtype),
                value=jnp.zeros((B, K, H * model.d_v), dtype),
            )
        return cls(
            key=jnp.zeros((B, H, model.d_k, K), dtype),
            value=jnp.zeros((B, H, K, model.d_v), dtype),
        )

    @classmethod
    def lay_out(cls, keys_values: KeysValues) -> "CachedHeads":
        """Return the same keys and values as a cache."""
        if parallel.on_tpu():
            B, K = keys_values.key.shape[:2]
            return cls(
                key=keys_values.key.reshape(B, K, -1),
                value=keys_values.value.reshape(B, K, -1),
            )
        return cls(
            key=jnp.transpose(keys_values.key, (0, 2, 3, 1)),
            value=jnp.transpose(keys_values.value, (0, 2, 1, 3)),
        )

    def write(self, latest: KeysValues, position: Int[Array, ""]) -> "CachedHeads":
        """Return the cache with the keys and values that W beams have at a position."""
        W, heads = latest.key.shape[1], self.lay_out(latest)
        key_axis, value_axis = _axes_of_keys()
        write = jax.lax.dynamic_update_slice_in_dim
        return CachedHeads(
            key=write(self.key, heads.key, position * W, axis=key_axis),
            value=write(self.value, heads.value, position * W, axis=value_axis),
        )

    def pad(self, num_keys: int) -> "CachedHeads":
        """Return the cache with room for more keys."""

        def pad(leaf: Array, *, axis: int) -> Array:
            widths = [(0, num_keys * (a == axis)) for a in range(leaf.ndim)]
            return jnp.pad(leaf, widths)

        key_axis, value_axis = _axes_of_keys()
        return CachedHeads(
            key=pad(self.key, axis=key_axis), value=pad(self.value, axis=value_axis)
        )


def _axes_of_keys() -> tuple[int, int]:
    """Return the axis K of the keys in a cache, and of the values."""
    return (1, 1) if parallel.on_tpu() else (3, 2)


def fused_attention(
    query: Float[Array, "B Q H d_k"],
    keys_values: KeysValues,
    *,
    mask: Bool[Array, "#B 1 #Q K"],
) -> Float[Array, "B Q H d_v"]:
    """Return softmax(Q K^T / sqrt(d_k)) V, equation 1, by one cuDNN kernel."""
    shape = (query.shape[0], 1, query.shape[1], mask.shape[3])
    # Deviation: the kernel does not expose its weights, so they get no dropout.
    return jax.nn.dot_product_attention(
        query,
        keys_values.key,
        keys_values.value,
        mask=jnp.broadcast_to(mask, shape),
        implementation="cudnn",
    )


@jax.custom_vjp
def _attend_by_products(
    query: Float[Array, "B Q H d_k"],
    key: Float[Array, "B K H d_k"],
    value: Float[Array, "B K H d_v"],
    mask: Bool[Array, "#B #H #Q K"],
) -> Float[Array, "B Q H d_v"]:
    """Return the heads of equation 1, with a derivative in products alone.

    The derivative of a softmax needs sums over the keys, of weights times their own
    derivatives. Sums over d_v of the heads times theirs are equal (Dao et al., 2022,
    appendix B.2): so a TPU makes each array over queries and keys within a product.
    """
    return _weigh(query, key, value, mask)[0]


def _weigh(query: Array, key: Array, value: Array, mask: Array) -> tuple[Array, Any]:
    scores = _masked_scores(query, key, mask)
    largest = jnp.max(scores, axis=-1, keepdims=True)
    exponentials = jnp.exp(scores - largest)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    weights = (exponentials / total).astype(value.dtype)
    heads = products.einsum("bhqk,bkhe->bqhe", weights, value).astype(value.dtype)
    return heads, (query, key, value, mask, largest, 1 / total, heads)


def _weigh_backwards(residuals: Any, heads_bar: Array) -> tuple[Any, ...]:
    query, key, value, mask, largest, factor, heads = residuals
    # Computed again: that is cheaper than to keep them.
    scores = _masked_scores(query, key, mask)
    weights = (jnp.exp(scores - largest) * factor).astype(value.dtype)
    mean = jnp.sum(heads_bar.astype(jnp.float32) * heads, axis=-1)
    mean = jnp.swapaxes(mean, 1, 2)[..., None]
    weights_bar = products.einsum("bqhe,bkhe->bhqk", heads_bar, value)
    scores_bar = jnp.where(mask, weights * (weights_bar - mean), 0).astype(query.dtype)
    scale = 1 / math.sqrt(query.shape[-1])
    query_bar = products.einsum("bhqk,bkhd->bqhd", scores_bar, key) * scale
    key_bar = products.einsum("bhqk,bqhd->bkhd", scores_bar, query * scale)
    value_bar = products.einsum("bhqk,bqhe->bkhe", weights, heads_bar)
    bars = (query_bar, key_bar, value_bar)
    return *(bar.astype(query.dtype) for bar in bars), None


_attend_by_products.defvjp(_weigh, _weigh_backwards)


def _attend_cached_by_products(
    query: Float[Array, "B Q H d_k"],
    cache: CachedHeads,
    *,
    mask: Bool[Array, "#B 1 #Q K"],
) -> Float[Array, "B Q H d_v"]:
    """Return the heads of `attend_cached`, as two matrix products a sentence.

    Each row of a product is a query of one head, as long as all heads and 0 in the
    others. It multiplies with keys of all heads, as they lie in the cache.
    """
    B, Q, H, d_k = query.shape
    rows = _of_each_head(query.reshape(B, Q, 1, -1), num_heads=H)
    precision = products.precision_of(query, cache.key)
    scores = jnp.einsum(
        "brm,bkm->brk",
        rows.reshape(B, Q * H, -1),
        cache.key,
        precision=precision,
        preferred_element_type=jnp.float32,
    )
    scores = scores.reshape(B, Q, H, -1) * (1 / math.sqrt(d_k))
    mask = jnp.swapaxes(mask, 1, 2)
    weights = jax.nn.softmax(jnp.where(mask, scores, MASKED_SCORE), axis=-1)
    weights = weights.astype(cache.value.dtype)
    heads = jnp.einsum(
        "brk,bkm->brm",
        weights.reshape(B, Q * H, -1),
        cache.value,
        precision=precision,
    )
    heads = _of_each_head(heads.reshape(B, Q, H, -1), num_heads=H)
    return jnp.sum(heads, axis=2).reshape(B, Q, H, -1)


def _of_each_head(
    rows: Float[Array, "B Q #H M"], *, num_heads: int
) -> Float[Array, "B Q H M"]:
    """Return rows in which the columns of other heads are 0."""
    head = jnp.arange(rows.shape[3]) // (rows.shape[3] // num_heads)
    return jnp.where(head == jnp.arange(num_heads)[:, None], rows, 0)


class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W^O, section 3.2.2.

    Projections start uniform, scaled for [d_model, h * d_k]. They have a bias only if
    `attention_bias` is set.
    """

    model: config.ModelConfig

    def setup(self) -> None:
        model = self.model
        self.query = self._projection((model.num_heads, model.d_k))
        self.key = self._projection((model.num_heads, model.d_k))
        self.value = self._projection((model.num_heads, model.d_v))
        self.output = self._projection(model.d_model, axis=(-2, -1))
        self.dropout = dropout.Dropout(model.attention_dropout_rate)

    def attend_cached(
        self,
        x: Float[Array, "*rows d_model"],
        cache: CachedHeads,
        *,
        mask: Bool[Array, "B 1 #Q K"],
    ) -> Float[Array, "*rows d_model"]:
        """Attend from a few queries of each sentence to cached heads.

        Computes what `__call__` computes. On CPUs and GPUs as sums of products that
        read each key and each value once: matrix products of this size are too small
        to pay. A TPU's units multiply matrices only.
        """
        query = self.query(x)
        if parallel.on_tpu():
            axes = query.shape[:-1]
            query = query.reshape(mask.shape[0], -1, *query.shape[-2:])
            heads = _attend_cached_by_products(query, cache, mask=mask)
            return self.output(heads.reshape(*axes, -1))
        query = query.astype(jnp.float32) * (1 / math.sqrt(query.shape[-1]))
        by_head = jnp.swapaxes(query, 1, 2)[..., None]
        scores = jnp.sum(by_head * cache.key[:, :, None], axis=-2)
        weights = jax.nn.softmax(jnp.where(mask, scores, MASKED_SCORE), axis=-1)
        heads = jnp.sum(weights[..., None] * cache.value[:, :, None], axis=-2)
        return self.output(jnp.swapaxes(heads, 1, 2).astype(cache.value.dtype))

    def _projection(
        self, features: int | tuple[int, int], *, axis: int | tuple[int, int] = -1
    ) -> parameters.DenseGeneral:
        return parameters.DenseGeneral(
            features,
            axis=axis,
            use_bias=self.model.attention_bias,
            dtype=jnp.dtype(self.model.dtype),
            kernel_init=initializers.kernel(self.model.init_scale),
            dot_general=products.dot_general_2d,
        )

    def keys_values(self, x: Float[Array, "*B K d_model"]) -> KeysValues:
        """Project the positions that will be looked at to keys and values."""
        return KeysValues(key=self.key(x), value=self.value(x))

    def __call__(
        self,
        x: Float[Array, "B Q d_model"],
        keys_values: KeysValues,
        *,
        mask: Bool[Array, "#B #H #Q K"],
        deterministic: bool,
    ) -> Float[Array, "B Q d_model"]:
        """Return for each query of x the weighted sum of the values it may look at."""
        if self.model.attention == "cudnn" and not deterministic:
            return self.output(fused_attention(self.query(x), keys_values, mask=mask))
        drops = self.model.attention_dropout_rate > 0
        if parallel.on_tpu() and not (deterministic or drops):
            key, value = keys_values.key, keys_values.value
            return self.output(_attend_by_products(self.query(x), key, value, mask))
        weights = attention_weights(self.query(x), keys_values.key, mask)
        # Kept only if the caller asks for the collection "intermediates".
        self.sow("intermediates", "weights", weights)
        weights = self.dropout(weights, deterministic=deterministic)
        values = keys_values.value
        heads = jnp.einsum(
            "bhqk,bkhe->bqhe",
            weights.astype(values.dtype),
            values,
            precision=products.precision_of(values),
        )
        return self.output(heads)
