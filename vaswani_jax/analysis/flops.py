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
