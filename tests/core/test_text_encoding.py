"""Text is UTF-8 in every file and on every output, whatever the locale."""

import ast

from tests import interpreter

PACKAGE = interpreter.ROOT / "vaswani_jax"
TEXT = "₪ 你好 \\udc80"
PROGRAM = """
import sys
from vaswani_jax.cli import program, syntax


def main():
    print("TEXT")
    print("TEXT", file=sys.stderr)


program.Program(main=main, syntax=syntax.Syntax()).run(["program"])
"""


def _uses_the_locale(call: ast.Call) -> bool:
    """Return True for a call that reads or writes text in the locale's encoding."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in options:
        return False
    if isinstance(call.func, ast.Attribute):
        is_text = ast.unparse(options.get("text", ast.Constant(False))) == "True"
        return call.func.attr in ("read_text", "write_text") or is_text
    if not isinstance(call.func, ast.Name) or call.func.id != "open":
        return False
    mode = call.args[1] if len(call.args) > 1 else options.get("mode")
    return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))


def test_no_file_is_read_or_written_in_the_encoding_of_the_locale() -> None:
    calls = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _uses_the_locale(node)
    ]
    assert calls == []


def test_a_program_prints_utf_8_whatever_the_locale() -> None:
    printed = interpreter.output_of(
        PROGRAM.replace("TEXT", TEXT), PYTHONIOENCODING="ascii", LC_ALL="C"
    )
    assert printed == TEXT.replace("\\\\", "\\")
