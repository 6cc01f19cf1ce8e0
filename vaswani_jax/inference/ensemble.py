"""Load the models that translate together: one checkpoint, or an ensemble.

Section 6.1 averages parameters; an ensemble averages the probabilities of its models.
"""

import dataclasses
import logging
import pathlib
from collections.abc import Sequence
from typing import Any

from vaswani_jax.checkpoints import compatibility, select, store
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config, parsing, rules
from vaswani_jax.core.locales import describe_direction, language_code
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Member:
    """A model that translates, alone or with others.

    Attributes:
        model: Its architecture.
        checkpoint: A `Checkpoint`: its parameters, and what is recorded with them.
    """

    model: config.ModelConfig
    checkpoint: Checkpoint

    @property
    def params(self) -> Any:
        """The tree of parameters, as NumPy arrays."""
        return self.checkpoint.items["params"]

    def describe(self) -> dict[str, Any]:
        """Return its step, the digest of its parameters, and its architecture."""
        return {
            "step": self.checkpoint.step,
            "parameters": store.digest(self.params),
            "settings": dataclasses.asdict(self.model),
        }


def check_positions(settings: config.Config, members: Sequence[Member]) -> None:
    """Refuse a search that is longer than the learned positions of a model.

    Args:
        settings: How to search.
        members: The models that search together.

    Raises:
        ValueError: A model has too few positions. Of several models, the message has
            its number, from 1.
    """
    for number, member in enumerate(members, start=1):
        try:
            rules.check_positions(dataclasses.replace(settings, model=member.model))
        except ValueError as error:
            prefix = f"model {number} of {len(members)}: " if len(members) > 1 else ""
            raise ValueError(f"{prefix}{error}") from None


def load_members(
    settings: config.Config,
    workdir: pathlib.Path,
    *,
    vocabulary: Vocabulary,
    checkpoints: str,
    ensemble: Sequence[tuple[pathlib.Path, str]],
) -> list[Member]:
    """Load the models that translate together, and log which they are.

    Args:
        settings: Of the run in `workdir`.
        workdir: The run's directory.
        vocabulary: The subwords that all models must have.
        checkpoints: Checkpoints of that run, separated by commas.
        ensemble: The directories of other runs, and which of their checkpoints.

    Raises:
        CheckpointError: One is missing, damaged, or of another vocabulary.
        ValueError: A workdir has no configuration of a model, or one that translates
            other languages.
    """
    sources = [(workdir, settings, name) for name in checkpoints.split(",")]
    for directory, name in ensemble:
        member = parsing.load(directory)
        _check_direction(settings.data, member.data, directory=directory)
        run_settings = dataclasses.replace(settings, model=member.model)
        try:
            rules.check_positions(run_settings)
        except ValueError as error:
            raise ValueError(f"--ensemble={directory}: {error}") from None
        sources.append((directory, run_settings, name))
    members = []
    for directory, member_settings, name in sources:
        checkpoint = select.select(directory, name)
        try:
            compatibility.check_fits(
                checkpoint, settings=member_settings, vocabulary=vocabulary
            )
        except CheckpointError as error:
            raise CheckpointError(f"{directory}: {error}") from None
        logger.info(select.describe(directory, name, checkpoint=checkpoint))
        members.append(Member(member_settings.model, checkpoint))
    return members


def _check_direction(
    data: config.DataConfig, member_data: config.DataConfig, *, directory: pathlib.Path
) -> None:
    """Refuse a member of another source language, or with no target language of ours.

    The vocabulary does not tell: both directions may share it.
    """
    has_same_source = _languages(data.source_locale) == _languages(
        member_data.source_locale
    )
    targets, member_targets = (
        _languages(side.target_locale) for side in (data, member_data)
    )
    if not has_same_source or targets.isdisjoint(member_targets):
        wanted, found = (
            describe_direction(side.source_locale, side.target_locale)
            for side in (data, member_data)
        )
        raise ValueError(
            f"--ensemble={directory} translates {found}; name a run that translates "
            f"{wanted}"
        )


def _languages(locales: str) -> set[str]:
    """Return the codes of the languages of a side."""
    return set(map(language_code, locales.split(",")))
