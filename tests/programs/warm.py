"""Programs forked from a process that has imported the libraries they use.

What a test's program does is done in little time, most of which a new interpreter would
spend on these imports. Nothing of this package is imported before the program is, and
its module runs as `python -m` runs it, in its own environment and directory.
"""

import atexit
import multiprocessing
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence

LIBRARIES = (
    "absl.app flax.linen jax.experimental.multihost_utils matplotlib.figure "
    "ml_collections.config_flags optax orbax.checkpoint sacrebleu sacremoses "
    "sentencepiece"
).split()
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(LIBRARIES)
# What differs from test to test, and is read by no import of a library.
LATE = re.compile(
    "PYTEST_CURRENT_TEST|VASWANI_JAX_MIRRORS|XLA_FLAGS|AWS_.*|no_proxy"
    # What libraries set in the process of the tests when they are first used there.
    "|CRC32C_SW_MODE|KMP_INIT_AT_FORK|TORCHINDUCTOR_CACHE_DIR"
)
# The libraries read theirs when they are imported.
_environment = dict[str, str]()
_started = set[str]()


def fits(command: Sequence[str], environment: dict[str, str]) -> bool:
    """Whether `run` can run a command: `python -m`, in the first one's environment.

    The first time, each program is started by an interpreter of its own: it must not
    need an import of another.
    """
    if tuple(command[:2]) != (sys.executable, "-m"):
        return False
    own = {key: value for key, value in environment.items() if not LATE.fullmatch(key)}
    if not _environment:
        _environment.update(own)
    known = command[2] in _started
    _started.add(command[2])
    return known and own == _environment


def run(
    command: Sequence[str],
    *,
    stdin: bytes,
    cwd: pathlib.Path,
    environment: dict[str, str],
    timeout: float,
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run(command, input=stdin, capture_output=True)`."""
    with tempfile.TemporaryDirectory() as name:
        streams = [pathlib.Path(name, stream) for stream in ("in", "out", "error")]
        for path, bytes_ in zip(streams, (stdin, b"", b""), strict=True):
            path.write_bytes(bytes_)
        process = _server.Process(
            target=_become, args=(command[2:], streams, cwd, environment)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(
            command, process.exitcode, *(path.read_bytes() for path in streams[1:])
        )


def _become(
    module: Sequence[str],
    streams: Sequence[pathlib.Path],
    cwd: pathlib.Path,
    environment: dict[str, str],
) -> None:
    """Turn this forked process into the program."""
    for number, path in enumerate(streams):
        with open(path, "ab" if number else "rb") as opened:
            os.dup2(opened.fileno(), number)
    sys.stdin = os.fdopen(0, closefd=False)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(module)
    try:
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()  # multiprocessing would end the process without them
