"""The architecture of the package, read from its source without running it."""

import ast
import functools
import pathlib
import re
from typing import NamedTuple

import pytest

import vaswani_jax
from tests import interpreter

ROOT = pathlib.Path(vaswani_jax.__file__).parent
TESTS = pathlib.Path(__file__).parents[1]
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
FLOORS = (
    {"core"},
    {"model", "data"},
    {"checkpoints"},
    {"training", "inference"},
    {"analysis", "evaluation", "plots", "hardware", "text_checks"},
    {"paper", "pages", "exchange", "benchmarks"},
    {"service"},
    {"api", "cli", "preparer", "trainer"},
    {"comparer"},
)
# A room may import itself and the floors below, and the rooms of its floor never.
BELOW = {
    room: set().union(*FLOORS[:number])
    for number, floor in enumerate(FLOORS)
    for room in floor
}
NEEDS_JAX = {"jax", "jaxlib", "flax", "optax", "orbax"}
# What takes long to import, and is imported by who uses it.
SLOW = {
    *{"flax", "fsspec", "matplotlib", "optax", "orbax", "pandas", "sacrebleu"},
    *{"sacremoses", "tensorflow_datasets", "tensorstore", "torch", "transformers"},
}
every_module = pytest.mark.parametrize("path", MODULES, ids=str)


class Source(NamedTuple):
    """What tests ask of a module.

    Attributes:
        imports: The dotted names of all that it imports, in functions too, split.
        words: The names and attributes in its code.
        first_line: That of its docstring.
        has_code: True if it is not a docstring alone.
    """

    imports: list[list[str]]
    words: set[str]
    first_line: str
    has_code: bool


@functools.cache
def read(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names, words = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.Name):
            words.add(node.id)
    return Source(
        imports=[name.split(".") for name in sorted(names)],
        words=words,
        first_line=(ast.get_docstring(tree) or "").partition("\n")[0],
        has_code=len(tree.body) > 1,
    )


@every_module
def test_imports_point_down_only(path):
    rooms = {name[1] for name in read(path).imports if name[0] == "vaswani_jax"}
    room = path.parts[0].removesuffix(".py")
    # The other modules at the top are programs and the package itself.
    allowed = BELOW[room] | {room} if room in BELOW else set(BELOW)
    allowed = allowed | {"__version__"}  # It needs nothing.
    assert rooms <= allowed, f"{path} may not import {rooms - allowed}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.parts[0] == "data"], ids=str)
def test_data_names_nothing_of_jax(path):
    assert not {name[0] for name in read(path).imports} & NEEDS_JAX


def test_data_loads_no_jax():
    names = [".".join(p.with_suffix("").parts) for p in MODULES if p.parts[0] == "data"]
    program = "; ".join(
        [
            *(f"import vaswani_jax.{name.removesuffix('.__init__')}" for name in names),
            f"import sys; print(sorted({NEEDS_JAX} & set(sys.modules)))",
        ]
    )
    assert interpreter.output_of(program) == "[]"


@pytest.mark.parametrize(
    ("program", "used"),
    [
        ("prepare_data", set()),
        ("decode", {"jax", "jaxlib"}),
        ("evaluate", {"jax", "jaxlib", "flax", "sacrebleu"}),
        ("main", {"jax", "jaxlib", "flax", "optax", "sacrebleu"}),
    ],
)
def test_a_program_imports_what_it_uses(program, used):
    modules = interpreter.output_of(
        f"import vaswani_jax.{program}, sys; print(*sys.modules)"
    ).split()
    assert {name for name in modules if name in SLOW | NEEDS_JAX} == used


@every_module
def test_pmap_is_known_to_core_parallel_alone(path):
    names = {word for name in read(path).imports for word in name}
    names |= read(path).words
    assert ("pmap" in names) == (path.as_posix() == "core/parallel.py")


def test_at_most_six_modules_know_of_object_stores():
    importers = [
        path.as_posix()
        for path in MODULES
        if any("remote" in name for name in read(path).imports)
    ]
    assert 0 < len(importers) <= 6, importers


@every_module
def test_first_line_says_what_the_module_is(path):
    first = read(path).first_line
    names_a_section = re.search(r"\b([Ss]ections?|[Tt]able) \d", first)
    assert names_a_section or re.fullmatch(r"[A-Z][^.]+ .+[.:]", first), first


def test_the_tests_of_a_module_have_its_name():
    files = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    missing = []
    for path in MODULES:
        name = path.with_name(f"test_{path.name}").as_posix()
        # Tests in programs/ start a program as a user does.
        if read(path).has_code and not {name, f"programs/{name}"} & files:
            missing.append(str(path))
    assert not missing
