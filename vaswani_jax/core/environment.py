"""Section 5.2's machines change under a run: what it ran on, to be recorded with it."""

import functools
import importlib.metadata
import pathlib
import platform
import subprocess

# What decides the digits, and whether files can be read.
PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "numpy", "sentencepiece"),
    *("orbax-checkpoint", "vaswani-jax"),
)


@functools.cache
def describe() -> dict[str, str]:
    """Versions of the packages, of Python, and the revision of this source."""
    found = {"python": platform.python_version(), "revision": revision()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def how_to_install(extra: str) -> str:
    """The command that adds an extra of pyproject.toml.

    >>> how_to_install("export")
    "pip install -c constraints.txt -e '.[export]', where this repository lies"
    """
    command = f"pip install -c constraints.txt -e '.[{extra}]'"
    return f"{command}, where this repository lies"


def revision() -> str:
    """The commit of this source, "+" if it was changed; "unknown" outside git."""
    here = pathlib.Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        return found.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", str(here.parent))
        return git("rev-parse", "HEAD")[:12] + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def differences(was: dict[str, str]) -> list[str]:
    """What of a recorded description is otherwise now, in words."""
    now = describe()
    return [
        f"{name} was {was[name]}, is {now[name]}"
        for name in now
        if name in was and was[name] != now[name]
    ]
