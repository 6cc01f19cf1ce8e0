"""Parse the texts that `vaswani evaluate --split` names, and read them."""

import dataclasses
import pathlib
import re
from collections.abc import Sequence

from vaswani_jax.core import paths
from vaswani_jax.data import columns, text_files

SPLITS = ("valid", "test")
NAME = re.compile(r"[\w.-]+")


@dataclasses.dataclass(frozen=True)
class ScoredText:
    """A text to score: a run's own, or two files.

    Attributes:
        name: "valid", "test", or the name of the text in `evaluations/`.
        source: FILES[#COLUMN] of the source lines; "" for a run's own text.
        references: FILES[#COLUMN] of the references.
    """

    name: str
    source: str = ""
    references: str = ""

    def read(self) -> tuple[list[str], list[str]]:
        """Return the source lines and the references of two files.

        Raises:
            OSError: A file is missing.
            ValueError: A file cannot be read, or they are no lines or not as many.
        """
        source, references = (
            list(columns.read(name, pathlib.Path()))
            for name in (self.source, self.references)
        )
        if len(source) != len(references) or not source:
            raise ValueError(
                f"{self.source} has {len(source):,} lines, {self.references} "
                f"{len(references):,}: every source line needs one reference, and a "
                "score at least one line"
            )
        return source, references


def parse(values: Sequence[str]) -> list[ScoredText]:
    """Return the texts that values of --split name.

    >>> [test_set.name for test_set in parse(["valid,test"])]
    ['valid', 'test']
    >>> parse(["news.en,news.de"])[0].name, parse(["n17=a.en,b.de"])[0].name
    ('news', 'n17')

    Raises:
        ValueError: A value names no text, or two texts have one name.
    """
    sets = [test_set for value in values for test_set in _parse_value(value)]
    names = [test_set.name for test_set in sets]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(
            f"--split names {', '.join(sorted(twice))} twice; name a text with "
            "--split=NAME=SOURCE,REFERENCES"
        )
    return sets


def _stem(file: str) -> str:
    """Return the name of a file without the endings of compression and of language.

    >>> _stem("2014/news.2014.en.gz"), _stem("news")
    ('news.2014', 'news')
    """
    name = pathlib.Path(file.partition("#")[0]).name
    for ending in text_files.COMPRESSIONS:
        name = name.removesuffix(ending)
    return name.rpartition(".")[0] or name


def _parse_value(value: str) -> list[ScoredText]:
    parts = value.split(",")
    if all(part in SPLITS for part in parts):
        return [ScoredText(part) for part in parts]
    name, has_name, files = value.partition("=")
    if not has_name or "," in name:  # Its "=" is in the second file's name.
        has_name, files = "", value
    parts = files.split(",")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f"--split={value} must be valid, test, or two files: SOURCE,REFERENCES or "
            "NAME=SOURCE,REFERENCES"
        )
    name = name if has_name else _stem(parts[0])
    if name in SPLITS:
        raise ValueError(
            f"--split={value}: the name {name!r} means the run's own text; name this "
            f"text: --split=NAME={files}"
        )
    if not NAME.fullmatch(name):
        raise ValueError(
            f"--split={value}: the name may have only letters, digits, dots, dashes "
            f"and underscores, got {name!r}; choose another: --split=NAME={files}"
        )
    return [ScoredText(name, *map(paths.expand_home, parts))]
