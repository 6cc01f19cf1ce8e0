"""The command `vaswani`: every program of the package by a short name."""

import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from vaswani_jax import __version__
from vaswani_jax.cli import logs
from vaswani_jax.core.suggestions import suggest

# The command, the program that it runs, and what it does.
COMMANDS = {
    "train": ("main", "Train a model from a preset or a configuration file."),
    "check": ("check", "Check the text of a run, or whether a run fits accelerators."),
    "translate": ("decode", "Translate lines with a trained model, or score them."),
    "back-translate": (
        "back_translate_text",
        "Make synthetic sentence pairs from text in one language.",
    ),
    "serve": ("serve", "Serve models over HTTP: an API, a page to translate on."),
    "evaluate": (
        "evaluate",
        "Score a model on its validation or test set, or on other text.",
    ),
    "compare": (
        "compare",
        "Test whether runs and other systems differ, and show where.",
    ),
    "evaluate-trees": ("evaluate_trees", "Score trees against a treebank's: F1."),
    "agree-trees": ("agree_trees", "Keep the trees on which two parsers agree."),
    "prepare": ("prepare_data", "Make vocabulary and token files, without training."),
    "average": ("average_checkpoints", "Average checkpoints of a run."),
    "export": ("export", "Write a model as one file, or for other programs."),
    "import-marian": ("import_marian", "Turn a MarianMT (OPUS) model into a run."),
    "plot": (
        "plot",
        "Draw learning curves, attention, a tree or a figure of the paper.",
    ),
    "page": ("page", "Write an HTML page of a run's attention and searches."),
    "report": ("report", "Print the paper's tables and figures beside your results."),
    "benchmark": ("benchmark", "Time training or decoding on this machine."),
}


def main(words: Sequence[str] | None = None) -> None:
    """Run the command that the first word names.

    Args:
        words: What follows `vaswani`; by default what the shell has passed.
    """
    words = list(sys.argv[1:] if words is None else words)
    command = words[0] if words else "--help"
    if command in ("--help", "-h"):
        _print(_help())
    elif command == "--version":
        _print(f"vaswani-jax {__version__}")
    elif command in COMMANDS:
        module = _import(COMMANDS[command][0])
        module.PROGRAM.run([f"vaswani {command}", *words[1:]])
    else:
        hint = suggest(command, COMMANDS) or "; `vaswani --help` lists them"
        print(f"error: unknown command {command}{hint}", file=sys.stderr)
        sys.exit(1)


def _import(name: str) -> Any:
    """Import a program without garbage collection, a tenth of the time of its start."""
    gc.disable()
    try:
        return importlib.import_module(f"vaswani_jax.{name}")
    finally:
        gc.enable()


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        logs.discard_output()
        sys.exit(141)
    except OSError as error:
        logs.discard_output()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: vaswani COMMAND [ARGUMENT ...] [--FLAG=VALUE ...]",
            "",
            *lines,
            "",
            "vaswani COMMAND --help lists its flags; vaswani train PRESET --help the",
            "settings, too; vaswani --version prints the version.",
        ]
    )
