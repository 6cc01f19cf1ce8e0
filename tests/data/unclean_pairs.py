"""Good pairs, and pairs that one of the cleaning rules leaves out."""

import functools

import hypothesis.strategies as st

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.data import cleaning

GOOD = [
    ("Two dogs are playing on the grass.", "Zwei Hunde spielen auf der Wiese."),
    ("A man is riding his bicycle.", "Ein Mann fährt mit seinem Fahrrad."),
    ("Hi.", "Guten Tag."),
    ("No!", "Nein!"),
    ("Tom", "Tom's"),
    ("It is 5 o'clock.", "Es ist 17 Uhr."),
]
LONG = "word " * 50
# For each rule its value, and pairs that it alone leaves out, of all rules.
PLANTED: dict[str, tuple[object, list[tuple[str, str]]]] = {
    "empty": (True, [("", "Ein Hund."), (" \t", "Ein Hund."), ("A dog.", "")]),
    "control_characters": (
        True,
        [("A dog\x07.", "Ein Hund."), ("A dog.", "Ein Hund\ue001."), ("A\x85", "Ein")],
    ),
    "encodings": (
        True,
        [
            ("A door.", "Eine TÃ¼r."),
            ("A door.", "Eine T\ufffdr."),
            ("Itâ€™s", "Es ist"),
        ],
    ),
    "max_characters": (100, [(LONG, "Wort " * 50), ("Words " * 15, "Wort " * 21)]),
    "equal_sides": (True, [("A dog.", "A  DOG. "), ("London", "London")]),
    "max_ratio": (2.0, [("Two dogs play on the grass here.", "Hunde.")]),
    "min_letters": (0.5, [("12:30 - 14:45", "12.30-14.45"), ("(1) a", "(1) ein")]),
    "min_script": (0.5, [("A dog.", "Одна собака."), ("Собака a", "Ein Hund.")]),
    "language_odds": (
        100.0,
        [
            ("Zwei Hunde spielen auf der Wiese.", "Drei Hunde spielen auf der Wiese."),
            ("The dogs are playing there.", "Two dogs are playing on the grass."),
        ],
    ),
    "duplicates": (True, [GOOD[0], (" Hi. ", "Guten  Tag."), GOOD[0]]),
}
# Texts that break several rules.
TEXTS = st.text(st.sampled_from("aBäß яЖ1.-\t \x07\ue000"), max_size=7)


@functools.cache
def data_of(**rules: object) -> config.DataConfig:
    """Return settings with some rules on."""
    values = {f"data.clean_{name}": value for name, value in rules.items()}
    return settings.small_settings(**{"data.source": "reverse", **values}).data


def cleaned(pairs: list, data: config.DataConfig) -> cleaning.Cleaner:
    """Return a cleaner that has examined pairs, after checking its numbers."""
    cleaner = cleaning.Cleaner(data)
    cleaner.examine({"": iter(pairs)})
    kept = list(cleaner.keep(iter(pairs)))
    assert cleaner.num_pairs == len(pairs)
    assert cleaner.num_kept() == len(kept) == len(pairs) - sum(cleaner.counts.values())
    return cleaner


def all_rules() -> dict[str, object]:
    """Return the value of each rule."""
    return {name: value for name, (value, _) in PLANTED.items()}
