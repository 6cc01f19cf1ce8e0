"""A ~ is the user's home in every flag that is a path."""

import json

import pytest

from tests import interpreter
from vaswani_jax.cli import commands

# Flags that take any text and are no paths; a new flag is one of them or a path.
NO_PATHS = {
    *(
        "checkpoint",
        "checkpoints",
        "shape",
        "batches",
        "steps",
        "hardware",
        "lengths",
        "sentence",
    ),
    *("source_locale", "target_locale", "coordinator", "tree"),
    # Of `translate`.
    "placeholders",
    # Of `evaluate`, whose files are expanded one by one, and of `compare`.
    *("split", "metrics"),
    # Of `back-translate`.
    *("tag", "blank_token"),
    # Of `serve`.
    *("beam_sizes", "cors_origins", "host", "hosts", "models", "root_path"),
    # Of `plot`, numbers of heads.
    *("word", "heads"),
}
PROGRAM = """
import importlib, json, sys
from absl import flags
from vaswani_jax.cli import path_flags, program

shared = set(flags.FLAGS)
values = {}
for name in json.loads(sys.argv[1]):
    importlib.import_module(f"vaswani_jax.{name}")
    own = list(flags.FLAGS.flags_by_module_dict()[f"vaswani_jax.{name}"])
    for flag in own:
        kinds = (path_flags.PathParser, path_flags.PathListParser)
        if isinstance(flag.parser, kinds):
            flag.parse("~/a,~/b@best")
            values[f"{name} --{flag.name}"] = flag.value
        elif type(flag.parser) in (flags.ArgumentParser, flags.ListParser):
            values[f"{name} --{flag.name}"] = None
    for flag in own:
        delattr(flags.FLAGS, flag.name)
for name in shared:
    if type(flags.FLAGS[name].parser) is flags.ArgumentParser:
        if flags.FLAGS.find_module_defining_flag(name).startswith("vaswani_jax"):
            values[f"all --{name}"] = None
print(json.dumps(values))
"""


@pytest.fixture(scope="module")
def values() -> dict[str, str | list[str] | None]:
    """The value of each flag of free text after `~/a,~/b@best`; None if no path."""
    programs = [module for module, _ in commands.COMMANDS.values()]
    printed = interpreter.output_of(PROGRAM, json.dumps(programs), HOME="/home/me")
    return dict(json.loads(printed))


def test_every_flag_of_free_text_is_known(
    values: dict[str, str | list[str] | None],
) -> None:
    others = {key.partition("--")[2] for key, value in values.items() if value is None}
    assert others == NO_PATHS


def test_every_path_begins_at_home(values: dict[str, str | list[str] | None]) -> None:
    found = {key: value for key, value in values.items() if value is not None}
    assert len(found) > 20
    lists = {
        "back_translate_text --ensemble",
        "compare --output",
        "decode --ensemble",
        "decode --rerank_reverse",
        "decode --rerank_with",
        "page --heads",
        "report --runs",
    }
    for key, value in found.items():
        if key in lists:
            assert value == ["/home/me/a", "/home/me/b@best"], key
        elif key in ("plot --workdir", "compare --systems"):
            assert value == ["/home/me/a,~/b@best"]
        else:
            assert value == "/home/me/a,~/b@best", key
