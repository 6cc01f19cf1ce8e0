"""A directory of synthetic sentence pairs, in shards that survive a kill.

`shard-00000.source` and `shard-00000.target` are the sides of the first shard.
`manifest.json` has the settings that made them, and the digests of each finished shard.
`corpora.toml`, a value of config.data.corpora, is written last.
"""

import collections
import contextlib
import glob
import json
import logging
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vaswani_jax.core import config, files, types
from vaswani_jax.data import text_files

MANIFEST = "manifest.json"
CORPORA = "corpora.toml"
COMMENT = "# Set config.data.corpora to this file to train on its pairs."
LOCK = "lock"
VERSION = 1
# Settings that manifests may lack; one that lacks them has any value of them.
OPTIONAL_SETTINGS = ("text_form",)
# May change when a corpus resumes: users lower it when memory runs out.
INCIDENTAL_SETTING = "search.source_tokens_per_batch"
# Characters that the name of a corpus may not have, or may not begin with.
NOT_IN_NAME = re.compile(r"^[^A-Za-z0-9]+|[^A-Za-z0-9_.-]")

logger = logging.getLogger(__name__)


class SyntheticCorpus:
    """A directory of shards, some of them written; `open_corpus` opens it.

    Attributes:
        directory: Its path.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        settings: Mapping[str, Any],
        *,
        shards: Mapping[int, dict[str, Any]],
    ) -> None:
        """Keep the parts; nothing is read or written.

        Args:
            directory: An existing one.
            settings: All that decides the text, by names.
            shards: What the manifest records of each shard that is written.
        """
        self.directory = directory
        self._settings = dict(settings)
        self._shards = dict(shards)

    def is_written(self, shard: int) -> bool:
        """Return whether a shard is complete; warn of a damaged one, and forget it.

        Args:
            shard: Its number, from 0.
        """
        if shard not in self._shards:
            return False
        digests = files.parse_digests(self._shards[shard]["files"])
        if damage := files.describe_difference(digests, self.directory):
            logger.warning(f"{self.directory}: {damage}: writing the shard again")
            del self._shards[shard]
            return False
        return True

    def write(
        self,
        shard: int,
        sides: Mapping[str, Sequence[str]],
        *,
        counts: Mapping[str, int],
    ) -> None:
        """Write a shard; after a kill, all of it counts or nothing.

        Byte-order marks at the beginning of lines and carriage returns at their ends
        are left out, as readers of text files drop them.

        Args:
            shard: Its number, from 0.
            sides: The lines of each of `types.SIDES`.
            counts: Counts of the shard, which `total` adds up.
        """
        paths = []
        for side in types.SIDES:
            path = self.directory / f"shard-{shard:05}.{side}"
            unfinished = path.with_name(f"{path.name}.unfinished")
            lines = (line.lstrip("\ufeff").rstrip("\r") for line in sides[side])
            text_files.write_lines(unfinished, lines)
            paths.append(unfinished.replace(path))
        digests = files.hash_files(paths, directory=self.directory)
        self._shards[shard] = {"files": digests, "counts": dict(counts)}
        self.write_manifest()

    def finish(self, *, tag: str) -> pathlib.Path:
        """Write `corpora.toml`, and return its path.

        Its names are absolute, so that files of several corpora can be joined.

        Args:
            tag: The first word of source lines in training; "" for none.
        """
        directory = self.directory.resolve()
        folder = glob.escape(str(directory))
        texts = {
            "name": NOT_IN_NAME.sub("", directory.name) or "synthetic",
            **{side: f"{folder}/shard-*.{side}" for side in types.SIDES},
            **({"tag": tag} if tag else {}),
        }
        lines = [f"{key} = {_toml_text(value)}" for key, value in texts.items()]
        return files.write_atomically(
            self.directory / CORPORA,
            "\n".join([COMMENT, "[[corpora]]", *lines, ""]),
        )

    @property
    def total(self) -> collections.Counter[str]:
        """The sums of the counts of all shards."""
        total: collections.Counter[str] = collections.Counter()
        for entry in self._shards.values():
            total.update(entry["counts"])
        return total

    def write_manifest(self) -> None:
        """Write the settings that made the corpus, and its finished shards."""
        record = {
            "version": VERSION,
            "settings": self._settings,
            "total": dict(self.total),
            "shards": dict(sorted(self._shards.items())),
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        files.write_atomically(self.directory / MANIFEST, f"{text}\n")


@contextlib.contextmanager
def open_corpus(
    directory: pathlib.Path, settings: Mapping[str, Any]
) -> Iterator[SyntheticCorpus]:
    """Begin or continue a corpus; the context locks its directory.

    Args:
        directory: A path where nothing is, an empty directory, or that of a corpus.
        settings: All settings by name. `text_settings` says which are recorded.

    Raises:
        ValueError: The directory has other files, its corpus was begun with other
            settings, its manifest is damaged, or another program has locked it.
        OSError: It cannot be written.
    """
    settings = text_settings(settings)
    path = directory / MANIFEST
    try:
        str(directory.resolve()).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"--output={directory}: the path {directory.resolve()} is not UTF-8, and "
            f"{CORPORA} must name it: name another directory"
        ) from None
    if "#" in str(directory.resolve()):
        raise ValueError(
            f"--output={directory} must have no #, which names a column in the name of "
            "a text"
        )
    names: set[str] = set()
    if directory.is_dir():
        names = {entry.name for entry in directory.iterdir()}
    if MANIFEST not in names and names - {LOCK, f"{MANIFEST}.unfinished"}:
        raise ValueError(
            f"--output={directory} has other files: name a new directory, or one that "
            "the same command began"
        )
    with files.held(directory, option="--output"):
        shards: dict[int, dict[str, Any]] = {}
        if path.is_file():
            record = _read(path)
            _check_settings(record["settings"], settings, directory=directory)
            shards = {int(number): entry for number, entry in record["shards"].items()}
        corpus = SyntheticCorpus(directory, settings, shards=shards)
        corpus.write_manifest()
        yield corpus


def text_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide the text.

    >>> model = {"step": 3, "settings": {"d_model": 512, "rematerialize": True}}
    >>> text_settings({"search.source_tokens_per_batch": 64, "models": [model]})
    {'models': [{'step': 3, 'settings': {'d_model': 512}}]}

    Args:
        settings: Those of a manifest, which may be of an earlier version.
    """
    text = {key: value for key, value in settings.items() if key != INCIDENTAL_SETTING}
    if "models" in text:
        text["models"] = [
            {**model, "settings": _inference_settings(dict(model["settings"]))}
            for model in text["models"]
        ]
    return text


def _inference_settings(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's settings without those that matter in training alone."""
    training = {
        setting.name
        for setting in config.SETTINGS.values()
        if setting.section == "model" and setting.changeable
    }
    return {name: value for name, value in model.items() if name not in training}


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
        version = record["version"]
        record["settings"] = text_settings(dict(record["settings"]))
        dict(record["shards"])
    except (OSError, TypeError, ValueError, KeyError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): name another --output"
        ) from None
    if version != VERSION:
        raise ValueError(
            f"{path} has version {version}, this program reads {VERSION}: name another "
            "--output"
        )
    return record


def _check_settings(
    recorded: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    directory: pathlib.Path,
) -> None:
    changes = [
        f"{key}={recorded.get(key)!r}, not {settings.get(key)!r}"
        for key in sorted({*recorded, *settings})
        if recorded.get(key) != settings.get(key)
        and (key in recorded or key not in OPTIONAL_SETTINGS)
    ]
    if changes:
        raise ValueError(
            f"--output={directory} was begun with {'; '.join(changes)}: use the same "
            "settings, or name another --output"
        )


def _toml_text(text: str) -> str:
    # A JSON string is a TOML string, except for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
