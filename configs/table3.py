"""Every row of table 3: variations of the base model, without checkpoint averaging.

  python -m vaswani_jax.main --config=configs/table3.py:A1
  launch/table3.sh

Rows are base, A1 to A4, B1, B2, C1 to C7, D1 to D4, E and big, in the table's order:
the paper's letters, numbered within each group. Development set: newstest2013 (the
valid split); perplexity per subword, BLEU by beam search as in section 6.1.

Paper: 8 P100 GPUs, 12 hours for base and 3.5 days for big; no time for the others.
Here: not run. configs/table3_small.py has the same rows of a small model.
"""

import ml_collections

from configs import base_ende, big_ende

# As in the table: only what differs from base.
ROWS: dict[str, dict[str, int | float | str]] = {
    "base": {},
    "A1": {"model.num_heads": 1, "model.d_k": 512, "model.d_v": 512},
    "A2": {"model.num_heads": 4, "model.d_k": 128, "model.d_v": 128},
    "A3": {"model.num_heads": 16, "model.d_k": 32, "model.d_v": 32},
    "A4": {"model.num_heads": 32, "model.d_k": 16, "model.d_v": 16},
    "B1": {"model.d_k": 16},
    "B2": {"model.d_k": 32},
    "C1": {"model.num_layers": 2},
    "C2": {"model.num_layers": 4},
    "C3": {"model.num_layers": 8},
    "C4": {"model.d_model": 256, "model.d_k": 32, "model.d_v": 32},
    "C5": {"model.d_model": 1024, "model.d_k": 128, "model.d_v": 128},
    "C6": {"model.d_ff": 1024},
    "C7": {"model.d_ff": 4096},
    "D1": {"model.dropout_rate": 0.0},
    "D2": {"model.dropout_rate": 0.2},
    "D3": {"training.label_smoothing": 0.0},
    "D4": {"training.label_smoothing": 0.2},
    "E": {"model.positional_encoding": "learned"},
    "big": {},
}


def get_config(row: str = "base") -> ml_collections.ConfigDict:
    """Return the settings of one row of table 3."""
    if row not in ROWS:
        raise ValueError(
            f"unknown variant {row!r} of table3.py: choose one of {', '.join(ROWS)}"
        )
    parent = big_ende if row == "big" else base_ende
    config = parent.get_config()
    config.update_from_flattened_dict(ROWS[row])
    config.training.keep_checkpoints = 3
    config.training.average_checkpoints = 1
    return config
