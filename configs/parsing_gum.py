"""Section 6.3 at a small size: parse English of many genres, the GUM treebank.

  python -m vaswani_jax.main --config=configs/parsing_gum.py --workdir=runs/gum \\
      --config.data.text_directory=gum

trains on the 10,224 sentences of train.trees.txt in that directory, and chooses the
best checkpoint on the 1,575 of dev.trees.txt. docs/results/parsing.md says where they
are from. `:options` adds options that the paper does not have.

Two CPU cores: docs/results/parsing.md has the scores, with and without options.
"""

import ml_collections

from configs import own_text, parsing_wsj

# Changes to own_text.py:small, for trees of about 50 symbols.
SIZE = {
    "model.num_layers": 4,
    "model.d_ff": 512,
    "model.dropout_rate": 0.2,
    "model.attention_dropout_rate": 0.0,
    "data.train_trees": "train.trees.txt",
    "data.valid_trees": "dev.trees.txt",
    "data.test_trees": "",
    "data.vocab_size": 6000,
    "data.max_length": 320,
    "data.num_buckets": 10,
    "optimizer.warmup_steps": 1000,
    "training.evaluate_every_steps": 1000,
    "training.keep_checkpoints": 16,
    "training.average_checkpoints": 8,
    "search.beam_size": 4,
}
OPTIONS = {
    # Ma et al. (2017), "Deterministic Attention": the next word is known.
    "model.deterministic_attention": True,
    # Provilkov et al. (2020), "BPE-dropout": several segmentations of a word.
    "data.subword_dropout": 0.1,
    "data.subword_samples": 5,
    "search.legal_trees": True,
}


def get_config(variant: str = "plain") -> ml_collections.ConfigDict:
    """Return the settings of a small parser.

    Args:
        variant: "plain" for the paper's model; "options" adds what it does not have.
    """
    if variant not in ("plain", "options"):
        raise ValueError(
            f"unknown variant {variant!r} of parsing_gum.py: choose plain or options"
        )
    config = parsing_wsj.get_config()
    config.update_from_flattened_dict({**own_text.SMALL, **SIZE})
    if variant == "options":
        config.update_from_flattened_dict(OPTIONS)
    return config
