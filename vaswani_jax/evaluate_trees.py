"""Score a parser's trees against a treebank's by EVALB's rules (section 6.3).

vaswani evaluate-trees gold.trees test.trees --by_label
python -m vaswani_jax.evaluate_trees --gold=gold.trees --test=test.trees
"""

import json
import logging
import pathlib

from absl import flags

from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import paths, plurals
from vaswani_jax.data import text_files, treebank
from vaswani_jax.data.treebank import Tree
from vaswani_jax.evaluation import bracketing
from vaswani_jax.evaluation.bracketing_score import BracketingScore

logger = logging.getLogger(__name__)

GOLD = path_flags.define_path(
    "gold", None, "The reference: trees in brackets, plain or .gz.", required=True
)
TEST = path_flags.define_path(
    "test", None, "A parser's trees of the same sentences.", required=True
)
EVALB = flags.DEFINE_bool(
    "evalb",
    False,
    "Compute EVALB's own figures, of one tree a line: leave out sentences whose words "
    "differ, let the tags of each file decide what is punctuation, count ROOT.",
)
PARAMETERS = flags.DEFINE_enum(
    "parameters",
    bracketing.COLLINS.name,
    list(bracketing.PARAMETERS),
    "EVALB's parameter file. nk leaves out the tags ? and !, too.",
)
BY_LABEL = flags.DEFINE_bool("by_label", False, "Print a table of labels, too.")
BY_LENGTH = flags.DEFINE_bool(
    "by_length", False, "Print a table of sentence lengths, too."
)
JSON = flags.DEFINE_bool("json", False, "Print one JSON object, which has all tables.")


def check_flags() -> None:
    """Refuse missing files, and nk with --evalb: tags of quotes are not repaired."""
    for flag, name in (("--gold", GOLD.value), ("--test", TEST.value)):
        paths.check_readable(name, flag=flag)
    if EVALB.value and PARAMETERS.value == bracketing.NK.name:
        raise ValueError(
            "--evalb does not support --parameters=nk, with which EVALB also repairs "
            "tags of quotes; use --parameters=COLLINS"
        )


def main() -> None:
    """Print the score."""
    files = pathlib.Path(GOLD.value), pathlib.Path(TEST.value)
    score = _score_lines(*files) if EVALB.value else _score_trees(*files)
    if JSON.value:
        print(json.dumps(score.as_dict()))
    else:
        print(score.format(by_label=BY_LABEL.value, by_length=BY_LENGTH.value))


def _score_trees(gold_path: pathlib.Path, test_path: pathlib.Path) -> BracketingScore:
    lines, (gold, test) = zip(*map(_read_trees, (gold_path, test_path)), strict=True)
    parameters = bracketing.PARAMETERS[PARAMETERS.value]
    num_pairs = min(len(gold), len(test))
    try:
        # A missing tree shows first in the words of the next.
        score = bracketing.score(
            gold[:num_pairs], test[:num_pairs], parameters=parameters
        )
    except treebank.WordMismatchError as error:
        gold_line, test_line = (numbers[error.number - 1] for numbers in lines)
        raise ValueError(
            f"{test_path}, line {test_line} (gold: {gold_path}, line {gold_line}): "
            f"{error.reason}; the words must be the same, or --evalb leaves the "
            "sentence out"
        ) from None
    if len(gold) != len(test):
        side = int(len(test) > len(gold))
        raise ValueError(
            f"{gold_path} has {len(gold):,} trees, {test_path} {len(test):,}: every "
            "gold tree needs one test tree, and none is left for "
            f"{(gold_path, test_path)[side]}, line {lines[side][num_pairs]}"
        )
    return score


def _read_trees(path: pathlib.Path) -> tuple[list[int], list[Tree]]:
    """Return the trees of a file that have words, after the lines they begin on.

    A parser is given no sentence without words.
    """
    trees = list(treebank.read_with_lines(path))
    with_words = [pair for pair in trees if treebank.clean(pair[1]) is not None]
    if not with_words:
        raise ValueError(f"{path}: no tree has words")
    if num_empty := len(trees) - len(with_words):
        logger.info(
            f"{path}: {plurals.format_count(num_empty, 'tree')} without words left out"
        )
    return [line for line, _ in with_words], [tree for _, tree in with_words]


def _score_lines(gold_path: pathlib.Path, test_path: pathlib.Path) -> BracketingScore:
    gold, test = (_read_lines(path) for path in (gold_path, test_path))
    for label in sorted(treebank.ROOTS - bracketing.COLLINS.deleted_labels):
        count = sum(
            any(tree.label == label and tree.children for tree in line or ())
            for line in gold
        )
        if count:
            logger.warning(
                f"EVALB counts the outermost bracket {label!r} as a constituent, on "
                f"{plurals.format_count(count, 'line')} of {gold_path}"
            )
    return bracketing.score_as_evalb(gold, test)


def _read_lines(path: pathlib.Path) -> list[list[Tree] | None]:
    """Return the trees of each line of a file, None for a line that is not of trees."""
    lines: list[list[Tree] | None] = []
    reasons = {}
    for number, text in enumerate(text_files.read_lines(path), start=1):
        try:
            # EVALB reads a bracket without a label as one whose label is "".
            lines.append(list(treebank.parse([text], name="", needs_labels=False)))
        except treebank.TreeError as error:
            lines.append(None)
            reasons[number] = error.reason.removesuffix(" of the file")
    if reasons:
        number, reason = next(iter(reasons.items()))
        logger.warning(
            f"{path}, line {number}: {reason}; counted as an error, as are all lines "
            f"that are not of trees, {len(reasons):,} in this file"
        )
    return lines


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("gold", "test")),
    check_flags=check_flags,
    uses_devices=False,
)

if __name__ == "__main__":
    PROGRAM.run()
