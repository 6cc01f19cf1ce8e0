"""Section 6.3 on an open treebank: CRAFT, 18,951 sentences of biology.

  python -m vaswani_jax.main --config=configs/parsing_craft.py --workdir=runs/craft \\
      --config.data.text_directory=craft

trains the paper's parser on the trees below craft/train, and scores it on those below
craft/dev. They cover full articles, and people annotated them;
docs/results/parsing.md says where to get them. `:small` has the size of
configs/parsing_gum.py for two CPU cores, `:options` adds that file's options.

Two CPU cores: docs/results/parsing.md has the score of `:options`. Without options,
at either size: not run.
"""

import ml_collections

from configs import parsing_gum, parsing_wsj

TREES = {
    "data.text_directory": "craft",
    "data.train_trees": "train",
    "data.valid_trees": "dev",
    "data.test_trees": "",
}


def get_config(variant: str = "paper") -> ml_collections.ConfigDict:
    """Return the settings of a parser of CRAFT.

    Args:
        variant: "paper" for the model of section 6.3; "small" or "options" for those of
            configs/parsing_gum.py.
    """
    if variant not in ("paper", "small", "options"):
        raise ValueError(
            f"unknown variant {variant!r} of parsing_craft.py: choose paper, small or "
            "options"
        )
    if variant == "paper":
        config = parsing_wsj.get_config()
    else:
        config = parsing_gum.get_config("plain" if variant == "small" else variant)
    config.update_from_flattened_dict(TREES)
    return config
