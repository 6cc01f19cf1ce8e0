"""Read the text over which heads are measured, from a run or from files."""

import logging
import pathlib
from collections.abc import Sequence

import numpy as np

from vaswani_jax.checkpoints import bundle
from vaswani_jax.core import config, tensor_file, types
from vaswani_jax.data import prepared, text_files, token_files, treebank
from vaswani_jax.pages.heads_text import Counts, Text

logger = logging.getLogger(__name__)

SPLITS = {"valid": "the validation text", "test": "the test text"}
# Sentences of the training text whose subwords are counted at a time.
CHUNK = 10_000


def file_names(names: Sequence[str]) -> list[str]:
    """Return the files that `--heads` names: two, or none for "valid" and "test".

    >>> file_names(["a.en", "a.de"]), file_names(["valid"])
    (['a.en', 'a.de'], [])

    Raises:
        ValueError: It is neither.
    """
    if len(names) == 1 and names[0] in SPLITS:
        return []
    if len(names) != 2 or not all(names):
        raise ValueError(
            f"--heads={','.join(names)} must be valid, test, or two files: "
            "SOURCE,TARGET"
        )
    return list(names)


def read_input(
    names: Sequence[str],
    *,
    settings: config.Config,
    workdir: pathlib.Path,
    trees: str | None,
    alignments: str | None,
) -> Text:
    """Return the text that `--heads` names, with what else is known of its lines.

    Args:
        names: "valid", "test", or two files.
        settings: Those of the run.
        workdir: The run's directory, or its model in one file.
        trees: A file with a tree of each source line; None for none, but a parser's
            target lines are trees.
        alignments: A file with the aligned words of each line, as "0-0 1-2".

    Raises:
        OSError: A file is missing.
        ValueError: The run has no such text, or a file cannot be read.
    """
    data = None
    if tensor_file.is_tensor_file(workdir):
        data = bundle.find_data(workdir, settings)
    elif directory := prepared.find_directory(settings.data, workdir):
        data = prepared.open_matching(settings, directory, compare_text=False)
    split, files = names[0], file_names(names)
    if files:
        sources, targets = (
            list(text_files.read_lines(pathlib.Path(name))) for name in files
        )
    elif data is None or split not in data.counts:
        raise ValueError(
            f"--heads={split}: {workdir} has no such text; name two files: "
            "SOURCE,TARGET"
        )
    else:
        sources, targets = data.text(split)
    name = SPLITS.get(split, split)
    text_trees: list[treebank.Tree | None] | None = None
    counts = None
    if data and "train" in data.counts:
        counts = training_counts(data.token_pairs("train"), data.vocabulary.size)
    else:
        logger.info("heads: without training text, rare words are unknown")
    if trees:
        text_trees = _read_trees(pathlib.Path(trees), num_lines=len(sources))
    elif settings.data.source == "treebank":
        text_trees = _parse_targets(targets, name=files[1] if files else name)
    links = None
    if alignments:
        lines = text_files.read_lines(pathlib.Path(alignments))
        links = [
            parse_alignment(line, name=f"{alignments}, line {number}")
            for number, line in enumerate(lines, start=1)
        ]
    return Text(
        name=name,
        sources=sources,
        targets=targets,
        trees=text_trees,
        alignments=links,
        counts=counts,
    )


def _read_trees(path: pathlib.Path, *, num_lines: int) -> list[treebank.Tree | None]:
    """Return the cleaned trees of a file, one for each line that has one.

    A parser writes a line for each of its source lines, an empty one for an empty one:
    None stands for these. In another file a tree may fill several lines.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has no tree, or a line is not part of one.
    """
    lines = list(text_files.read_lines(path))
    numbered_trees = [
        (number, treebank.clean(tree))
        for number, tree in treebank.parse_with_lines(lines, name=str(path))
    ]
    if not numbered_trees:
        raise ValueError(f"{path} has no tree")
    by_line = dict(numbered_trees)
    filled = [number for number, line in enumerate(lines, start=1) if line.strip()]
    is_by_line = filled == [number for number, _ in numbered_trees]
    if len(lines) == num_lines and is_by_line:
        return [by_line.get(number) for number in range(1, num_lines + 1)]
    return [tree for _, tree in numbered_trees]


def _parse_targets(lines: Sequence[str], *, name: str) -> list[treebank.Tree | None]:
    """Return the cleaned tree of each of a parser's target lines; None without a tree.

    Raises:
        ValueError: A line is not a tree, or has several; has the name and the line.
    """
    trees: list[treebank.Tree | None] = []
    for number, line in enumerate(lines, start=1):
        line_trees = list(treebank.parse([line], name=name, first_line=number))
        if len(line_trees) > 1:
            raise ValueError(
                f"{name}, line {number}: {len(line_trees)} trees; a line has one tree, "
                "an empty line has none"
            )
        trees.append(treebank.clean(line_trees[0]) if line_trees else None)
    return trees


def training_counts(
    pairs: token_files.TokenPairs, vocab_size: types.VocabSize
) -> Counts:
    """Return how often each subword occurs in prepared training text."""
    sizes = (
        types.num_source_subwords(vocab_size),
        types.num_target_subwords(vocab_size),
    )
    sides = []
    for tokens, size in zip(pairs, sizes, strict=True):
        counts = np.zeros(size, np.int64)
        for start in range(0, len(tokens), CHUNK):
            sentences = np.arange(start, min(start + CHUNK, len(tokens)))
            ids, _ = tokens.joined(sentences)
            counts += np.bincount(ids, minlength=size)
        sides.append(counts)
    return Counts(*sides)


def parse_alignment(line: str, *, name: str) -> list[tuple[int, int]]:
    """Return the pairs of a line in Pharaoh's format.

    >>> parse_alignment("0-0 1-2", name="line 1")
    [(0, 0), (1, 2)]

    Raises:
        ValueError: A word of the line is no pair; has the name.
    """
    pairs = []
    for word in line.split():
        source, _, target = word.partition("-")
        if not (source.isdecimal() and target.isdecimal()):
            raise ValueError(
                f"{name}: {word[:40]!r} is no alignment: write SOURCE-TARGET, two "
                "numbers of words from 0, as in 0-0 1-2"
            )
        pairs.append((int(source), int(target)))
    return pairs
