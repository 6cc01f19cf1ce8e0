"""Say how to install what an optional part of the package needs."""

import importlib.util
from collections.abc import Iterable


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra of pyproject.toml to this installation.

    >>> how_to_install("export")
    "pip install 'vaswani-jax[export]'"
    """
    return f"pip install 'vaswani-jax[{extra}]'"


def require(packages: Iterable[str], *, extra: str, purpose: str) -> None:
    """Refuse to go on if packages are missing, without importing any.

    Args:
        packages: The names by which they are imported.
        extra: The extra that installs them.
        purpose: The subject and verb of the message: "a server needs".

    Raises:
        ImportError: Names the packages that are missing and how to install them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"{purpose} {', '.join(missing)}: {how_to_install(extra)}")
