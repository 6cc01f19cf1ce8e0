"""Read the paths that flags name; a shell leaves the ~ of `--workdir=~/run`."""

import os
import pathlib


def expand_home(name: str) -> str:
    """Return a path with its leading ~ or ~USER replaced by that home directory.

    >>> expand_home("runs/demo"), expand_home("s3://bucket/~run"), expand_home("./~")
    ('runs/demo', 's3://bucket/~run', './~')

    Raises:
        ValueError: There is no such user. A directory of that name would look like a
            home, and `rm -r ~` removes another one.
    """
    expanded = os.path.expanduser(name)
    if expanded.startswith("~"):
        user = name.partition("/")[0]
        raise ValueError(
            f"{name}: {user} is the home directory of no user here; write ./{name} for "
            "a file of this name"
        )
    return expanded


def check_readable(name: str | pathlib.Path, *, flag: str) -> pathlib.Path:
    """Return the path of a file or pipe, or refuse a missing file and a directory.

    Args:
        name: The path.
        flag: The flag that named it, for the error.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a directory.
    """
    path = pathlib.Path(name)
    if not path.exists():
        raise FileNotFoundError(f"{flag}: no file {name}")
    if path.is_dir():
        raise IsADirectoryError(f"{flag}: {name} is a directory; name a file")
    return path
