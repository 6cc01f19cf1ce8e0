"""Multi30k En-De, 29,000 pairs, the model size of the published 41.02 BLEU.

  python -m vaswani_jax.main --config=configs/multi30k_ende.py --workdir=runs/multi30k
  python -m vaswani_jax.main --config=configs/multi30k_ende.py:raw \\
      --workdir=runs/multi30k_raw

The text lies in ../shared/data/multi30k_ende, or where --config.data.text_directory
says; README.md, "Multi30k", makes such a directory from github.com/multi30k/dataset.

Two CPU cores: 40.25 tokenised BLEU on test_2016_flickr, the mean of three seeds (39.88
to 41.07); seed 1 took 79 minutes, some 20 beside other work. Raw as it stands: not run;
by the command in README.md, 4,000 updates with some other settings, 45 minutes beside
other work: 36.17 sacreBLEU.
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
            "training.num_steps": 10_000,
            "training.evaluate_every_steps": 1000,
            "training.checkpoint_every_steps": 125,
            "training.keep_checkpoints": 32,
            "training.average_checkpoints": 32,
            "search.beam_size": 10,
            "search.length_penalty": 1.5,
        }
    )
    return config
