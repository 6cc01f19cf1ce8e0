"""Directives that write the reference of settings and commands from the program."""

import dataclasses
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from vaswani_jax.cli import commands
from vaswani_jax.core import config, presets

# The parent of all presets: what a preset does not set has its value.
BASE = "base_ende"
ROOT = pathlib.Path(__file__).parents[2]


class Settings(SphinxDirective):
    """Every setting, by section: value in `base_ende`, meaning, type, range."""

    def run(self) -> list[nodes.Node]:
        _note_source(self.env)
        return self.parse_text_to_nodes(
            "\n".join(_settings()), allow_section_headings=True
        )


class Commands(SphinxDirective):
    """The help text of every command."""

    def run(self) -> list[nodes.Node]:
        _note_source(self.env)
        return self.parse_text_to_nodes(
            "\n".join(_commands()), allow_section_headings=True
        )


def _note_source(env: BuildEnvironment) -> None:
    """Let Sphinx read the page again when the source that it shows has changed."""
    for folder in ("configs", "vaswani_jax"):
        for path in (ROOT / folder).rglob("*.py"):
            env.note_dependency(str(path))


def _settings() -> Iterator[str]:
    file, _ = presets.find(BASE)
    base = config.flatten(presets.load(file).to_dict())
    sections = {field.name: field.type for field in dataclasses.fields(config.Config)}
    previous = None
    for key, setting in config.SETTINGS.items():
        if setting.section != previous:
            previous = setting.section
            yield ""
            yield f"## {previous or 'seed'}"
            yield ""
            if previous:
                yield f"{sections[previous].__doc__}"
                yield ""
        rule = f"{setting.type.__name__}{', ' if setting.range else ''}{setting.range}"
        may = " May change when a run resumes." if setting.changeable else ""
        if setting.may_replace:
            may = " May change in part when a run resumes."
        yield f"`{key}`"
        value = f"Base: {_shown(base[key])}."
        if setting.legacy not in (None, base[key]):
            value += f" Older runs: {_shown(setting.legacy)}."
        yield f": {setting.description} ({rule}) {value}{may}"
        yield ""


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text}`" if text else "empty"


def _commands() -> Iterator[str]:
    for name, (_, summary) in commands.COMMANDS.items():
        help_text = subprocess.run(
            [sys.executable, "-m", "vaswani_jax", name, "--help"],
            capture_output=True,
            check=True,
            text=True,
            timeout=120,
        ).stdout
        yield f"## vaswani {name}"
        yield ""
        yield summary
        yield ""
        yield "```text"
        yield help_text.strip()
        yield "```"
        yield ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("settings-reference", Settings)
    app.add_directive("commands-reference", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
