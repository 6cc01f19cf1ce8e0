"""Section 5.1: the record of what prepared data was made from, and what differs."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

from vaswani_jax.core import config, files
from vaswani_jax.data import sources

NAME = "manifest.json"
Log = Callable[[str], None]


def read(directory: pathlib.Path) -> dict[str, Any]:
    """The manifest of a directory.

    Raises:
        FileNotFoundError: Nothing was prepared there.
        ValueError: The manifest is damaged.
    """
    path = directory / NAME
    if not path.exists():
        raise FileNotFoundError(
            f"no prepared data in {directory}: run vaswani_jax.prepare_data or "
            "vaswani_jax.main first"
        )
    try:
        found = dict(json.loads(path.read_text()))
        missing = {"settings", "text", "vocabulary", "counts"} - found.keys()
        if missing:
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        for key in ("settings", "text", "counts"):
            if not isinstance(found[key], dict):
                raise ValueError(f"its {key} are {found[key]!r}")
        files.parse_digests(found.get("files", {}))
        return found
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); pass --rebuild_data to prepare again"
        ) from None


def recorded_settings(data: config.DataConfig) -> dict[str, Any]:
    """Return the settings of data that the prepared files depend on."""
    return {
        setting.name: getattr(data, setting.name)
        for setting in config.SETTINGS.values()
        if setting.affects == "data"
    }


def check_files(directory: pathlib.Path, split: str) -> None:
    """Compare a split's files with what was written, if that is on record.

    Raises:
        ValueError: One of them is not what was written.
    """
    written = files.parse_digests(read(directory).get("files", {}))
    found = {name: of for name, of in written.items() if name.startswith(f"{split}.")}
    if reason := files.describe_difference(found, directory):
        raise ValueError(
            f"the prepared data in {directory} is damaged: {reason}; restore it or "
            "pass --rebuild_data"
        )


def refuse_difference(
    settings: config.Config, directory: pathlib.Path, *, text: bool, log: Log
) -> None:
    """Check that a directory was prepared with these settings and from this text.

    Args:
        settings: What is wanted.
        directory: What is there.
        text: Whether the text is compared, too.
        log: Told of text that is not there to be compared.

    Raises:
        ValueError: Something differs; the message names all that does.
    """
    there = read(directory)
    if text and not there["text"]:
        raise ValueError(
            f"{directory} has an imported model's vocabulary and no text: decode and "
            "export use it. A run of your own starts from it in another --workdir, by "
            "main --init_from"
        )
    before = config.flatten_record({"data": there["settings"]})
    differences: list[str] = []
    notes: list[str] = []
    for key, now in recorded_settings(settings.data).items():
        was = before.get(f"data.{key}")
        if was != now:
            differences.append(f"config.data.{key} is {now!r}, was {was!r}")
    if text:
        for split in sources.splits(settings.data):
            differences += _text_difference(
                settings, split, there["text"].get(split), log=notes.append
            )
    if differences:
        raise ValueError(
            f"{directory} was prepared from other data: {'; '.join(differences)}. "
            "Prepare it again (prepare_data or main with --rebuild_data), restore the "
            "settings, or name another --workdir"
        )
    for note in notes:
        log(note)


def _text_difference(
    settings: config.Config, split: str, was: dict[str, Any] | None, *, log: Log
) -> list[str]:
    if was is None:
        return [f"the split {split!r} was not there"]
    try:
        now = sources.text_record(settings.data, split, seed=settings.seed, known=was)
    except FileNotFoundError as error:
        log(f"note: {error}; the prepared {split!r} data is used")
        return []
    if identity(now) == identity(was):
        return []
    if now.get("seed") != was.get("seed"):
        # Every split has the seed; one of them tells.
        told = f"config.seed is {now.get('seed')}, was {was.get('seed')}"
        return [told] if split == "train" else []
    return [f"the text of {split!r} has changed"]


def identity(record: dict[str, Any]) -> dict[str, Any]:
    """The record without what copying a file changes."""
    return {
        key: value.get("sha256") if isinstance(value, dict) else value
        for key, value in record.items()
    }
