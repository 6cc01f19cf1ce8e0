"""Outputs of made-up systems, whose true difference is known, and texts of runs."""

import pathlib
import random
from typing import Any

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.data import prepared
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


def write(path: pathlib.Path, lines: list[str]) -> str:
    """Write lines to a file, and return its path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def run_settings(folder: pathlib.Path, **changes: Any) -> config.Config:
    """Return the settings of a run on the text that `prepare` writes to a folder."""
    values = {
        "data.source": "text",
        "data.text_directory": str(folder),
        "data.train_source": "train.source",
        "data.train_target": "train.target",
        "data.test_source": "test.source",
        "data.test_target": "test.target",
        "data.valid_source": "",
        "data.valid_target": "",
        "data.directory": str(folder / "data"),
        "data.target_locale": "de",
        "data.vocab_size": 300,
        "data.byte_fallback": True,
        "data.max_length": 64,
        "model.max_positions": 256,
        "training.best_metric": "loss",
    }
    return settings.small_settings(**values | changes)


def prepare(
    folder: pathlib.Path, **texts: tuple[list[str], list[str]]
) -> prepared.PreparedData:
    """Return the prepared data of the source and target lines of splits."""
    for split, sides in texts.items():
        for side, side_lines in zip(("source", "target"), sides, strict=True):
            write(folder / f"{split}.{side}", side_lines)
    return prepared.open_or_prepare(
        run_settings(folder), folder / "data", rebuild=False
    )


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
