"""The paper's base model on WMT14 English-French.

  python -m vaswani_jax.main --config=configs/base_enfr.py

It downloads WMT14 through tensorflow-datasets (6.2 GiB by its checksums): all of it,
some 40 million pairs, where the paper has 36 million and does not say how it chose
them.

Paper: 8 P100 GPUs, 12 hours (0.4 s a step), 38.1 BLEU on newstest2014, of which kind
it does not say.
Here: not run.
"""

import ml_collections

from configs import base_ende


def get_config() -> ml_collections.ConfigDict:
    """Table 2, row "base"."""
    return french(base_ende.get_config())


def french(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """The same model on the data of section 5.1's second paragraph."""
    config.data.source = "tfds:wmt14_translate/fr-en"  # the paper: 36M pairs
    config.data.target_locale = "fr"
    # "a 32000 word-piece vocabulary". Deviation: of SentencePiece's byte pairs, which
    # as word pieces do join frequent neighbours.
    config.data.vocab_size = 32_000
    return config
