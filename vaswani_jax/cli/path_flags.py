"""Define the flags that name files and directories: ~ is the home in all of them."""

from typing import Any

from absl import flags

from vaswani_jax.core import paths

# These flags belong to the module that calls the functions below.
flags.disclaim_key_flags()


class PathParser(flags.ArgumentParser[str]):
    """Parses one path or URL."""

    def parse(self, argument: str) -> str:
        """Return the path without its ~.

        Raises:
            ValueError: As `paths.expand_home`.
        """
        return paths.expand_home(argument)


class PathListParser(flags.ListParser):
    """Parses paths or URLs that are separated by commas."""

    def parse(self, argument: str | list[str]) -> list[str]:
        """Return the paths without their ~.

        Raises:
            ValueError: As `paths.expand_home`.
        """
        return [paths.expand_home(name) for name in super().parse(argument)]


PATH_PARSERS = (PathParser, PathListParser)


def define_path(
    name: str, default: str | None, meaning: str, *, required: bool = False
) -> flags.FlagHolder[Any]:
    """Define a flag that is a path or a URL."""
    return flags.DEFINE(
        PathParser(),
        name,
        default,
        meaning,
        serializer=flags.ArgumentSerializer(),
        required=required,
    )


def define_path_list(
    name: str, default: list[str], meaning: str
) -> flags.FlagHolder[Any]:
    """Define a flag that is several paths or URLs, separated by commas."""
    return flags.DEFINE(
        PathListParser(),
        name,
        default,
        meaning,
        serializer=flags.CsvListSerializer(","),
    )


def define_repeated_path(
    name: str, default: list[str], meaning: str
) -> flags.FlagHolder[Any]:
    """Define a flag that is a path or a URL, and may be given several times."""
    return flags.DEFINE_multi(
        PathParser(), flags.ArgumentSerializer(), name, default, meaning
    )
