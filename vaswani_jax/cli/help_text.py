"""Help texts: the flags of a program, and the settings of a configuration."""

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import Any

import ml_collections
from absl import flags

from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config, data_rules
from vaswani_jax.core.settings import TYPE_NAMES

WIDTH = 88
CONFIG_HELP = (
    "A preset (demo, table3:A1), FILE.py or the workdir of a run, whose settings it "
    "then has; --config.KEY=VALUE changes one."
)


def program(name: str, syntax: Syntax, *, description: str) -> str:
    """Return the help text of a program: its use, its flags, its settings.

    The settings are those of the configuration that the command line names.

    Args:
        name: The name that the program was started by.
        syntax: How its command line is read.
        description: What the program does.
    """
    blocks = [syntax.usage(name), description.strip()]
    lines = ["flags:"]
    if syntax.takes_config:
        lines += _entry("--config", CONFIG_HELP)
    for flag in sorted(_package_flags(syntax), key=lambda flag: str(flag.name)):
        lines += _flag_entry(flag)
    blocks.append("\n".join(lines))
    if "config" in flags.FLAGS:
        values: ml_collections.ConfigDict = flags.FLAGS["config"].value
        shown_values = config.flatten(values.to_dict())
        if syntax.default_config:  # The model that is imported decides the others.
            decided = {
                key for key, setting in config.SETTINGS.items() if setting.imported
            }
            shown_values = {
                key: value for key, value in shown_values.items() if key not in decided
            }
        blocks.append(_settings(shown_values))
    elif syntax.takes_config:
        preset = "PRESET" if "config" in syntax.arguments else "--config=PRESET"
        before_it = "TASK " if "task" in syntax.arguments else ""
        command = f"{name} {before_it}{preset} --help"
        blocks.append(f"`{command}` lists the settings of a preset, too.")
    return "\n\n".join(blocks)


def rule(flag: flags.Flag[Any]) -> str:
    """Return which values a flag takes, in words; "" for any text."""
    if flag.boolean:
        return TYPE_NAMES[bool]
    if choices := getattr(flag.parser, "enum_values", None):
        return f"one of {', '.join(choices)}"
    if isinstance(flag.parser, flags.IntegerParser | flags.FloatParser):
        return str(flag.parser.syntactic_help).replace("an integer", TYPE_NAMES[int])
    return ""


def settings_as_flags(settings: config.Config) -> str:
    """Return all settings as lines that --flagfile reads.

    Any preset that comes before them is overridden. Files that `data.corpora` replaces
    are empty: no flag may name them.
    """
    values = config.flatten(config.to_dict(settings))
    if settings.data.corpora:
        values |= {f"data.{name}": "" for name in data_rules.TRAINING_FILES}
    return "\n".join(
        f"--config.{key}={_as_flag(value)}" for key, value in values.items()
    )


def _package_flags(syntax: Syntax) -> Iterator[flags.Flag[Any]]:
    """Return the flags of this package, not of its libraries, that a program takes."""
    for module, module_flags in flags.FLAGS.flags_by_module_dict().items():
        # A module's name, or the path of the one that Python runs.
        if "vaswani_jax" in module:
            for flag in module_flags:
                name = str(flag.name)
                if syntax.takes(name) and name.partition(".")[0] != "config":
                    yield flag


def _flag_entry(flag: flags.Flag[Any]) -> list[str]:
    text = " ".join(str(flag.help).split())
    if flag.boolean:
        return _entry(f"--[no]{flag.name}", text)
    if not hasattr(flag.parser, "enum_values") and (bounds := rule(flag)):
        text += f" ({bounds})"
    if flag.default not in (None, "", []):
        default = str(flag.default_as_str).strip("'")
        text += f" [{default}]"
    return _entry(f"--{flag.name}", text)


def _settings(values: dict[str, object]) -> str:
    """Return the settings by section: value, meaning, the paper's symbol and range."""
    lines = ["settings, with their values here (--config.KEY=VALUE changes one):"]
    sections = {field.name: field.type for field in dataclasses.fields(config.Config)}
    previous_section = ""
    for key, setting in config.SETTINGS.items():
        if key not in values:
            continue
        if setting.section != previous_section:
            previous_section = setting.section
            lines.append("")
            if setting.section:
                lines.append(f"{setting.section}: {sections[setting.section].__doc__}")
        text = setting.description
        if setting.range:
            text += f" ({setting.range})"
        lines += _entry(f"{key}={_as_flag(values[key])}", text)
    return "\n".join(lines)


def _entry(name: str, text: str) -> list[str]:
    return [
        f"  {name}",
        *textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6),
    ]


def _as_flag(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
