"""Flags of every program, --config's among them: parsed, or refused in one line."""

import pathlib
import re
import sys
from typing import NoReturn

from absl import flags

# What a config file, or a flag that sets one of its keys, can raise.
EXPECTED = (
    AttributeError,
    ImportError,
    KeyError,
    NameError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)
# What absl, ml_collections and Python say, and what that means for a user.
MEANINGS = (
    (
        r"flag --([\w.]+)=(.*): invalid literal for int\(\).*",
        r"--\1 must be a whole number, got '\2'",
    ),
    (
        r"flag --([\w.]+)=(.*): could not convert string to float.*",
        r"--\1 must be a number, got '\2'",
    ),
    (
        r"flag --([\w.]+)=(.*): \('Non-boolean argument to boolean flag'.*",
        r"--\1 must be true or false, got '\2'",
    ),
    (r"flag --([\w.]+)=(.*): .* is not (an? .*)", r"--\1 must be \3, got '\2'"),
    (r"flag --([\w.]+)=(.*): .* is not (.*)", r"--\1 must be: \3; got '\2'"),
    (
        r"flag --([\w.]+)=(.*): value should be one of <(.*)>",
        r"--\1 must be one of \3, got '\2'",
    ),
    (
        r"flag --config=None: .* must have a value other than None\.",
        "--config is missing; --config=configs/demo.py is one",
    ),
    (r"flag --(\w+)=None: .* must have a value other than None\.", r"--\1 is missing"),
    (
        r".*get_config\(\) takes 0 positional arguments.*",
        "this configuration has no variants: leave out what stands after the colon",
    ),
    (
        r"unknown key \w+ Did you mean (\w+) instead of (\w+)\?",
        r"unknown key \2; did you mean \1?",
    ),
)


def parse(argv: list[str]) -> list[str]:
    """absl's parser, with one line for what a flag cannot mean.

    Args:
        argv: The program's name, and what it was given.

    Returns:
        The program's name and what is no flag.
    """
    for arg in argv:
        if arg.startswith("--config="):
            _look_up(arg)
    # What overrides a config may stand before it; ml_collections reads sys.argv.
    argv = argv[:1] + sorted(argv[1:], key=lambda arg: not arg.startswith("--config="))
    sys.argv = argv
    try:
        return list(flags.FLAGS(argv))
    except flags.Error as error:
        # An error inside a config file comes with its traceback in the text.
        reason = str(error).strip().splitlines()[-1].strip()
        # Without --config no key of it is known; some programs have none.
        if "config" in flags.FLAGS and "Unknown command line flag 'config." in reason:
            reason = "--config is missing before its keys; --config=configs/demo.py"
    except EXPECTED as error:
        # ml_collections wraps its message in quotes and escapes it.
        plain = str(error).replace("\\n", " ").replace("\\'", "").replace("'", "")
        reason = " ".join(plain.replace('"', "").split())
        if isinstance(error, AttributeError | KeyError):
            reason = f"unknown key {reason}"
    _refuse(argv, reason)


def meaning(reason: str) -> str:
    """An error of the parsers in words of the user's.

    >>> meaning("flag --config.seed=one: invalid literal for int() with base 10: 'one'")
    "--config.seed must be a whole number, got 'one'"
    """
    for pattern, told in MEANINGS:
        if match := re.fullmatch(pattern, reason):
            return match.expand(told)
    return reason


def _look_up(arg: str) -> None:
    """Whether the file of --config=FILE.py:VARIANT is there; its parents are found."""
    found = re.fullmatch(r"(.+?\.py)(:.*)?", arg.removeprefix("--config="))
    if not found:
        _refuse([], f"{arg}: a configuration is a file FILE.py, or FILE.py:VARIANT")
    file = pathlib.Path(found[1])
    if not file.is_file():
        _refuse([], f"{arg}: there is no file {file}")
    # A config imports its parent as configs.NAME, from wherever it lies.
    sys.path.append(str(file.resolve().parent.parent))


def _refuse(argv: list[str], reason: str) -> NoReturn:
    told = meaning(reason)
    # What the message names need not stand before it.
    given = [arg for arg in argv if arg.startswith("--config")]
    named = f"{' '.join(given)}: " if given and not told.startswith("--") else ""
    print(f"error: {named}{told}", file=sys.stderr)
    sys.exit(1)
