"""Prepare the subwords of all systems, and join subwords into words.

`prepare` learns the vocabulary as our recipe does. Peers get files of these subwords,
separated by spaces, and the list of all subwords. So no peer chooses a tokenizer. Our
vocabulary joins their outputs and our own.
"""

import dataclasses
import functools
import hashlib
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Sequence

import numpy as np

import vaswani_jax
from tests.benchmarks.quality import tasks
from tests.benchmarks.quality.tasks import SPLITS, Task
from vaswani_jax.core import types
from vaswani_jax.core.config import DataConfig
from vaswani_jax.data import prepared
from vaswani_jax.data.vocabulary import Vocabulary

SIDES = ("source", "target")
NUM_SPECIAL = 4


@dataclasses.dataclass(frozen=True)
class Text:
    """The prepared text of a task.

    Attributes:
        directory: The place of SPLIT.SIDE (subwords), vocabulary.txt (a subword a line,
            without the special ones) and `data`, which our own runs read.
        vocabulary: Our vocabulary.
        sources: The source lines of each split, as our translator reads them.
        references: The references of each split, words as given.
        data: The form and the language of the text, which choose its scores.
    """

    directory: pathlib.Path
    vocabulary: Vocabulary
    sources: dict[str, list[str]]
    references: dict[str, list[str]]
    data: DataConfig

    @functools.cached_property
    def fingerprint(self) -> str:
        """The first 16 digits of the SHA-256 of all subwords and words."""
        digest = hashlib.sha256()
        files = [
            *(self.path(split, side) for split in ("train", *SPLITS) for side in SIDES),
            *(self.words(split, side) for split in SPLITS for side in SIDES),
            self.directory / "vocabulary.txt",
        ]
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.name} {len(content)} ".encode())
            digest.update(content)
        return digest.hexdigest()[:16]

    def path(self, split: str, side: str) -> pathlib.Path:
        """Return the file of subwords of one side of "train", "valid" or "test"."""
        return self.directory / f"{split}.{side}"

    def words(self, split: str, side: str) -> pathlib.Path:
        """Return the file of words of one side of "valid" or "test"."""
        return self.directory / f"{split}.{side}.words"


def prepare(
    task: Task, *, data: pathlib.Path, workdir: pathlib.Path, most_lines: int | None
) -> Text:
    """Prepare the text of a task, or open it if it is prepared.

    Args:
        task: The task.
        data: The directory of its text.
        workdir: The directory that gets a directory `text`.
        most_lines: Lines of the held-out sets to translate; None for all.
    """
    directory = workdir / "text"
    flags = tasks.our_flags(task, data=data, prepared=directory / "data")
    command = [sys.executable, "-m", "vaswani_jax", "prepare", *flags]
    workdir_flag = f"--workdir={directory / 'preparation'}"
    subprocess.run([*command, workdir_flag], check=True)
    opened = prepared.open_prepared(directory / "data")
    spell_training_text(
        opened, directory=directory, is_shuffled=task.shuffles_training_text
    )
    sources, references = (
        {split: lines[:most_lines] for split, lines in side.items()}
        for side in _held_out(opened, task)
    )
    for split in SPLITS:
        spelled = [
            spell(opened.vocabulary, sources[split]),
            spell(opened.vocabulary, references[split], target=True),
        ]
        for side, lines in zip(SIDES, spelled, strict=True):
            write_lines(directory / f"{split}.{side}", lines)
        write_lines(directory / f"{split}.source.words", sources[split])
        write_lines(directory / f"{split}.target.words", references[split])
    write_lines(
        directory / "vocabulary.txt",
        check_subwords(opened.vocabulary.target.spellings[NUM_SPECIAL:]),
    )
    settings = vaswani_jax.load_config(task.preset, task.overrides)
    return Text(directory, opened.vocabulary, sources, references, settings.data)


def _held_out(
    opened: prepared.PreparedData, task: Task
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the source lines and the references of each split."""
    if task.split_valid:
        source, target = map(task.split, opened.text("valid"))
        return source, target
    texts = {split: opened.text(split) for split in SPLITS}
    return (
        {split: source for split, (source, _) in texts.items()},
        {split: target for split, (_, target) in texts.items()},
    )


def check_subwords(subwords: Sequence[str]) -> list[str]:
    """Return the subwords if none has white space, where peers split.

    Raises:
        ValueError: A subword has white space.
    """
    for subword in subwords:
        if subword.split() != [subword]:
            raise ValueError(
                f"{subword!r} is no subword for peers: they split at white space"
            )
    return list(subwords)


def spell_training_text(
    opened: prepared.PreparedData, *, directory: pathlib.Path, is_shuffled: bool
) -> None:
    """Write the pairs that our own training reads, as subwords.

    Args:
        opened: The prepared data.
        directory: The directory that gets train.source and train.target.
        is_shuffled: True for one random order of the pairs instead of the text's.
    """
    pairs = opened.token_pairs("train")
    order = np.arange(len(pairs.source))
    if is_shuffled:
        order = np.random.default_rng(1).permutation(len(order))
    for side in SIDES:
        tokens = getattr(pairs, side)
        subwords = getattr(opened.vocabulary, side)
        joined, lengths = tokens.joined(order)
        rows = np.split(joined, np.cumsum(lengths)[:-1])
        lines = [" ".join(map(subwords.subword, remove_marks(ids))) for ids in rows]
        write_lines(directory / f"train.{side}", lines)


def remove_marks(ids: Iterable[int]) -> list[int]:
    """Return ids without padding, begin and end marks, which peers add themselves."""
    return [int(i) for i in ids if i not in (types.PAD_ID, types.BOS_ID, types.EOS_ID)]


def spell(
    vocabulary: Vocabulary, lines: Sequence[str], *, target: bool = False
) -> list[str]:
    """Return each line as subwords, separated by spaces."""
    subwords = vocabulary.target if target else vocabulary.source
    encoded = vocabulary.encode(lines, target=target)
    return [" ".join(map(subwords.subword, ids)) for ids in encoded]


def join(vocabulary: Vocabulary, lines: Sequence[str]) -> list[str]:
    """Return lines of subwords as words; a subword outside the vocabulary is unknown.

    A line ends at its end mark, if a system writes one.
    """
    return [
        vocabulary.decode(
            [vocabulary.subword_id(subword) for subword in line.split(" ") if subword]
        )
        for line in lines
    ]


def read_lines(path: pathlib.Path) -> list[str]:
    """Return the lines of a file, which may be empty."""
    content = path.read_text(encoding="utf-8")
    return content.removesuffix("\n").split("\n") if content else []


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Write lines; the file is replaced at once, never half written."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    temporary.replace(path)
