"""Section 6.3: the trees of a treebank as pairs of a line of words and a tree."""

import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from vaswani_jax.core import config, files
from vaswani_jax.data import treebank, treebank_files

# The settings that name the trees of a split.
TREE_SETTINGS = {
    "train": ("train_trees", "silver_trees"),
    "valid": ("valid_trees",),
    "test": ("test_trees",),
}


def list_splits(data: config.DataConfig) -> list[str]:
    """Return the splits of a treebank: train, and valid and test if they are named."""
    return ["train", *(s for s in ("valid", "test") if _entries(data, s))]


def read_pairs(data: config.DataConfig, split: str) -> Iterator[tuple[str, str]]:
    """Yield the words of each tree, with spaces between them, and the tree in brackets.

    The trees are clean, see `treebank.clean`; those without a word are left out.
    Training trees come `gold_repeats` times, then the silver ones.

    Raises:
        FileNotFoundError: An entry matches no file.
        ValueError: A file is not one of trees. The message has the file and the line.
    """
    for key in TREE_SETTINGS[split]:
        for _ in range(count_copies(data, key)):
            for tree in read_clean_trees(data, key):
                if tree is not None:
                    words = (leaf.word for leaf in tree.leaves())
                    yield " ".join(words), str(tree)


def read_clean_trees(
    data: config.DataConfig, key: str
) -> Iterator[treebank.Tree | None]:
    """Yield each tree of one of the tree settings, once; None for one without a word.

    Raises:
        FileNotFoundError, ValueError: As `read_pairs`.
    """
    for path in _tree_files(data, key):
        for line, tree in treebank.read_with_lines(path):
            clean_tree = treebank.clean(tree)
            for leaf in clean_tree.leaves() if clean_tree else []:
                if not leaf.word.strip():
                    raise ValueError(
                        f"{path}, line {line}: the word {leaf.word!r} of this tree is "
                        "white space alone, which no line of words can have"
                    )
            text = str(clean_tree)
            if "\0" in text:
                name = next(part for part in text.split() if "\0" in part).strip("()")
                raise ValueError(
                    f"{path}, line {line}: {name!r} of this tree has a NUL character, "
                    "which no word, tag or label can have: remove it"
                )
            yield clean_tree


def count_copies(data: config.DataConfig, key: str) -> int:
    """Return how often a split has each tree of one of the tree settings."""
    return data.gold_repeats if key == "train_trees" else 1


def describe_files(
    data: config.DataConfig, split: str, *, previous: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what identifies the trees of a split: a record of each file by its path.

    Args:
        data: Where the trees are.
        split: The part of them.
        previous: An earlier record, or an empty one. A file that has its path,
            size and modification time is not read again.

    Raises:
        FileNotFoundError: An entry matches no file.
    """
    directory = pathlib.Path(data.text_directory)
    return {
        f"{key}:{os.path.relpath(path, directory)}": files.describe_file(
            path, previous.get(f"{key}:{os.path.relpath(path, directory)}", {})
        )
        for key in TREE_SETTINGS[split]
        for path in _tree_files(data, key)
    }


def setting_of(key: str) -> str | None:
    """Return the setting of a key of `describe_files`; None for other records' keys.

    >>> setting_of("train_trees:wsj/02.mrg"), setting_of("source")
    ('train_trees', None)
    """
    setting, colon, _ = key.partition(":")
    is_known = any(setting in settings for settings in TREE_SETTINGS.values())
    return setting if colon and is_known else None


def check_splits(data: config.DataConfig) -> None:
    """Refuse a file that is read for training and for validation or test.

    Raises:
        FileNotFoundError: An entry matches no file.
        ValueError: Two splits share a file.
    """
    owners: dict[pathlib.Path, str] = {}
    for split in list_splits(data):
        for key in TREE_SETTINGS[split]:
            for path in map(pathlib.Path.resolve, _tree_files(data, key)):
                owner = owners.setdefault(path, key)
                if owner != key:
                    rule = "no tree may be in two splits"
                    if {owner, key} == {"train_trees", "silver_trees"}:
                        rule = "a tree is either of the treebank or silver"
                    raise ValueError(
                        f"config.data.{key} and config.data.{owner} both have {path}: "
                        f"{rule}"
                    )


def _entries(data: config.DataConfig, split: str) -> str:
    return str(getattr(data, f"{split}_trees"))


def _tree_files(data: config.DataConfig, key: str) -> list[pathlib.Path]:
    entries = getattr(data, key)
    if not entries:
        return []
    return treebank_files.find_files(
        pathlib.Path(data.text_directory), entries, key=key
    )
