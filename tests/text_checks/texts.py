"""Clean text, with faults to plant in it."""

import functools
import itertools
import pathlib
import random
from collections.abc import Sequence

import pytest

from tests.data.cldr import small_pairs
from vaswani_jax.text_checks.sample import Block, Pair, Sample

Splits = dict[str, list[Pair]]


@functools.cache
def clean(target_locale: str) -> dict[str, list[Pair]]:
    """The repository's own text: 900 pairs to train on, 100 and 100 held out.

    It is generated with many more, so that held-out lines are new, and from few
    phrases, as all take seconds.
    """
    with pytest.MonkeyPatch.context() as patch:
        phrases = small_pairs.every_seventh_phrase
        patch.setattr(small_pairs.phrases, "all_phrases", phrases)
        splits = small_pairs.generate("en", target_locale, num_train=1500)
    sizes = {"train": 900, "valid": 100, "test": 100}
    return {split: splits[split][:size] for split, size in sizes.items()}


def splits() -> Splits:
    """The German one, in lists of its own."""
    return {split: list(pairs) for split, pairs in clean("de").items()}


def shuffle_targets(splits: Splits) -> None:
    """Bring targets of the lines 201 to 400 into another order."""
    pairs = splits["train"][200:400]
    targets = [target for _, target in pairs]
    random.Random(0).shuffle(targets)
    splits["train"][200:400] = [
        (pair[0], target) for pair, target in zip(pairs, targets, strict=True)
    ]


def write(directory: pathlib.Path, splits: Splits) -> None:
    """Write each split as SPLIT.source and SPLIT.target."""
    for split, pairs in splits.items():
        for side, name in enumerate(("source", "target")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (directory / f"{split}.{name}").write_text(lines, "utf-8", newline="\n")


def sentences(count: int) -> list[Pair]:
    """Longer lines of everyday words, each once."""
    names = ["Anna", "Peter", "Maria", "Tom", "Julia", "Paul", "Sarah", "David"]
    verbs = [("sees", "sieht"), ("likes", "mag"), ("finds", "findet")]
    nouns = [("dog", "Hund"), ("tree", "Baum"), ("ball", "Ball"), ("table", "Tisch")]
    places = [("garden", "Garten"), ("forest", "Wald"), ("cellar", "Keller")]
    months = [("in May", "im Mai"), ("in March", "im März"), ("in July", "im Juli")]
    drawn = itertools.product(names, verbs, nouns, places, months)
    return [
        (
            f"{name} {verb[0]} the old {noun[0]} in the {place[0]} {month[0]}.",
            f"{name} {verb[1]} den alten {noun[1]} in dem {place[1]} {month[1]}.",
        )
        for name, verb, noun, place, month in itertools.islice(drawn, count)
    ]


def blocks(pairs: Sequence[Pair]) -> list[Block]:
    """All blocks of a text."""
    sample = Sample()
    for pair in pairs:
        sample.add(pair)
    return sample.blocks()
