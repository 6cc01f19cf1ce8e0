"""Programs forked from a process that has imported the libraries they use.

What a test's program does is done in little time, most of which a new interpreter would
spend on these imports. Nothing of this package is imported before the program is, and
its module runs as `python -m` runs it, in its own environment and directory.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import re
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

LIBRARIES = (
    "absl.app flax.linen fsspec jax.experimental.multihost_utils jaxtyping "
    "matplotlib.figure ml_collections.config_flags optax orbax.checkpoint sacrebleu "
    "sacremoses sentencepiece.sentencepiece_model_pb2"
).split()
# What differs from test to test, and is read by no import of a library.
LATE = re.compile(
    "PYTEST_CURRENT_TEST|VASWANI_JAX_MIRRORS|XLA_FLAGS|AWS_.*|no_proxy"
    # What libraries set in the process of the tests when they are first used there.
    "|CRC32C_SW_MODE|KMP_INIT_AT_FORK|TORCHINDUCTOR_CACHE_DIR"
)
# The libraries read theirs when they are imported.
_environment = dict[str, str]()


def fits(command: Sequence[str], environment: dict[str, str]) -> bool:
    """Return whether `run` can run a command: `python -m`, in the first environment.

    The first time, in whichever worker, each program is started by an interpreter of
    its own: it must not need an import of another.
    """
    if tuple(command[:2]) != (sys.executable, "-m"):
        return False
    early = {
        key: value for key, value in environment.items() if not LATE.fullmatch(key)
    }
    if not _environment:
        _environment.update(early)
    # The workers share this directory.
    compiled = pathlib.Path(environment["JAX_COMPILATION_CACHE_DIR"])
    mark = compiled.with_name(f"started {command[2]}")
    was_started = mark.exists()
    mark.touch()
    return was_started and early == _environment


def run(
    command: Sequence[str],
    *,
    stdin: bytes,
    cwd: pathlib.Path,
    environment: dict[str, str],
    timeout: float,
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run(command, input=stdin, capture_output=True)`."""
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as name:
        streams = [pathlib.Path(name, stream) for stream in ("in", "out", "error")]
        for path, bytes_ in zip(streams, (stdin, b"", b""), strict=True):
            path.write_bytes(bytes_)
        request = [command[2:], [str(path) for path in streams], str(cwd), environment]
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        process_id = int(server.stdout.readline())
        has_ended = bool(select.select([server.stdout], [], [], timeout)[0])
        if not has_ended:
            os.kill(process_id, signal.SIGKILL)
        status = int(server.stdout.readline())
        if not has_ended:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(
            command, status, *(path.read_bytes() for path in streams[1:])
        )


@functools.cache
def _server() -> "subprocess.Popen[str]":
    """Start the process that the programs are forked from; it ends with this one."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.programs.warm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=pathlib.Path(__file__).parents[2],
    )


def serve() -> None:
    """Fork a program for each line on standard input; print its number and status."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Or a program would look through the libraries' objects, and copy their pages,
    # whenever it collects garbage, at its end above all: most of its time.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        process_id = os.fork()
        if not process_id:
            # The program ends as this interpreter does: with its functions for that.
            become(*json.loads(line))
            return
        print(process_id, flush=True)
        status = os.waitpid(process_id, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(
    module: Sequence[str],
    streams: Sequence[str],
    cwd: str,
    environment: dict[str, str],
) -> None:
    """Turn this forked process into the program."""
    for number, path in enumerate(streams):
        with open(path, "ab" if number else "rb") as stream:
            os.dup2(stream.fileno(), number)
    sys.stdin = os.fdopen(0, closefd=False)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(module)
    runpy.run_module(module[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
