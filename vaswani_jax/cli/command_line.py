"""Parse a program's command line, or refuse it in one line.

Words without dashes become flags, the configuration is loaded, and absl and
ml_collections parse the flags: `--FLAG=VALUE` and `--config.KEY=VALUE`.
"""

import pathlib
import re
import sys
from typing import NoReturn

import ml_collections
from absl import flags
from ml_collections import config_flags

from vaswani_jax.cli import help_text, logs
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import paths, presets, seeds
from vaswani_jax.core.config import SETTINGS, flatten
from vaswani_jax.core.errors import NoRunError
from vaswani_jax.core.suggestions import suggest, suggest_setting

# What the command line names as its configuration.
_config_name = ""
# absl's names of the help among them.
HELP = frozenset(("--help", "-h", "-help", "--helpshort", "--helpfull", "-?"))
# What a configuration file raises on purpose: its message says all.
EXPLAINED = (ImportError, OSError, ValueError)


def parse(argv: list[str], syntax: Syntax, *, description: str) -> list[str]:
    """Parse the command line into `flags.FLAGS`.

    Prints a help text and exits if --help is among the flags. Exits with status 1 and
    one line on standard error if a flag makes no sense.

    Args:
        argv: The name of the program, then the words after it.
        syntax: How to read them.
        description: What the program does, for its help text.

    Returns:
        The name of the program.
    """
    try:
        program, *words = flags.FLAGS.read_flags_from_files(argv, force_gnu=True)
        wants_help = not HELP.isdisjoint(words)
        words = [word for word in words if word not in HELP]
        words, arguments = _separate(words)
        if not wants_help and not _take(words, "undefok")[0]:
            _check_names(words)
        names = list(syntax.arguments)
        if syntax.repeats:
            names += names[-1:] * (len(arguments) - len(names))
        for name, value in zip(names, arguments, strict=False):
            if _take(words, name)[0] and not syntax.repeats:
                refuse(f"unexpected argument {value}: --{name} is given, too")
            if not (wants_help or _is_choice(name, value)):
                rule = help_text.rule(flags.FLAGS[name])
                usage = syntax.usage(program)
                refuse(f"--{name} must be {rule}, got {value!r}; {usage}")
            words.append(f"--{name}={value}")
        if extra_words := arguments[len(names) :]:
            refuse(f"unexpected argument {extra_words[0]}; {syntax.usage(program)}")
        words = _split_workdir(words)
        if syntax.takes_config:
            words = _take_config(words, syntax, is_optional=wants_help)
        if wants_help:
            text = help_text.program(program, syntax, description=description)
            print(text, flush=True)
            sys.exit(0)
        flags.FLAGS([program, *words])
    except flags.Error as error:
        refuse(_explain(error, syntax))
    return [program]


def list_config_flags() -> list[str]:
    """Return --config and --config.KEY as the parsed command line gives them."""
    names = sorted(name for name in flags.FLAGS if name.startswith("config."))
    changes = [flags.FLAGS[name] for name in names if flags.FLAGS[name].present]
    return [
        f"--config={_config_name}",
        *(f"--{flag.name}={flag.value}" for flag in changes),
    ]


def refuse(reason: str) -> NoReturn:
    """Print an error in one line, and exit with status 1."""
    logs.end_line()
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(1)


def _separate(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the flags, each as one word, and the words that are no flags."""
    flag_words, arguments = [], []
    remaining = iter(words)
    for word in remaining:
        if word == "--":  # The words after it are parsed like those before it.
            continue
        if word == "-" or not word.startswith("-"):
            arguments.append(word)
        elif _needs_value(word) and (value := next(remaining, None)) is not None:
            flag_words.append(f"{word}={value}")
        else:
            flag_words.append(word)
    return flag_words, arguments


def _check_names(words: list[str]) -> None:
    """Refuse an unknown flag, before its value is taken for an argument."""
    for word in words:
        name = word.lstrip("-").partition("=")[0]
        positive = name.removeprefix("no")
        is_special = positive.partition(".")[0] in ("config", "flagfile", "undefok")
        if not (is_special or name in flags.FLAGS or positive in flags.FLAGS):
            raise flags.UnrecognizedFlagError(name)


def _needs_value(word: str) -> bool:
    """Return True for a flag whose value is the next word."""
    name = word.lstrip("-")
    section, _, key = name.partition(".")
    if section != "config":
        return name in flags.FLAGS and not flags.FLAGS[name].boolean
    is_bool = key in SETTINGS and SETTINGS[key].type is bool
    return "=" not in word and not is_bool


def _is_choice(name: str, value: str) -> bool:
    """Return False for a word that the flag, one of an enumeration, does not take."""
    if name not in flags.FLAGS:  # --config
        return True
    return value in getattr(flags.FLAGS[name].parser, "enum_values", [value])


def _split_workdir(words: list[str]) -> list[str]:
    """Turn --workdir=RUN@CHECKPOINT into two flags, where a program has both."""
    name, rest = _take(words, "workdir")
    is_one_run = len(words) - len(rest) == 1
    may_name_both = re.search(r"@|/\d+/?$", name)
    if not ("checkpoint" in flags.FLAGS and is_one_run and may_name_both):
        return words
    # Imported late: it loads JAX, which some programs do not need.
    from vaswani_jax.checkpoints import select

    try:
        workdir, checkpoint = select.split_name(paths.expand_home(name))
    except ValueError:
        return words  # Its parser says why.
    if not checkpoint:
        return words
    if other := _take(words, "checkpoint")[0]:
        refuse(f"--workdir={name} names a checkpoint, and so does --checkpoint={other}")
    return [*rest, f"--workdir={workdir}", f"--checkpoint={checkpoint}"]


def _take_config(words: list[str], syntax: Syntax, *, is_optional: bool) -> list[str]:
    """Load the configuration that the flags name, and define `--config.KEY` flags.

    Returns:
        The other flags.
    """
    name, words = _take(words, "config")
    try:
        workdir, init_from = (
            paths.expand_home(_take(words, flag)[0])
            for flag in ("workdir", "init_from")
        )
    except ValueError as error:
        refuse(str(error))
    run = run_to_start_from = ""
    flag = "config"
    may_begin = bool(init_from or syntax.default_config)
    if not name and workdir and _holds_run(workdir, may_begin=may_begin):
        run, flag = workdir, "workdir"
    elif not name and not syntax.default_config:
        run = run_to_start_from = _run_of(init_from)
        flag = "init_from"
    name = name or run or syntax.default_config
    if not name:
        if is_optional:
            return words
        has_seeds = bool(_take(words, "seeds")[0])
        refuse(
            _missing_config(syntax, workdir, init_from=init_from, has_seeds=has_seeds)
        )
    if run_to_start_from and not workdir and not is_optional:
        refuse("--workdir is missing: name the directory of the new run")
    try:
        # A run's directory may have the name of a preset.
        file, variant = presets.find_run(run) if run else presets.find(name)
        values = presets.load(file, variant)
        _check_sections(values)
    except EXPLAINED as error:
        refuse(f"--{flag}={name}: {error}")
    except Exception as error:  # of the user's file
        refuse(f"--{flag}={name}: {type(error).__name__}: {error}")
    if run_to_start_from:
        values.data.directory = ""  # The new run prepares data of its own.
    global _config_name
    _config_name = name
    _check_keys(words, values)
    config_flags.DEFINE_config_dict(
        "config", values, "Settings.", flag_values=flags.FLAGS, sys_argv=words
    )
    if syntax.default_workdir and not run_to_start_from:
        flags.FLAGS.set_default("workdir", _default_workdir(file, variant))
    return words


def _check_sections(values: ml_collections.ConfigDict) -> None:
    """Refuse a file that has no configuration of this package."""
    for section in sorted({setting.section for setting in SETTINGS.values()} - {""}):
        if not isinstance(values.get(section), ml_collections.ConfigDict):
            raise ValueError(
                f"section config.{section} is missing: name the configuration of a run"
            )


def _take(words: list[str], flag: str) -> tuple[str, list[str]]:
    """Return the last value of a flag, "" if it is not there, and all other words."""
    value, other_words = "", []
    for word in words:
        name, _, text = word.partition("=")
        if name in (f"--{flag}", f"-{flag}"):
            value = text
        else:
            other_words.append(word)
    return value, other_words


def _holds_run(workdir: str, *, may_begin: bool) -> bool:
    """Return whether a workdir has the settings of a run.

    Args:
        workdir: The directory, or its URL.
        may_begin: Whether the command line gives settings to a run that begins there.
    """
    if not ("://" in workdir and may_begin):
        return presets.is_run(workdir)
    try:
        presets.load(*presets.find_run(workdir))
    except NoRunError:
        return False
    except EXPLAINED:
        return True  # Loading it reports the reason.
    return True


def _run_of(checkpoint: str) -> str:
    """Return the workdir of a run to start from, if it has recorded its settings."""
    # Imported late: it loads JAX, which some programs do not need.
    from vaswani_jax.checkpoints import select

    folder = select.split_name(checkpoint)[0]
    workdir = re.sub(r"/(checkpoints|best|averaged)/\d+/?$", "", folder)
    return workdir if workdir and presets.is_run(workdir) else ""


def _missing_config(
    syntax: Syntax, workdir: str, *, init_from: str, has_seeds: bool
) -> str:
    from vaswani_jax.checkpoints import select

    if init_from:
        folder = pathlib.Path(select.split_name(init_from)[0])
        return f"--init_from={init_from}: {select.why_no_run(folder)}"
    if workdir and (reason := seeds.why_no_run(pathlib.Path(workdir))):
        if has_seeds:
            run = next(iter(seeds.find_runs(pathlib.Path(workdir)).values()))
            return f"--config is missing: name a run's directory, such as {run}"
        return f"--workdir={reason}"
    if workdir and pathlib.Path(workdir).is_dir():
        return f"--workdir={workdir} holds no run (no config.json): name its --config"
    if syntax.arguments[0] != "workdir":
        names = ", ".join(presets.names())
        return f"--config is missing: name a preset ({names}), FILE.py or a workdir"
    if workdir:
        return (
            f"--workdir={workdir} is not a directory; name that of a run, or a --config"
        )
    return "--workdir is missing: name the directory of a run, or a --config"


def _check_keys(words: list[str], values: ml_collections.ConfigDict) -> None:
    """Refuse `--config.KEY` flags of which the configuration has no key."""
    keys = flatten(values.to_dict())
    for word in words:
        match = re.match(r"--?(?:no)?config\.([^=]*)", word)
        if match and any(key.startswith(f"{match[1]}.") for key in keys):
            refuse(
                f"{word}: config.{match[1]} is a section; change one of its keys by "
                f"--config.{match[1]}.KEY=VALUE"
            )
        if match and match[1] not in keys:
            refuse(f"{word}: unknown key config.{match[1]}{suggest_setting(match[1])}")


def _default_workdir(file: pathlib.Path, variant: str) -> str:
    if file.stem == presets.RECORD:
        return variant
    return str(pathlib.Path("runs", "_".join(filter(None, [file.stem, variant]))))


def _explain(error: flags.Error, syntax: Syntax) -> str:
    """Return the reason why absl refuses a flag, in the user's words."""
    if isinstance(error, flags.UnrecognizedFlagError):
        name = error.flagname
        if name.partition(".")[0] == "config":
            return f"--{name}: this program reads no configuration"
        if name == "version":
            return "unknown flag --version: `vaswani --version` prints the version"
        names = list(flags.FLAGS)
        if syntax.takes_config:
            names += ["config", *(f"config.{key}" for key in SETTINGS)]
        return f"unknown flag --{name}{suggest(name, names, prefix='--')}"
    if isinstance(error, flags.CantOpenFlagFileError):
        return f"--flagfile cannot be read: {str(error).partition('flagfile: ')[2]}"
    match = re.fullmatch(r"flag --([\w.]+)=(.*?): (.*)", str(error), re.DOTALL)
    if not match or match[1] not in flags.FLAGS:
        return str(error)
    name, value, reason = match.groups()
    if reason.endswith("must have a value other than None."):
        return f"--{name} is missing"
    rule = help_text.rule(flags.FLAGS[name])
    return f"--{name} must be {rule}, got {value!r}" if rule else str(error)
