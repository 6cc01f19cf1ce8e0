"""Table 3's column of parameters: every matrix counted, and what the print implies."""

from vaswani_jax.core import config

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
