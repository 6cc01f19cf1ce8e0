"""Section 6.1 averages parameters; an ensemble averages what several models say."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from vaswani_jax.core import config
from vaswani_jax.data import vocabulary


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """Models that decode together; parameters are replicated over the devices."""

    models: Sequence[config.ModelConfig]
    params: Sequence[Any]
    subwords: vocabulary.Vocabulary
