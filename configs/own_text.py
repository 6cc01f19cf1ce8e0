"""Your own parallel text, with the paper's base model or a small one for a CPU.

Each split has two files, one sentence a line, with equal numbers of lines:

  python -m vaswani_jax.main --config=configs/own_text.py --workdir=runs/own \\
      --config.data.text_directory=DIR --config.data.source_locale=en \\
      --config.data.target_locale=de

DIR holds train.source, train.target, valid.source, valid.target, test.source and
test.target. Files of other names and kinds are set by their keys
(--config.data.train_source=train.tsv.gz#1; docs/tutorials/text_files.md has all kinds).
Without a test set, set --config.data.test_source= --config.data.test_target=; likewise
without a validation set, which leaves no scores during training and no best checkpoint.
`--config=configs/own_text.py:small` is a model for tens of thousands of pairs, `:big`
the paper's big model.

Not run as it stands; configs/multi30k_ende.py is the small model on real text.
"""

import ml_collections

from configs import base_ende, big_ende

TEXT = {
    "data.source": "text",
    "data.source_locale": "",  # set by the user: en, de, pt_BR, ...
    "data.target_locale": "",
    "data.text_directory": ".",
    "data.train_source": "train.source",
    "data.train_target": "train.target",
    "data.valid_source": "valid.source",
    "data.valid_target": "valid.target",
    "data.test_source": "test.source",
    "data.test_target": "test.target",
}

SMALL = {
    "model.num_layers": 4,
    "model.d_model": 128,
    "model.d_ff": 256,
    "model.num_heads": 4,
    "model.d_k": 32,
    "model.d_v": 32,
    "model.dropout_rate": 0.3,
    "data.vocab_size": 10_000,
    "data.max_length": 100,
    "data.source_tokens_per_batch": 4096,
    "data.target_tokens_per_batch": 4096,
    "data.num_buckets": 6,
    # With 1, a post-norm model of this size learns nothing for thousands of steps.
    "model.init_scale": 0.25,
    # With 1000, the loss falls later (docs/results/multi30k.md).
    "optimizer.warmup_steps": 250,
    "optimizer.learning_rate_scale": 0.8,
    "training.num_steps": 8000,
    "training.log_every_steps": 50,
    "training.evaluate_every_steps": 500,
    "training.checkpoint_every_steps": 250,
}


def get_config(size: str = "base") -> ml_collections.ConfigDict:
    """Return the settings of a model on text files.

    Args:
        size: "base" or "big" as in table 3, or "small".
    """
    if size not in ("base", "big", "small"):
        raise ValueError(
            f"unknown variant {size!r} of own_text.py: choose base, big or small"
        )
    parent = big_ende if size == "big" else base_ende
    config = parent.get_config()
    config.update_from_flattened_dict(TEXT)
    if size == "small":
        config.update_from_flattened_dict(SMALL)
    return config
