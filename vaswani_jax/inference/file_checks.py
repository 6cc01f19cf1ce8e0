"""Check the files of `decode` before any line is translated or scored.

Pipes are not checked: they cannot be read twice.
"""

import pathlib
from collections.abc import Iterator

from vaswani_jax.core import config, languages
from vaswani_jax.inference import arguments, line_io, phrases, trees
from vaswani_jax.inference.translator import Translator


def check_tags(name: str, data: config.DataConfig) -> None:
    """Refuse a file with a line that lacks its tag.

    Args:
        name: The file of source lines.
        data: The target languages, one or several.

    Raises:
        ValueError: As `languages.check_tags`.
    """
    if languages.locales_by_tag(data):
        for first_line, (lines,) in _blocks(name):
            languages.check_tags(lines, data, first_line=first_line)


def check_trees(source: str, target: str, data: config.DataConfig) -> None:
    """Refuse files of which a target is no tree over its line's words.

    Args:
        source: The file of source lines.
        target: The file of trees in brackets.
        data: Text of another source than a treebank is not checked.

    Raises:
        ValueError: As `trees.check_trees`.
    """
    if data.source == "treebank":
        for first_line, (lines, targets) in _blocks(source, target):
            trees.check_trees(lines, targets, first_line=first_line)


def check_lengths(source: str, target: str, translator: Translator) -> None:
    """Refuse files with a pair that is too long to be scored.

    Args:
        source: The file of source lines.
        target: The file of their translations.
        translator: The model that scores.

    Raises:
        ValueError: As `arguments.check_lengths`.
    """
    for first_line, (lines, targets) in _blocks(source, target):
        arguments.check_lengths(
            translator.vocabulary.encode(lines),
            translator.vocabulary.encode(targets, target=True),
            search=translator.config.search,
            first_line=first_line,
        )


def check_prefixes(name: str, translator: Translator) -> None:
    """Refuse a file with a prefix that is too long.

    Raises:
        ValueError: As `arguments.encode_prefixes`.
    """
    for first_line, (lines,) in _blocks(name):
        arguments.encode_prefixes(
            lines,
            vocabulary=translator.vocabulary,
            search=translator.config.search,
            first_line=first_line,
        )


def check_constraints(source: str, name: str, translator: Translator) -> None:
    """Refuse a file with constraints that cannot be met.

    Args:
        source: The file of source lines.
        name: The file of constraints.
        translator: The model that translates.

    Raises:
        ValueError: As `PhraseFinder.find`.
    """
    finder = translator.phrase_finder(None)
    for first_line, (lines, terms) in _blocks(source, name):
        finder.find(lines, phrases.split_constraints(terms), first_line=first_line)


def _blocks(*names: str) -> Iterator[tuple[int, tuple[list[str], ...]]]:
    """Yield each block of the files with the number of its first line.

    Yields nothing if a name is not a regular file. "-" is always standard input, even
    if a file has that name.
    """
    if not all(name != "-" and pathlib.Path(name).is_file() for name in names):
        return
    first_line = 1
    source, *aligned = names
    for block in line_io.zip_blocks(line_io.read_blocks(source), *aligned):
        yield first_line, block
        first_line += len(block[0])
