"""Say how to install what an optional part of the package needs."""


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra of pyproject.toml to this installation.

    >>> how_to_install("export")
    "pip install 'vaswani-jax[export]'"
    """
    return f"pip install 'vaswani-jax[{extra}]'"
