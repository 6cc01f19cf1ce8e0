"""Outputs of made-up systems, whose true difference is known."""

import random

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.evaluation.comparison import System, Text
from vaswani_jax.evaluation.word_counts import WordCounts

WORDS = (
    "der die das Haus Hund Weg geht sieht liest heute morgen Anna Berlin 12 7".split()
)


def scoring(**changes: object) -> config.DataConfig:
    """Return the settings of plain German text."""
    plain = {"data.text_form": "detokenized", "data.target_locale": "de"}
    return settings.small_settings(**plain | changes).data


def lines(count: int, *, seed: int = 0) -> list[str]:
    """Return lines of 3 to 14 words."""
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randrange(3, 15)))
        for _ in range(count)
    ]


def with_errors(references: list[str], *, share: float, seed: int) -> list[str]:
    """Return lines in which a share of the words is another one."""
    generator = random.Random(seed)
    return [
        " ".join(
            "Fehler" if generator.random() < share else word for word in line.split()
        )
        for line in references
    ]


REFERENCES = lines(150)
TEXT = Text(
    "test",
    [f"Source: {line}" for line in REFERENCES],
    REFERENCES,
    scoring(),
    WordCounts({"der": 5, "Anna": 1}, "2 lines", str.split),
)
# Two seeds of a recipe, and the recipe with half of the pairs.
SEEDS = [
    System(f"seed{seed}", [with_errors(REFERENCES, share=0.2, seed=seed)], "made up")
    for seed in (1, 2)
]
RECIPE = System(
    "recipe",
    [with_errors(REFERENCES, share=0.2, seed=seed) for seed in (1, 2)],
    "2 seeds: made up",
)
SAME = System(
    "same",
    [with_errors(REFERENCES, share=0.2, seed=seed) for seed in (14, 15, 16)],
    "3 seeds: made up",
)
HALF = System(
    "half", [with_errors(REFERENCES, share=0.3, seed=3)], 'made <up> & "short"'
)
# Outputs without spaces between words, two letters of which differ.
WITHOUT_SPACES = [
    System(name, [[line]], "made up")
    for name, line in (("happy", "他很高兴。"), ("glad", "他很开心。"))
]
CHINESE = Text(
    "test", ["x"], ["他很高兴。"], scoring(**{"data.target_locale": "zh"}), None
)
