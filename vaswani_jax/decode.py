"""Section 6.1: lines in, lines out, by beam search from a checkpoint.

python -m vaswani_jax.decode --config=configs/demo.py --workdir=runs/demo \\
    --input=FILE --output=FILE
"""

import gzip
import pathlib
import sys
import typing
from typing import IO

from absl import flags
from ml_collections import config_flags

from vaswani_jax.core import parallel, parsing, program
from vaswani_jax.data import corpus, manifest, sources
from vaswani_jax.inference import translate
from vaswani_jax.training import selection

CONFIG = config_flags.DEFINE_config_file("config", None, "What was trained.")
WORKDIR = flags.DEFINE_string(
    "workdir", None, "Where the checkpoints lie; runs/NAME of the config by default."
)
CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "averaged", "averaged, newest, best, average:N or a step."
)
INPUT = flags.DEFINE_string("input", "-", "A UTF-8 file, plain or .gz; - is stdin.")
OUTPUT = flags.DEFINE_string(
    "output", "-", "The file to write, plain or .gz; - is stdout."
)

# Lines that are sorted by length together, and written before the next are begun.
BLOCK_LINES = 4096


def main() -> None:
    """Translate the input."""
    settings = parsing.parse(CONFIG.value)
    workdir = program.workdir(WORKDIR.value)
    # All input is read and checked before any work starts.
    lines = _read(INPUT.value)
    parallel.keep_programs(workdir / "compiled")
    directory = corpus.data_directory(settings.data, workdir)
    manifest.refuse_difference(settings, directory, text=False, log=program.say)
    data = corpus.open_prepared(directory)
    found = selection.select(workdir, CHECKPOINT.value)
    selection.check_fits(found, settings, data.vocabulary)
    program.say(selection.describe(workdir, CHECKPOINT.value, found))
    params = parallel.replicate(found.items["params"])
    translator = translate.Translator(settings, data.vocabulary)
    with _open_output(OUTPUT.value) as output:
        for start in range(0, len(lines), BLOCK_LINES):
            block = lines[start : start + BLOCK_LINES]
            for text in translator.translate(
                params, block, warn=program.say, first_line=start + 1
            ):
                output.write(f"{text}\n".encode())
            output.flush()
    program.say(f"{len(lines):,} lines in, {len(lines):,} lines out")


def _read(name: str) -> list[str]:
    if name == "-":
        return list(sources.decoded(sys.stdin.buffer, name="standard input"))
    path = pathlib.Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"--input: no file {path}")
    return list(sources.lines(path))


def _open_output(name: str) -> IO[bytes]:
    if name == "-":
        return open(sys.stdout.fileno(), "wb", closefd=False)
    if name.endswith(".gz"):
        return typing.cast(IO[bytes], gzip.open(name, "wb"))
    return open(name, "wb")


if __name__ == "__main__":
    flags.mark_flag_as_required("config")
    program.run(main, expected=(ValueError, OSError, ImportError))
