"""Keep the trees on which two parsers agree, as silver trees (section 6.3).

vaswani agree-trees first.trees second.trees --like=gold.trees --output=silver.trees
python -m vaswani_jax.agree_trees --first=first.trees --second=second.trees \\
    --output=silver.trees
"""

import logging
import pathlib

from absl import flags

from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import paths
from vaswani_jax.data import agreement, text_files, treebank

logger = logging.getLogger(__name__)

FIRST = path_flags.define_path(
    "first", None, "A parser's trees, plain or .gz.", required=True
)
SECOND = path_flags.define_path(
    "second", None, "Another parser's trees of the same sentences.", required=True
)
OUTPUT = path_flags.define_path(
    "output", None, "The file of the trees that are the same in both.", required=True
)
LIKE = path_flags.define_path(
    "like", "", "Trees whose lengths the output is to have; empty to keep all."
)
NUM_TREES = flags.DEFINE_integer(
    "num_trees",
    None,
    "How many trees to choose with --like; fewer if a class of lengths has too few. "
    "By default as many as the scarcest class allows.",
    lower_bound=1,
)
MIN_WORDS = flags.DEFINE_integer(
    "min_words", 1, "Leave out shorter sentences.", lower_bound=1
)


def check_flags() -> None:
    """Refuse missing files or flags, and an output that is one of the inputs."""
    if NUM_TREES.value and not LIKE.value:
        raise ValueError("--num_trees needs --like")
    inputs = {"--first": FIRST.value, "--second": SECOND.value, "--like": LIKE.value}
    for flag, name in inputs.items():
        if not name:
            continue
        path = paths.check_readable(name, flag=flag)
        if path.resolve() == pathlib.Path(OUTPUT.value).resolve():
            raise ValueError(f"--output and {flag} are the same file, {name}")
    output = pathlib.Path(OUTPUT.value)
    if output.is_dir() or not output.parent.is_dir():
        raise ValueError(f"--output={output} cannot be a file: name one in a directory")


def main() -> None:
    """Write the trees and log their number."""
    first, second = (
        list(treebank.read_with_lines(pathlib.Path(name)))
        for name in (FIRST.value, SECOND.value)
    )
    pairs = list(zip(first, second, strict=False))
    trees_by_parser = [[tree for _, tree in side] for side in zip(*pairs, strict=True)]
    try:
        # A missing tree shows first in the words of the next.
        agreed_trees = list(agreement.keep_agreed(trees_by_parser))
    except treebank.WordMismatchError as error:
        (first_line, _), (second_line, _) = pairs[error.number - 1]
        raise ValueError(
            f"{FIRST.value}, line {first_line}, and {SECOND.value}, line "
            f"{second_line}: {error.reason}; both must parse the same sentences"
        ) from None
    if len(first) != len(second):
        raise ValueError(
            f"{FIRST.value} has {len(first):,} trees, {SECOND.value} {len(second):,}: "
            "both must parse the same sentences"
        )
    logger.info(f"{len(agreed_trees):,} of {len(first):,} trees are the same in both")
    trees = [
        tree
        for tree in agreement.distinct(agreed_trees)
        if len(tree.leaves()) >= MIN_WORDS.value
    ]
    if len(trees) < len(agreed_trees):
        logger.info(
            f"{len(trees):,} of them remain without duplicates and sentences of "
            f"fewer than --min_words={MIN_WORDS.value} words"
        )
    if LIKE.value:
        clean_trees = map(treebank.clean, treebank.read(pathlib.Path(LIKE.value)))
        like = [
            tree
            for tree in clean_trees
            if tree and len(tree.leaves()) >= MIN_WORDS.value
        ]
        try:
            trees = agreement.resample(trees, like, num_trees=NUM_TREES.value)
        except ValueError as error:
            raise ValueError(f"--like={LIKE.value}: {error}") from None
        logger.info(f"{len(trees):,} of them are chosen by the lengths of {LIKE.value}")
    if not trees:
        raise ValueError(f"no tree is left for --output={OUTPUT.value}")
    text_files.write_lines(pathlib.Path(OUTPUT.value), map(str, trees))


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("first", "second")),
    check_flags=check_flags,
    uses_devices=False,
)

if __name__ == "__main__":
    PROGRAM.run()
