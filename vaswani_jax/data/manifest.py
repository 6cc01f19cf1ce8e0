"""The manifest of prepared data: its settings, text and files, in `manifest.json`."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from vaswani_jax.core import config, files

NAME = "manifest.json"


@dataclasses.dataclass(frozen=True)
class Difference:
    """Something that prepared data was prepared from, and that is no longer the same.

    Attributes:
        text: What differs, for an error message.
        is_fixed: Whether a run that has begun must keep it.
    """

    text: str
    is_fixed: bool


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The settings, text and files of a directory of prepared data.

    Attributes:
        settings: The settings of data that the files depend on, see
            `recorded_settings`.
        text: For each split the record of its text, see `sources.text_record`. Empty
            for a vocabulary that was imported with a model.
        vocabulary: Fingerprint of the vocabulary.
        counts: For each split the number of pairs that were kept, and of those that
            were left out: "kept", "empty", "too_long".
        cleaning: The number of training pairs that each rule of `cleaning` left out;
            empty if none is on.
        cleaning_by_corpus: The same for each corpus of `data.corpora`.
        files: Size and digest of each file. Empty where they were not recorded.
        corpora: For each corpus of `data.corpora`, in the order of the token files, its
            part of `counts["train"]`.
        seed: The seed of noise and sampled segmentations. None without them, or for
            generated text, whose own record has it.
        given_vocabularies: The settings that named a file of a vocabulary, without
            "data.".
    """

    settings: Mapping[str, Any]
    text: Mapping[str, dict[str, Any]]
    vocabulary: str
    counts: Mapping[str, dict[str, int]]
    cleaning: Mapping[str, int] = dataclasses.field(default_factory=dict)
    cleaning_by_corpus: Mapping[str, Mapping[str, int]] = dataclasses.field(
        default_factory=dict
    )
    files: files.Digests = dataclasses.field(default_factory=dict)
    corpora: Mapping[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    seed: int | None = None
    given_vocabularies: tuple[str, ...] = ()

    @property
    def corpus_sizes(self) -> dict[str, int]:
        """The number of prepared pairs of each corpus, in their order."""
        return {name: counts["kept"] for name, counts in self.corpora.items()}

    def with_paths_of(self, earlier: "Manifest") -> "Manifest":
        """Return this manifest with the training files' paths of an earlier one.

        Both have the same text; its files may have moved.
        """
        return dataclasses.replace(
            self, text={**self.text, "train": earlier.text["train"]}
        )

    def write(self, directory: pathlib.Path) -> None:
        """Write `manifest.json` into a directory."""
        record = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        for name in (
            "cleaning",
            "cleaning_by_corpus",
            "files",
            "corpora",
            "given_vocabularies",
        ):
            if not record[name]:
                del record[name]
        if self.seed is None:
            del record["seed"]
        (directory / NAME).write_text(json.dumps(record, indent=1), encoding="utf-8")

    def check_files(self, directory: pathlib.Path, split: str) -> None:
        """Compare the files of a split with their recorded digests.

        Raises:
            ValueError: A file is missing or has changed.
        """
        digests = {
            name: digest
            for name, digest in self.files.items()
            if name.startswith(f"{split}.")
        }
        if reason := files.describe_difference(digests, directory):
            raise ValueError(
                f"the prepared data in {directory} is damaged: {reason}; restore it or "
                "pass --rebuild_data"
            )

    def setting_differences(self, data: config.DataConfig) -> list[Difference]:
        """Return the settings that differ from the recorded ones."""
        recorded_values = config.flatten_record({"data": self.settings})
        return [
            Difference(
                f"config.data.{key} is {value!r}, "
                f"was {recorded_values.get(f'data.{key}')!r}",
                is_fixed=not config.SETTINGS[f"data.{key}"].changeable,
            )
            for key, value in recorded_settings(data).items()
            if recorded_values.get(f"data.{key}") != value
        ]


def recorded_settings(data: config.DataConfig) -> dict[str, Any]:
    """Return the settings of data that the prepared files depend on."""
    return {
        setting.name: (
            setting.prepared_part(getattr(data, setting.name))
            if setting.prepared_part
            else getattr(data, setting.name)
        )
        for setting in config.SETTINGS.values()
        if setting.affects == "data"
    }


def read_manifest(directory: pathlib.Path) -> Manifest:
    """Read the manifest of a directory.

    Raises:
        FileNotFoundError: Nothing was prepared there.
        ValueError: The manifest is damaged.
    """
    path = directory / NAME
    if not path.exists():
        raise FileNotFoundError(
            f"no prepared data in {directory}: run `vaswani prepare` or "
            "`vaswani train` first"
        )
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
        missing = {"settings", "text", "vocabulary", "counts"} - record.keys()
        if missing:
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        for key in ("settings", "text", "counts", "corpora"):
            if not isinstance(record.setdefault(key, {}), dict):
                raise ValueError(f"its {key} are {record[key]!r}")
        return Manifest(
            settings=record["settings"],
            text=record["text"],
            vocabulary=record["vocabulary"],
            counts=record["counts"],
            cleaning=dict(record.get("cleaning", {})),
            cleaning_by_corpus=dict(record.get("cleaning_by_corpus", {})),
            files=files.parse_digests(record.get("files", {})),
            corpora=record["corpora"],
            seed=record.get("seed"),
            given_vocabularies=tuple(record.get("given_vocabularies", ())),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); pass --rebuild_data to prepare again"
        ) from None
