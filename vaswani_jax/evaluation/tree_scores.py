"""Score lines of trees as `bracketing` does, in the form of all other scores."""

from collections.abc import Sequence

from vaswani_jax.data import treebank
from vaswani_jax.evaluation import bracketing
from vaswani_jax.evaluation.bleu import Score
from vaswani_jax.inference.results import Hypothesis


def score_trees(outputs: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Return F1, then the other figures of `bracketing.score`.

    Args:
        outputs: A tree in brackets a line.
        references: A tree for each, over the same words.

    Raises:
        ValueError: A line is no tree, or the trees are not over the same words.
    """
    gold, test = (
        list(treebank.parse(lines, name=name))
        for lines, name in ((references, "references"), (outputs, "outputs"))
    )
    result = bracketing.score(gold, test)
    return [
        Score(name, value, result.signature) for name, value in result.figures().items()
    ]


def score_well_formed(hypotheses: Sequence[Hypothesis]) -> Score:
    """Return `well_formed`, the percentage of outputs that needed no repair."""
    num_trees = sum(not hypothesis.is_repaired for hypothesis in hypotheses)
    value = 100 * num_trees / max(1, len(hypotheses))
    return Score("well_formed", value, f"well_formed|sentences:{len(hypotheses)}")
