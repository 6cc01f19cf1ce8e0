"""The demo: localised phrases of the Unicode CLDR, English to German, by a small model.

  python -m vaswani_jax.main --config=configs/demo.py

`make demo` installs first. README.md has its time on two CPU cores and its score.
"""

import ml_collections

from configs import own_text


def get_config() -> ml_collections.ConfigDict:
    """Return the settings of a 3-layer model of width 128."""
    config = own_text.get_config("small")
    config.update_from_flattened_dict(
        {
            "model.num_layers": 3,
            "model.d_ff": 512,
            "model.dropout_rate": 0.1,
            "data.source": "cldr",
            "data.source_locale": "en",
            "data.target_locale": "de",
            "data.num_train": 40_000,
            "data.num_valid": 500,
            "data.num_test": 1000,
            "data.vocab_size": 3000,
            "data.character_coverage": 1.0,  # the text has few characters
            "data.max_length": 64,
            "data.source_tokens_per_batch": 2048,
            "data.target_tokens_per_batch": 2048,
            "data.num_buckets": 4,
            "optimizer.warmup_steps": 400,
            "optimizer.learning_rate_scale": 1.0,
            "training.num_steps": 800,
            "training.evaluate_every_steps": 400,
            "training.checkpoint_every_steps": 50,
            "training.keep_checkpoints": 5,
            "training.average_checkpoints": 5,
            "search.max_source_tokens": 128,
        }
    )
    return config
