"""The paper's big model on WMT14 English-French.

  python -m vaswani_jax.main --config=configs/big_enfr.py

The run downloads WMT14 through tensorflow-datasets (6.7 GB): about 40
million pairs. The paper has 36 million and does not say how it chose them.

Paper: 8 P100 GPUs, 3.5 days (1.0 s a step), 41.8 BLEU on newstest2014 (table 2 and
the abstract; section 6.1's text says 41.0); it does not say of which kind.
Here: not run.
"""

import ml_collections

from configs import base_enfr, big_ende


def get_config() -> ml_collections.ConfigDict:
    """Return the settings of table 2, row "big"."""
    config = base_enfr.french(big_ende.get_config())
    config.model.dropout_rate = 0.1  # P_drop; section 6.1: "instead of 0.3"
    return config
