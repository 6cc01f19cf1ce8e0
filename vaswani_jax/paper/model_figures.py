"""Figures 1 and 2: which model the report draws."""

import dataclasses

from vaswani_jax.core import config, types
from vaswani_jax.data import vocabulary_training
from vaswani_jax.paper.attention_figures import ShownRun


@dataclasses.dataclass(frozen=True)
class Model:
    """The model of figures 1 and 2.

    Attributes:
        title: What stands above the figures.
        settings: The architecture.
        vocab_size: V.
        note: A sentence that says which model it is.
    """

    title: str
    settings: config.ModelConfig
    vocab_size: types.VocabSize
    note: str


def choose(shown: ShownRun | None, *, base: config.Config) -> Model:
    """Return the model of figures 3 to 5, or without one the base model.

    Args:
        shown: The run of figures 3 to 5.
        base: The base model, whose vocabulary has the size that its settings plan.
    """
    if shown is None:
        return Model(
            title="base",
            settings=base.model,
            vocab_size=vocabulary_training.expected_size(base.data),
            note="Drawn from the running module of the base model: there is no run "
            "that figures 3 to 5 show.",
        )
    name = str(shown.run.workdir)
    return Model(
        title=name,
        settings=shown.translator.config.model,
        vocab_size=shown.translator.vocabulary.size,
        note=f"Drawn from the running module of {name}, the run of figures 3 to 5.",
    )
