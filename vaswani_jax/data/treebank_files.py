"""Find the files of a treebank: sections, directories, patterns and lists of names."""

import glob
import os
import pathlib
import re

from vaswani_jax.data import text_files

# Endings of files of trees, in any case; .gz may follow.
SUFFIXES = (".mrg", ".ptb", ".tree", ".trees", ".parse")
FILE_OF_TREES = re.compile(
    rf"(?P<name>.+)({'|'.join(map(re.escape, SUFFIXES))})(\.gz)?", re.IGNORECASE
)
SECTIONS = re.compile(r"(\d\d)-(\d\d)", re.ASCII)
# Numbers of sentences in the sections of the Wall Street Journal (LDC99T42) that
# section 6.3 uses.
WSJ_NUM_TREES = {"02-21": 39_832, "22": 1_700, "23": 2_416}


def find_files(
    directory: pathlib.Path, entries: str, *, key: str
) -> list[pathlib.Path]:
    """Return the files of trees at entries below a directory, in the order of entries.

    An entry is one of:

    - a file, whatever its name;
    - a directory, such as the section `22`: all files below it with one of `SUFFIXES`;
    - a range of sections, `02-21`: the directories of these names, two digits each;
    - a pattern, `wsj_23*.mrg` or `0[1-9]`: the files, or else the directories;
    - `@FILE`, a list of names without suffixes, one a line: a file of trees of each
      name, anywhere below the directory.

    Directories and patterns give their files sorted by path, a list in its order.

    Args:
        directory: Where the treebank is.
        entries: Entries with commas between them; none give no file.
        key: Name of the setting that has the entries, for errors.

    Raises:
        FileNotFoundError: An entry matches no file, or a link to a missing one. The
            message has the key, the entry and what was looked for.
        ValueError: An entry is empty, a range is descending, two files match one name
            of a list, a list is not UTF-8, or two entries have the same file.
    """
    entry_by_path: dict[pathlib.Path, str] = {}
    for entry in map(str.strip, entries.split(",") if entries.strip() else []):
        try:
            files = _files_at(directory, entry)
            text_files.check_links(files)
        except (ValueError, FileNotFoundError) as error:
            message = f"config.data.{key}: {entry!r}: {error}"
            raise type(error)(message) from None
        for path in files:
            if path in entry_by_path:
                raise ValueError(
                    f"config.data.{key}: {entry!r} and {entry_by_path[path]!r} have "
                    f"the same file {path}; name it once"
                )
            entry_by_path[path] = entry
    return list(entry_by_path)


def section_name(entries: str) -> str:
    """Return the last part of the path of an entry; "" of several entries or none.

    >>> section_name("wsj/23"), section_name("02-21"), section_name("wsj/22,wsj/23")
    ('23', '02-21', '')

    Args:
        entries: As for `find_files`.
    """
    return "" if "," in entries else pathlib.PurePosixPath(entries.strip()).name


def describe_wsj_mismatch(entries: str, num_trees: int) -> str | None:
    """Return a warning if sections of the Wall Street Journal lack trees or have more.

    >>> describe_wsj_mismatch("wsj/23", 2_400)
    'section 23 has 2,416 trees in LDC99T42, here 2,400'

    Args:
        entries: As for `find_files`; other entries have no known number.
        num_trees: Number of trees that they have.
    """
    sections = section_name(entries)
    expected = WSJ_NUM_TREES.get(sections)
    if expected is None or num_trees == expected:
        return None
    return (
        f"section{'s' if '-' in sections else ''} {sections} "
        f"{'have' if '-' in sections else 'has'} {expected:,} trees in LDC99T42, here "
        f"{num_trees:,}"
    )


def _files_at(directory: pathlib.Path, entry: str) -> list[pathlib.Path]:
    """Return the files of one entry.

    Raises:
        FileNotFoundError, ValueError: See `find_files`; without the key and the entry.
    """
    if not entry:
        raise ValueError("an entry must have a name")
    if entry.startswith("@"):
        return _files_of_names(directory, names=directory / entry[1:])
    path = directory / entry
    if path.is_file():
        return [path]
    if path.is_dir():
        return _files_below(path)
    if match := SECTIONS.fullmatch(path.name):
        first, last = map(int, match.groups())
        if first > last:
            raise ValueError(
                "the range is descending; write the lower section first, for example "
                "02-21"
            )
        sections = [f"{section:02}" for section in range(first, last + 1)]
        return [file for name in sections for file in _files_below(path.parent / name)]
    matches = _matches(directory, entry)
    if not matches:
        raise FileNotFoundError(f"no file or directory matches {path}")
    if files := [match for match in matches if not match.is_dir()]:
        return files
    return [file for match in matches for file in _files_below(match)]


def _files_below(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of trees in a directory and in those within it."""
    if not directory.is_dir():
        raise FileNotFoundError(f"there is no directory {directory}")
    files = [path for path in _matches(directory, "**/*") if _name_of_trees(path)]
    if not files:
        endings = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise FileNotFoundError(
            f"no file below {directory} is one of {endings}, plain or .gz"
        )
    return files


def _files_of_names(
    directory: pathlib.Path, *, names: pathlib.Path
) -> list[pathlib.Path]:
    """Return the files of trees below a directory that a list names."""
    if not names.is_file():
        raise FileNotFoundError(f"there is no list of names {names}")
    files_by_name: dict[str, list[pathlib.Path]] = {}
    for path in _matches(directory, "**/*"):
        if name := _name_of_trees(path):
            files_by_name.setdefault(name, []).append(path)
    files = []
    for line, text in enumerate(text_files.read_lines(names), start=1):
        name = text.strip()
        paths = files_by_name.get(name, [])
        if name and not paths:
            endings = ", ".join(f"{name}{suffix}" for suffix in SUFFIXES)
            raise FileNotFoundError(
                f"{names}, line {line}: no file below {directory} is one of {endings}, "
                "plain or .gz"
            )
        if len(paths) > 1:
            raise ValueError(
                f"{names}, line {line}: two files are named {name}: {paths[0]} and "
                f"{paths[1]}"
            )
        files += paths
    if not files:
        raise FileNotFoundError(f"{names} is empty; list one file name per line")
    return files


def _matches(directory: pathlib.Path, pattern: str) -> list[pathlib.Path]:
    """Return what a pattern matches below a directory, sorted, without hidden files."""
    # The name of the directory is no pattern.
    whole_pattern = os.path.join(glob.escape(str(directory)), pattern)
    return sorted(map(pathlib.Path, glob.glob(whole_pattern, recursive=True)))


def _name_of_trees(path: pathlib.Path) -> str | None:
    """Return the name of a file of trees without its suffix, None of another file."""
    match = FILE_OF_TREES.fullmatch(path.name)
    return match["name"] if match and not path.is_dir() else None
