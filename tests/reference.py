"""Sections 3 and 5 in NumPy: the oracle with which the package is compared.

Written from the paper's formulas alone, in float64, for one sentence without padding
at a time and one head at a time: there is no mask for padding to get wrong and no
axis to swap. It takes the package's parameters, converted to float64.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from vaswani_jax.core import config, types

Params = Mapping[str, Any]


def to_float64(params: Params) -> Any:
    """A copy of the parameters that the functions below take."""
    return jax.tree.map(lambda leaf: np.array(leaf, np.float64), params)


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, may_look: np.ndarray
) -> np.ndarray:
    """Equation 1; illegal connections are -inf in the input of the softmax."""
    scores = Q @ K.T / np.sqrt(K.shape[1])
    return softmax(np.where(may_look, scores, -np.inf)) @ V


def multi_head_attention(
    params: Params, queries: np.ndarray, memory: np.ndarray, may_look: np.ndarray
) -> np.ndarray:
    """Concat(head_1, ..., head_h) W^O, with biases where there are any."""

    def project(x: np.ndarray, name: str, head: int) -> np.ndarray:
        bias = params[name].get("bias")
        projection = x @ params[name]["kernel"][:, head]
        return projection if bias is None else projection + bias[head]

    W_O, b_O = params["output"]["kernel"], params["output"].get("bias", 0)
    h, d_v, d_model = W_O.shape
    heads = [
        attention(
            project(queries, "query", head),
            project(memory, "key", head),
            project(memory, "value", head),
            may_look,
        )
        for head in range(h)
    ]
    return np.concatenate(heads, axis=1) @ W_O.reshape(h * d_v, d_model) + b_O


def feed_forward(
    params: Params, x: np.ndarray, *, activation: str = "relu"
) -> np.ndarray:
    """Equation 2, or x / (1 + exp(-x)) in the place of its maximum."""
    W_1, b_1 = params["inner"]["kernel"], params["inner"]["bias"]
    W_2, b_2 = params["outer"]["kernel"], params["outer"]["bias"]
    inner = x @ W_1 + b_1
    if activation == "swish":
        return inner / (1 + np.exp(-inner)) @ W_2 + b_2
    return np.maximum(0, inner) @ W_2 + b_2


def layer_norm(params: Params, x: np.ndarray, *, epsilon: float) -> np.ndarray:
    """Ba et al. (2016)."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * params["scale"] + params["bias"]


def residual(
    params: Params,
    x: np.ndarray,
    sublayer: Callable[[np.ndarray], np.ndarray],
    *,
    model: config.ModelConfig,
) -> np.ndarray:
    """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) for "pre"."""
    epsilon = model.layer_norm_epsilon
    if model.layer_norm_position == "post":
        return layer_norm(params["norm"], x + sublayer(x), epsilon=epsilon)
    return x + sublayer(layer_norm(params["norm"], x, epsilon=epsilon))


def sinusoids(length: int, d_model: int) -> np.ndarray:
    """Section 3.5, number by number."""
    encoding = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            encoding[pos, 2 * i] = np.sin(angle)
            encoding[pos, 2 * i + 1] = np.cos(angle)
    return encoding


def embedding(params: Params, side: str) -> Params:
    """The embedding of both sides, or of one if each has a vocabulary."""
    return params["embedding"] if "embedding" in params else params[f"{side}_embedding"]


def embed(
    params: Params, tokens: np.ndarray, side: str, *, model: config.ModelConfig
) -> np.ndarray:
    """Embeddings times sqrt(d_model), plus positions."""
    words = embedding(params, side)["embedding"][tokens] * np.sqrt(model.d_model)
    if model.positional_encoding == "learned":
        return words + params[f"{side}_positions"]["embedding"][: len(tokens)]
    return words + sinusoids(len(tokens), model.d_model)


def encode(
    params: Params, source: np.ndarray, *, model: config.ModelConfig
) -> np.ndarray:
    """The memory of one sentence without padding, [S, d_model]."""
    x = embed(params, source, "source", model=model)
    everywhere = np.ones((len(source), len(source)), bool)
    for n in range(model.num_encoder_layers or model.num_layers):
        layer = params["encoder"][f"layers_{n}"]

        def attend(x: np.ndarray, layer: Params = layer) -> np.ndarray:
            return multi_head_attention(layer["self_attention"], x, x, everywhere)

        def feed(x: np.ndarray, layer: Params = layer) -> np.ndarray:
            inner = layer["feed_forward"]
            return feed_forward(inner, x, activation=model.activation)

        x = residual(layer["self_attention_residual"], x, attend, model=model)
        x = residual(layer["feed_forward_residual"], x, feed, model=model)
    if model.layer_norm_position == "pre":
        norm, epsilon = params["encoder"]["final_norm"], model.layer_norm_epsilon
        x = layer_norm(norm, x, epsilon=epsilon)
    return x


def logits(
    params: Params,
    source: np.ndarray,
    target_in: np.ndarray,
    *,
    model: config.ModelConfig,
    trees: types.TreeIds | None = None,
) -> np.ndarray:
    """Logits [T, V] of one pair of sentences without padding.

    With `trees` there is deterministic attention: what the ids mean.
    """
    memory = encode(params, source, model=model)
    x = embed(params, target_in, "target", model=model)
    if trees is not None:
        x = x + next_words(params, source, target_in, memory, trees=trees)
    T, S = len(target_in), len(source)
    earlier = np.array([[key <= query for key in range(T)] for query in range(T)])
    everywhere = np.ones((T, S), bool)
    for n in range(model.num_decoder_layers or model.num_layers):
        layer = params["decoder"][f"layers_{n}"]

        def attend_self(x: np.ndarray, layer: Params = layer) -> np.ndarray:
            return multi_head_attention(layer["self_attention"], x, x, earlier)

        def attend_memory(x: np.ndarray, layer: Params = layer) -> np.ndarray:
            attention_params = layer["memory_attention"]
            return multi_head_attention(attention_params, x, memory, everywhere)

        def feed(x: np.ndarray, layer: Params = layer) -> np.ndarray:
            inner = layer["feed_forward"]
            return feed_forward(inner, x, activation=model.activation)

        x = residual(layer["self_attention_residual"], x, attend_self, model=model)
        x = residual(layer["memory_attention_residual"], x, attend_memory, model=model)
        x = residual(layer["feed_forward_residual"], x, feed, model=model)
    if model.layer_norm_position == "pre":
        norm, epsilon = params["decoder"]["final_norm"], model.layer_norm_epsilon
        x = layer_norm(norm, x, epsilon=epsilon)
    softmax = embedding(params, "target")
    return x @ softmax["embedding"].T + softmax.get("bias", 0)


def next_words(
    params: Params,
    source: np.ndarray,
    target_in: np.ndarray,
    memory: np.ndarray,
    *,
    trees: types.TreeIds,
) -> np.ndarray:
    """What deterministic attention adds to the decoder's input, word by word."""
    words: list[list[int]] = []  # the positions of each word, the end mark's last
    for position, token in enumerate(source):
        byte = trees.word_starts[token // 8]
        starts = token == types.EOS_ID or byte >> (7 - token % 8) & 1
        if starts:
            words.append([])
        if words:
            words[-1].append(position)
    added, written = [], 0
    for token in target_in:
        written += int(token >= 4 + 2 * trees.num_labels)
        state = np.zeros(memory.shape[1])
        if written < len(words):
            state = memory[words[written]].mean(axis=0)
        added.append(state @ params["next_word"]["projection"]["kernel"])
    return np.array(added)


def smoothed_targets(target_out: np.ndarray, V: int, label_smoothing: float) -> Any:
    """q(k) = (1 - eps) [k = y] + eps / V, formed in full, [T, V]."""
    q = np.full((len(target_out), V), label_smoothing / V)
    q[np.arange(len(target_out)), target_out] += 1 - label_smoothing
    return q


def loss_sums(
    params: Params,
    batch: types.Batch,
    *,
    model: config.ModelConfig,
    label_smoothing: float,
) -> dict[str, float]:
    """Sums over the target tokens of a padded batch, one sentence at a time."""
    sums = dict.fromkeys(("loss", "nll", "correct", "tokens"), 0.0)
    for row in zip(*batch[:3], strict=True):
        source, target_in, target_out = (side[side != types.PAD_ID] for side in row)
        if not len(target_out):
            continue
        p = softmax(logits(params, source, target_in, model=model))
        q = smoothed_targets(target_out, p.shape[1], label_smoothing)
        sums["loss"] += -(q * np.log(p)).sum()
        sums["nll"] += -np.log(p[np.arange(len(p)), target_out]).sum()
        sums["correct"] += (p.argmax(axis=1) == target_out).sum()
        sums["tokens"] += len(target_out)
    return sums


def partial_derivative(
    function: Callable[[], float], leaf: np.ndarray, index: tuple[int, ...]
) -> float:
    """The central difference of `function`, which reads `leaf`, at one entry of it."""
    value, h = leaf[index], 1e-5
    leaf[index] = value + h
    above = function()
    leaf[index] = value - h
    below = function()
    leaf[index] = value
    return (above - below) / (2 * h)


def gradient(function: Callable[[], float], leaf: np.ndarray) -> np.ndarray:
    """All partial derivatives with respect to one array of parameters."""
    derivatives = [
        partial_derivative(function, leaf, index) for index in np.ndindex(leaf.shape)
    ]
    return np.array(derivatives).reshape(leaf.shape)


def learning_rate(step_num: int, *, d_model: int, warmup_steps: int) -> float:
    """Equation 3; step_num counts from 1."""
    return d_model**-0.5 * min(step_num**-0.5, step_num * warmup_steps**-1.5)


class Adam:
    """Algorithm 1 of Kingma and Ba (2015) for one array of parameters."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.m, self.v, self.t = np.zeros(shape), np.zeros(shape), 0

    def step(self, g: np.ndarray, *, settings: config.Config) -> np.ndarray:
        """Return what to add to the parameters."""
        adam = settings.optimizer
        self.t += 1
        self.m = adam.beta1 * self.m + (1 - adam.beta1) * g
        self.v = adam.beta2 * self.v + (1 - adam.beta2) * g**2
        m_hat = self.m / (1 - adam.beta1**self.t)
        v_hat = self.v / (1 - adam.beta2**self.t)
        rate = learning_rate(
            self.t, d_model=settings.model.d_model, warmup_steps=adam.warmup_steps
        )
        return -rate * m_hat / (np.sqrt(v_hat) + adam.epsilon)
