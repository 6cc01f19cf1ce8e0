"""Count parameters, and table 2's floating-point operations of matrix products."""

import math

from vaswani_jax.core import config, types

# The backward pass makes two products of the same size for each of the forward pass.
FORWARD_AND_BACKWARD = 3


def forward_flops(
    model: config.ModelConfig,
    *,
    vocab_size: types.VocabSize,
    rows: int,
    source: int,
    target: int,
) -> float:
    """Return the operations of a forward pass; a multiplication and addition are two.

    Only matrix products count: normalisation, softmax, dropout and the embedding's
    lookup are of lower order in every size.

    Args:
        model: The architecture.
        vocab_size: V; the softmax multiplies with the target's.
        rows: Sentence pairs, padding rows too.
        source: Padded source tokens of a row.
        target: Padded target tokens of a row.
    """
    keys, values = model.num_heads * model.d_k, model.num_heads * model.d_v

    def attention(queries: int, memory: int) -> int:
        projections = queries * (keys + values) + memory * (keys + values)
        return model.d_model * projections + queries * memory * (keys + values)

    def feed_forward(tokens: int) -> int:
        return tokens * 2 * model.d_model * model.d_ff

    encoder = attention(source, source) + feed_forward(source)
    decoder = (
        attention(target, target) + attention(target, source) + feed_forward(target)
    )
    logits = target * model.d_model * types.num_target_subwords(vocab_size)
    layers = model.encoder_layers * encoder + model.decoder_layers * decoder
    return 2.0 * rows * (layers + logits)


def update_flops(
    model: config.ModelConfig,
    *,
    vocab_size: types.VocabSize,
    rows: int,
    source: int,
    target: int,
) -> float:
    """Return the operations of one update on a batch, see `forward_flops`."""
    return FORWARD_AND_BACKWARD * forward_flops(
        model, vocab_size=vocab_size, rows=rows, source=source, target=target
    )


def count_by_matrix(
    model: config.ModelConfig, *, vocab_size: types.VocabSize
) -> dict[str, int]:
    """Return the parameters of each kind of matrix or vector, over all layers.

    Feed-forward networks have two biases, every sub-layer a normalisation with gain
    and bias; one embedding serves both sides and the softmax (section 3.4), unless
    each side has a vocabulary of its own.
    """
    encoder, decoder = model.encoder_layers, model.decoder_layers
    d_model = model.d_model
    keys, values = model.num_heads * model.d_k, model.num_heads * model.d_v
    layers = encoder + decoder
    attentions = encoder + 2 * decoder  # the decoder's: to itself and to the memory
    counts = {
        **_count_embeddings(vocab_size, d_model=d_model),
        "W^Q": attentions * d_model * keys,
        "W^K": attentions * d_model * keys,
        "W^V": attentions * d_model * values,
        "W^O": attentions * values * d_model,
        "W_1 and b_1": layers * (d_model + 1) * model.d_ff,
        "W_2 and b_2": layers * (model.d_ff + 1) * d_model,
        "layer normalisation": (attentions + layers) * 2 * d_model,
    }
    if model.deterministic_attention:
        counts["next word's projection"] = d_model**2
    if model.attention_bias:
        counts["attention's biases"] = attentions * (2 * keys + values + d_model)
    if model.logits_bias:
        counts["the logits' bias"] = types.num_target_subwords(vocab_size)
    if model.positional_encoding == "learned":
        counts["learned positions"] = 2 * model.max_positions * d_model
    if model.layer_norm_position == "pre":
        counts["layer normalisation"] += 2 * 2 * d_model
    return counts


def _count_embeddings(vocab_size: types.VocabSize, *, d_model: int) -> dict[str, int]:
    if isinstance(vocab_size, types.VocabSizes):
        return {
            "source embedding": vocab_size.source * d_model,
            "target embedding": vocab_size.target * d_model,
        }
    return {"shared embedding": vocab_size * d_model}


def count_parameters(model: config.ModelConfig, *, vocab_size: types.VocabSize) -> int:
    """Return the number of all parameters."""
    return sum(count_by_matrix(model, vocab_size=vocab_size).values())


def implied_vocabulary(
    model: config.ModelConfig, printed_millions: float
) -> tuple[int, int]:
    """Return the smallest and the largest vocabulary that round to a printed count."""
    without_embedding = count_parameters(model, vocab_size=0)
    smallest, largest = (
        ((printed_millions + rounding) * 1e6 - without_embedding) / model.d_model
        for rounding in (-0.5, 0.5)
    )
    return math.ceil(smallest), int(largest)
