"""Suggest names for a mistyped word, as the end of an error."""

import contextlib
import difflib
import pathlib
from collections.abc import Iterable

from vaswani_jax.core.config import SETTINGS


def suggest(word: str, names: Iterable[str], *, prefix: str = "") -> str:
    """Return a question for the name that is closest to a word, or "".

    >>> suggest("trian", ["train", "translate"])
    '; did you mean train?'
    """
    return _question(prefix + name for name in find_closest(word, names))


def find_closest(word: str, names: Iterable[str]) -> list[str]:
    """Return the name that is closest to a word, or no name.

    >>> find_closest("trian", ["train", "translate"]), find_closest("x", ["train"])
    (['train'], [])
    """
    return difflib.get_close_matches(word, list(names), n=1)


def suggest_setting(key: str) -> str:
    """Return a question for the settings or the section closest to an unknown key.

    Looks for the last part of the key: as it is in any section, mistyped in the key's
    section, mistyped in any section.

    >>> suggest_setting("beam_size")
    '; did you mean config.search.beam_size?'
    """
    if key in SETTINGS:
        return ""  # The configuration lacks it, but it is no mistake.
    section, _, name = key.rpartition(".")
    keys = [*SETTINGS, *{setting.section: None for setting in SETTINGS.values()}]
    siblings = [
        candidate for candidate in keys if candidate.rpartition(".")[0] == section
    ]
    for candidates, similarity in ((keys, 1), (siblings, 0.6), (keys, 0.6)):
        names = {key: key.rpartition(".")[2] for key in candidates}
        close = difflib.get_close_matches(name, names.values(), n=1, cutoff=similarity)
        if close:
            return _question(f"config.{key}" for key in names if names[key] == close[0])
    return ""


def suggest_directory(path: pathlib.Path) -> str:
    """Return a question for the directory whose name is closest to a missing one's."""
    names = []
    with contextlib.suppress(OSError):
        names = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
    closest = find_closest(path.name, names)
    return _question(str(path.with_name(name)) for name in closest)


def _question(names: Iterable[str]) -> str:
    choices = " or ".join(names)
    return f"; did you mean {choices}?" if choices else ""
