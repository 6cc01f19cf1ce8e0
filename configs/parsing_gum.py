"""Parse English of many genres on two CPU cores: the GUM treebank, 10,224 sentences.

  python -m vaswani_jax.main --config=configs/parsing_gum.py --workdir=runs/gum
"""

import ml_collections

from configs import own_text, parsing_wsj

SIZE = {
    "model.num_layers": 4,
    "model.d_model": 128,
    "model.d_ff": 512,
    "model.num_heads": 4,
    "model.d_k": 32,
    "model.d_v": 32,
    "model.dropout_rate": 0.2,
    "model.attention_dropout_rate": 0.0,
    "data.text_directory": "gum",
    "data.train_trees": "train.trees.txt",
    "data.valid_trees": "dev.trees.txt",
    "data.test_trees": "",
    "data.vocab_size": 6000,
    "data.max_length": 320,
    "data.num_buckets": 8,
    "search.beam_size": 4,
}


def get_config(variant: str = "plain") -> ml_collections.ConfigDict:
    """Return the settings of a small parser.

    Args:
        variant: "plain" for the paper's model, "options" for what it does not have.
    """
    config = parsing_wsj.get_config()
    small = {
        key: value
        for key, value in own_text.SMALL.items()
        if key.split(".")[0] in ("data", "optimizer", "training", "model")
    }
    config.update_from_flattened_dict({**small, **SIZE})
    return config
