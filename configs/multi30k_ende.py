"""Multi30k En-De, 29,000 pairs, the model size of the published 41.02 BLEU.

python -m vaswani_jax.main --config=configs/multi30k_ende.py --workdir=runs/multi30k
python -m vaswani_jax.main --config=configs/multi30k_ende.py:raw --workdir=runs/raw

Two CPU cores, 2.2 hours beside other work: 38.35 tokenised BLEU on
test_2016_flickr, by the commands in the README (the scale lowered at 6,750 updates).
Raw: 36.17 sacreBLEU after 4,000 updates, 0.8 hours beside other work.
"""

import ml_collections

from configs import own_text


def get_config(text: str = "lc_norm_tok") -> ml_collections.ConfigDict:
    """The small model on Multi30k.

    Args:
        text: "lc_norm_tok", the published form (lower-cased, normalised, tokenised),
            or "raw" (cased, untokenised).
    """
    if text not in ("lc_norm_tok", "raw"):
        raise ValueError(f"multi30k_ende.py has lc_norm_tok and raw, got {text!r}")
    config = own_text.get_config("small")
    config.update_from_flattened_dict(
        {
            "data.source_locale": "en",
            "data.target_locale": "de",
            "data.text_directory": f"../shared/data/multi30k_ende/{text}",
            "data.train_source": "train.en",
            "data.train_target": "train.de",
            "data.valid_source": "val.en",
            "data.valid_target": "val.de",
            "data.test_source": "test_2016_flickr.en",
            "data.test_target": "test_2016_flickr.de",
            "data.text_form": "tokenized" if text == "lc_norm_tok" else "detokenized",
            "data.sentencepiece_sample_size": 1_000_000,
            "training.keep_checkpoints": 10,
            "training.average_checkpoints": 10,
        }
    )
    return config
