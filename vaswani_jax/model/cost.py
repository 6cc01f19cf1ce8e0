"""Table 2's training cost: floating-point operations of the matrix products."""

from vaswani_jax.core import config

# The backward pass makes two products, of the same size, for each one of the forward.
FORWARD_AND_BACKWARD = 3


def forward_flops(
    model: config.ModelConfig, *, vocab_size: int, rows: int, source: int, target: int
) -> float:
    """Operations of the forward pass; a multiplication and its addition count as two.

    Only matrix products count: what is left (normalisation, softmax, dropout, the
    embedding's lookup) is of lower order in every size.

    Args:
        model: The architecture.
        vocab_size: Rows of the shared embedding, V.
        rows: Sentence pairs, padding rows too.
        source: Padded source tokens of a row.
        target: Padded target tokens of a row.
    """
    keys, values = model.num_heads * model.d_k, model.num_heads * model.d_v

    def attention(queries: int, looked_at: int) -> int:
        projections = queries * (keys + values) + looked_at * (keys + values)
        return model.d_model * projections + queries * looked_at * (keys + values)

    def feed_forward(tokens: int) -> int:
        return tokens * 2 * model.d_model * model.d_ff

    encoder = attention(source, source) + feed_forward(source)
    decoder = (
        attention(target, target) + attention(target, source) + feed_forward(target)
    )
    logits = target * model.d_model * vocab_size
    return 2.0 * rows * (model.num_layers * (encoder + decoder) + logits)


def update_flops(
    model: config.ModelConfig, *, vocab_size: int, rows: int, source: int, target: int
) -> float:
    """Operations of one update on a batch, see `forward_flops`."""
    return FORWARD_AND_BACKWARD * forward_flops(
        model, vocab_size=vocab_size, rows=rows, source=source, target=target
    )


MILLION = 1_000_000


def by_matrix(model: config.ModelConfig, *, vocab_size: int) -> dict[str, int]:
    """Parameters of each kind of matrix or vector, over all layers.

    Feed-forward networks have two biases, every sub-layer a normalisation with gain
    and bias; one embedding serves both sides and the softmax (section 3.4).
    """
    N, d_model = model.num_layers, model.d_model
    keys, values = model.num_heads * model.d_k, model.num_heads * model.d_v
    attentions = 3 * N  # of the encoder; of the decoder to itself and to the memory
    found = {
        "shared embedding": vocab_size * d_model,
        "W^Q": attentions * d_model * keys,
        "W^K": attentions * d_model * keys,
        "W^V": attentions * d_model * values,
        "W^O": attentions * values * d_model,
        "W_1 and b_1": 2 * N * (d_model + 1) * model.d_ff,
        "W_2 and b_2": 2 * N * (model.d_ff + 1) * d_model,
        "layer normalisation": 5 * N * 2 * d_model,
    }
    if model.attention_bias:
        found["attention's biases"] = attentions * (2 * keys + values + d_model)
    if model.logits_bias:
        found["the logits' bias"] = vocab_size
    if model.positional_encoding == "learned":
        found["learned positions"] = 2 * model.max_positions * d_model
    if model.layer_norm_position == "pre":
        found["layer normalisation"] += 2 * 2 * d_model
    return found


def total(model: config.ModelConfig, *, vocab_size: int) -> int:
    """All parameters."""
    return sum(by_matrix(model, vocab_size=vocab_size).values())


def implied_vocabulary(
    model: config.ModelConfig, printed_millions: float
) -> tuple[int, int]:
    """The least and the largest vocabulary that rounds to a printed count."""
    rest = total(model, vocab_size=0)
    bounds = (printed_millions - 0.5, printed_millions + 0.5)
    least, largest = ((bound * MILLION - rest) / model.d_model for bound in bounds)
    return -int(-least // 1), int(largest)
