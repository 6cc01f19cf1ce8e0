"""What messages tell a user to set, pass or run exists here."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests import interpreter
from vaswani_jax.cli import commands
from vaswani_jax.core import config, presets

PACKAGE = interpreter.ROOT / "vaswani_jax"
# Flags of absl and of the parser, and those of other programs that we start or name.
OTHER_FLAGS = {
    *("config", "flagfile", "help", "version", "helpshort", "helpfull"),
    *("porcelain", "untracked-files"),  # of git
    *("gpus-per-node", "des"),  # of sbatch and gcloud
}
# Stands for what a message inserts.
INSERTED = "\N{REPLACEMENT CHARACTER}"
Text = tuple[str, str]


def _text(node: ast.expr) -> str:
    """Return the text of a literal, with `INSERTED` for each inserted value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) for value in node.values)
    return INSERTED if isinstance(node, ast.FormattedValue) else ""


def _texts() -> Iterator[Text]:
    """Yield every text of the package, docstrings too, and where it stands."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {
            part
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and node not in parts:
                place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                yield place, _text(node)


def _flags() -> set[str]:
    """Return the names of the flags that the package defines."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and "define" in ast.unparse(node.func).lower()
            ):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Starred) and isinstance(
                    first.value, ast.Tuple
                ):
                    first = first.value.elts[0]
                if isinstance(first, ast.Constant):
                    names.add(str(first.value))
    return names


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    return list(_texts())


def test_every_key_that_a_message_names_is_a_setting(texts: list[Text]) -> None:
    sections = {key.partition(".")[0] for key in config.SETTINGS if "." in key}
    pattern = rf"(?<![\w.])config\.((?:{'|'.join(sections)})\.[a-z]\w*)(?!\w*\()"
    named = {
        (place, match[1])
        for place, text in texts
        for match in re.finditer(pattern, text)
        if not text[match.end() :].startswith((INSERTED, "*", "."))
    }
    assert len(named) > 100
    unknown = {(place, key) for place, key in named if key not in config.SETTINGS}
    assert unknown == set()


def test_every_flag_that_a_message_names_is_defined(texts: list[Text]) -> None:
    flags = _flags() | OTHER_FLAGS
    assert {"workdir", "format", "ensemble"} <= flags
    named = {
        (place, match[1])
        for place, text in texts
        for match in re.finditer(
            r"(?<![\w-])--(?:no)?([a-z][a-z_-]*)(?![\w.\ufffd])", text
        )
    }
    assert len(named) > 50
    assert {
        (place, flag)
        for place, flag in named
        if flag not in flags and not flag.startswith("xla_")
    } == set()


def test_every_command_and_preset_that_a_message_names_is_there(
    texts: list[Text],
) -> None:
    named = [
        (place, words)
        for place, text in texts
        for words in re.findall(r"\bvaswani ([a-z][\w-]*)(?: ([a-z][\w:]*))?", text)
    ]
    assert len(named) > 20
    known = {*commands.COMMANDS, "COMMAND"}
    unknown = [(place, words) for place, words in named if words[0] not in known]
    assert unknown == []
    presets_named = {
        (place, preset)
        for place, (command, preset) in named
        if command in ("train", "prepare") and preset
    }
    assert {
        (place, preset)
        for place, preset in presets_named
        if preset.partition(":")[0] not in presets.names()
    } == set()


def test_no_message_names_a_place_in_a_librarys_source(texts: list[Text]) -> None:
    sources = [(place, text) for place, text in texts if re.search(r"\.cc\b", text)]
    assert sources == []
