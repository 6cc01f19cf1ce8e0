"""Read the ~ of a path, which a shell leaves in `--workdir=~/run` as it is."""

import os


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
