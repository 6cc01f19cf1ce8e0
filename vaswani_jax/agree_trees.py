"""Keep the trees on which two parsers agree, as silver trees (section 6.3).

vaswani agree-trees first.trees second.trees --like=gold.trees --output=silver.trees
python -m vaswani_jax.agree_trees --first=first.trees --second=second.trees \\
    --output=silver.trees
"""

import collections
import logging
import pathlib
from collections.abc import Iterator

from absl import flags

from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import paths
from vaswani_jax.data import agreement, text_files, treebank
from vaswani_jax.inference import line_io

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
    "like", "", "Trees whose lengths the output is to have; by default all are kept."
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
    line_io.check_outputs(inputs.values(), {"--output": OUTPUT.value})


class _Parser(Iterator[treebank.Tree]):
    """The trees of a parser's file, one at a time: all need much memory.

    Attributes:
        name: The file.
        line: The line of the last tree.
        num_trees: The number of trees that were read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = self.num_trees = 0
        self._trees = treebank.read_with_lines(pathlib.Path(name))

    def __next__(self) -> treebank.Tree:
        self.line, tree = next(self._trees)
        self.num_trees += 1
        return tree


def main() -> None:
    """Write the trees and log their number."""
    first, second = _Parser(FIRST.value), _Parser(SECOND.value)
    num_agreed = 0
    num_words: dict[str, int] = {}
    try:
        # A missing tree shows first in the words of the next.
        for tree in agreement.keep_agreed(zip(first, second, strict=False)):
            num_agreed += 1
            num_words[str(tree)] = len(tree.leaves())
    except treebank.WordMismatchError as error:
        raise ValueError(
            f"{first.name}, line {first.line}, and {second.name}, line {second.line}: "
            f"{error.reason}; both must parse the same sentences"
        ) from None
    for parser in (first, second):
        collections.deque(parser, maxlen=0)  # Count the rest.
    if first.num_trees != second.num_trees:
        raise ValueError(
            f"{first.name} has {first.num_trees:,} trees, {second.name} "
            f"{second.num_trees:,}: both must parse the same sentences"
        )
    logger.info(f"{num_agreed:,} of {first.num_trees:,} trees are the same in both")
    trees = [tree for tree, n in num_words.items() if n >= MIN_WORDS.value]
    if len(trees) < num_agreed:
        logger.info(
            f"{len(trees):,} of them remain without duplicates and sentences of "
            f"fewer than --min_words={MIN_WORDS.value} words"
        )
    if LIKE.value:
        clean_trees = map(treebank.clean, treebank.read(pathlib.Path(LIKE.value)))
        lengths = [len(tree.leaves()) for tree in clean_trees if tree]
        try:
            indices = agreement.resample(
                [num_words[tree] for tree in trees],
                [length for length in lengths if length >= MIN_WORDS.value],
                num_trees=NUM_TREES.value,
            )
        except ValueError as error:
            raise ValueError(f"--like={LIKE.value}: {error}") from None
        trees = [trees[index] for index in indices]
        logger.info(f"{len(trees):,} of them are chosen by the lengths of {LIKE.value}")
    if not trees:
        raise ValueError(f"no tree is left for --output={OUTPUT.value}")
    text_files.write_lines(pathlib.Path(OUTPUT.value), trees)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("first", "second")),
    check_flags=check_flags,
    uses_devices=False,
)

if __name__ == "__main__":
    PROGRAM.run()
