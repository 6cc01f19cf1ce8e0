"""The demo in four target languages: German, French, Spanish and Japanese.

  python -m vaswani_jax.main --config=configs/multilingual.py

A source line begins with the tag of its target language, as "<2de> 3 hours ago".
docs/results/multilingual.md has the time on two CPU cores and the scores.
"""

import ml_collections

from configs import demo


def get_config() -> ml_collections.ConfigDict:
    """Return the settings of the demo's model for four target languages."""
    config = demo.get_config()
    config.update_from_flattened_dict(
        {
            "data.target_locale": "de,fr,es,ja",
            "data.user_symbols": "<2de>,<2fr>,<2es>,<2ja>",
            # As many of each language as in the demo, but for validation.
            "data.num_train": 160_000,
            "data.num_valid": 800,
            "data.num_test": 4000,
            "data.vocab_size": 6000,
            "data.character_coverage": 0.0,  # 0.9999: rare kanji are spelt in bytes
            "optimizer.warmup_steps": 800,
            # Twice the demo's updates.
            "training.num_steps": 1600,
            "training.evaluate_every_steps": 800,
        }
    )
    return config
