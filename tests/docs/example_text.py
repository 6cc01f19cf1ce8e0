"""Write phrases in English and French, the text that readers of a page have.

  python -m tests.docs.example_text all=3100 text/valid=50

This writes 3,100 lines into all.source and all.target each, and 50 others into those of
text/valid.
"""

import itertools
import pathlib
import sys

import vaswani_jax
from vaswani_jax.data.cldr import pairs


def main() -> None:
    """Write the two sides of each NAME=LINES."""
    names = [argument.partition("=") for argument in sys.argv[1:]]
    sizes = {name: int(lines) for name, _, lines in names}
    changes = {"data.target_locale": "fr", "data.num_train": sum(sizes.values())}
    config = vaswani_jax.load_config("demo", changes)
    phrases = iter(pairs.cldr_pairs(config.data, seed=0)["train"])
    for name, size in sizes.items():
        path = pathlib.Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        sides = zip(*itertools.islice(phrases, size), strict=True)
        for side, lines in zip(("source", "target"), sides, strict=True):
            path.with_suffix(f".{side}").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
