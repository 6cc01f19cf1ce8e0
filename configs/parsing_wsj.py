"""Section 6.3: English constituency parsing on the Wall Street Journal, table 4.

  python -m vaswani_jax.main --config=configs/parsing_wsj.py --workdir=runs/wsj \\
      --config.data.text_directory=treebank_3/parsed/mrg/wsj

trains on sections 02 to 21 of the Penn Treebank (LDC99T42), about 40,000 sentences,
and scores sections 22 and 23. `--config=configs/parsing_wsj.py:semi` is the
semi-supervised setting, with about 17 million automatically parsed sentences:
--config.data.silver_trees names their trees, below the same directory.

Each value is the paper's, with its symbol; "open" marks what the paper does not say.
The authors chose dropout, learning rates and beam size on section 22. The paper prints
only the beam size; the other values are those of the authors' released code for the
treebank alone. Updates, batch size and averaging are open, too: the base model's.

Paper: F1 91.3 on section 23, and 92.7 semi-supervised (table 4).
Here: not run. The treebank is licensed; configs/parsing_craft.py and
configs/parsing_gum.py parse trees that are open.
"""

import ml_collections

from configs import base_ende

WSJ_ONLY = {
    "model.num_layers": 4,  # N, section 6.3
    "model.d_model": 1024,  # d_model, section 6.3
    # Section 6.3: "all other parameters remained unchanged" from the base model, so
    # d_ff is 2048 and h 8. d_k and d_v are open: d_model / h, the rule of table 3.
    "model.d_k": 128,
    "model.d_v": 128,
    "model.dropout_rate": 0.2,  # P_drop, open
    "model.attention_dropout_rate": 0.2,  # open; section 6.3 tunes it, too
    "data.source": "treebank",
    "data.target_locale": "en",
    "data.text_directory": ".",
    "data.train_trees": "02-21",  # about 40K sentences
    "data.valid_trees": "22",
    "data.test_trees": "23",
    # Open. The authors' code has separate vocabularies, too, and does not share the
    # trees' embedding with the softmax; here it is shared, as section 3.4 says.
    "data.vocabulary_sharing": "separate",
    "data.vocab_size": 16_000,  # V of the words; the trees have their own symbols
    "data.tree_terminals": "tag",  # open; as in the authors' code
    "data.normalization": "identity",  # open; words stay as they are
    "data.max_length": 512,  # open
    "data.bucket_lengths": "separate",  # not in the paper; less padding
    "data.text_form": "tokenized",
    "optimizer.warmup_steps": 16_000,  # open
    "optimizer.learning_rate_scale": 0.5,  # open
    "training.evaluate_every_steps": 2500,
    "training.best_metric": "f1",
    "search.beam_size": 21,  # section 6.3
    "search.length_penalty": 0.3,  # alpha, section 6.3
    "search.max_extra_tokens": 300,  # section 6.3: input length + 300
    "search.legal_trees": False,  # not in the paper
}
SEMI_SUPERVISED = {
    "data.vocab_size": 32_000,  # section 6.3
    "data.silver_trees": "silver",  # about 17M sentences
    "optimizer.warmup_steps": 4000,  # the base model's, as in the authors' code
}


def get_config(variant: str = "wsj") -> ml_collections.ConfigDict:
    """Return the settings of section 6.3.

    Args:
        variant: "wsj" for the treebank alone, or "semi" for silver trees besides.
    """
    if variant not in ("wsj", "semi"):
        raise ValueError(
            f"unknown variant {variant!r} of parsing_wsj.py: choose wsj or semi"
        )
    config = base_ende.get_config()
    config.update_from_flattened_dict(WSJ_ONLY)
    if variant == "semi":
        config.update_from_flattened_dict(SEMI_SUPERVISED)
    return config
