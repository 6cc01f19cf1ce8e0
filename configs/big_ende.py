"""The paper's big model on WMT14 English-German.

  python -m vaswani_jax.main --config=configs/big_ende.py

Paper: 8 P100 GPUs, 3.5 days (1.0 s a step), 28.4 BLEU on newstest2014, tokenised and
with compounds split (paper_bleu_split_ascii).
Here: not run.
"""

import ml_collections

from configs import base_ende


def get_config() -> ml_collections.ConfigDict:
    """Return the settings of tables 2 and 3, row "big"."""
    config = base_ende.get_config()
    config.model.d_model = 1024  # d_model
    config.model.d_ff = 4096  # d_ff
    config.model.num_heads = 16  # h; d_k = d_v = 64 as in base
    config.model.dropout_rate = 0.3  # P_drop
    config.training.num_steps = 300_000  # train steps
    config.training.checkpoint_every_steps = 600  # 10 minutes, at 1.0 s a step
    config.training.keep_checkpoints = 20
    config.training.average_checkpoints = 20  # section 6.1
    return config
