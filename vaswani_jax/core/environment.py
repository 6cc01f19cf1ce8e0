"""Describe the software that a run uses, to be recorded with it."""

import functools
import importlib.metadata
import pathlib
import platform
import subprocess

# Their versions decide the digits, and whether files can be read.
PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "numpy", "sentencepiece"),
    *("orbax-checkpoint", "vaswani-jax"),
)


@functools.cache
def describe() -> dict[str, str]:
    """Return the versions of Python and packages, and the revision of this source."""
    versions = {"python": platform.python_version(), "revision": revision()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra of pyproject.toml to this installation.

    >>> how_to_install("export")
    "pip install 'vaswani-jax[export]'"
    """
    return f"pip install 'vaswani-jax[{extra}]'"


def revision() -> str:
    """Return the commit of this source, "+" if it was changed; else "unknown"."""
    package = pathlib.Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package), *arguments]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        return process.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", str(package))
        return git("rev-parse", "HEAD")[:12] + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe_changes(recorded: dict[str, str]) -> list[str]:
    """Return in words what differs from a recorded description."""
    return [
        f"{name} was {recorded[name]}, is {version}"
        for name, version in describe().items()
        if recorded.get(name, version) != version
    ]
