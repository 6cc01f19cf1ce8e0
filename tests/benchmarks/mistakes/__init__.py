"""The mistakes that `planted_mistakes` plants, by the room of the code."""

from tests.benchmarks.mistakes import (
    core,
    data,
    evaluation,
    inference,
    model,
    paper,
    plots,
    training,
)

MISTAKES = (
    *core.MISTAKES,
    *data.MISTAKES,
    *evaluation.MISTAKES,
    *inference.MISTAKES,
    *model.MISTAKES,
    *paper.MISTAKES,
    *plots.MISTAKES,
    *training.MISTAKES,
)
