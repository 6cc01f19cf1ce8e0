"""Refuse processes that would translate with different models, settings or texts."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vaswani_jax.core import config, processes
from vaswani_jax.inference.translator import Translator


def check_processes_agree(
    translators: Sequence[Translator],
    *,
    texts: Iterable[Iterable[str]],
    flags: Mapping[str, Any],
) -> None:
    """Refuse processes whose outputs would differ from those of process 0.

    With one process, neither parameters nor texts are read.

    Args:
        translators: The one that translates or scores, and those that rerank.
        texts: The lines of each text that is read.
        flags: Further flags that decide the outputs, by their names.

    Raises:
        ValueError: Names what differs; raised in every process.
    """
    if processes.num_processes() == 1:
        return
    settings = [config.shared_values(translator.config) for translator in translators]
    vocabularies = [translator.vocabulary.fingerprint for translator in translators]
    models = [
        [member.describe() for member in translator.members]
        for translator in translators
    ]
    processes.refuse_differences(
        {
            "input": repr([_digest(lines) for lines in texts]),
            "vocabulary": repr(vocabularies),
            "models": repr(models),
            "settings": repr(settings),
            "flags": repr(flags),
        }
    )


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()
