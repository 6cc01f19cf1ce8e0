"""Raw text, as crawled from the web: own_text.py with every cleaning rule.

  vaswani train raw_text --workdir=runs/raw --config.data.text_directory=DIR \\
      --config.data.source_locale=en --config.data.target_locale=de

Files and variants are those of own_text.py (`raw_text:small`, `raw_text:big`). Training
pairs that are hardly translations are left out: the log and manifest.json of the
prepared data say how many by which rule, cleaning.tsv has examples. Validation and test
text stay as they are. The language rule needs `pip install 'vaswani-jax[langid]'`, or
--config.data.clean_language_odds=0.

Not run as it stands; docs/tutorials/raw_text.md shows what it leaves out.
"""

import ml_collections

from configs import own_text

CLEANING = {
    "data.clean_empty": True,
    "data.clean_control_characters": True,
    "data.clean_encodings": True,
    "data.clean_max_characters": 1000,
    "data.clean_equal_sides": True,
    # For two alphabetic languages. Chinese text is shorter: 5.
    "data.clean_max_ratio": 2.5,
    "data.clean_min_letters": 0.4,
    "data.clean_min_script": 0.5,
    # Chosen so that correct short lines stay.
    "data.clean_language_odds": 100.0,
    "data.clean_duplicates": True,
}


def get_config(size: str = "base") -> ml_collections.ConfigDict:
    """Return the settings of a model on text files, with cleaning.

    Args:
        size: "base", "big" or "small" as in own_text.py.
    """
    config = own_text.get_config(size)
    config.update_from_flattened_dict(CLEANING)
    return config
