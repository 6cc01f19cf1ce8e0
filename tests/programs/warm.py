"""Programs forked from a process that has imported what they use.

What a test's program does is done in little time, most of which a new interpreter would
spend on imports. Its module is not among them, and runs as `python -m` runs it, in its
own environment and directory.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pathlib
import re
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

LIBRARIES = (
    "absl.app filelock flax.linen fsspec jax.experimental.multihost_utils jax.export "
    "jaxtyping psutil tqdm "
    "matplotlib.backends.backend_agg matplotlib.figure ml_collections.config_flags "
    "optax orbax.checkpoint sacrebleu.significance sacremoses safetensors.numpy "
    "sentencepiece.sentencepiece_model_pb2 tomllib"
).split()
# What most programs import of this package. None of it defines a flag, or reads the
# environment, before a program calls it.
PACKAGE = (
    "vaswani_jax.api vaswani_jax.benchmarks.decoding_speed "
    "vaswani_jax.benchmarks.training_speed vaswani_jax.cli.program "
    "vaswani_jax.cli.run_flags vaswani_jax.comparer vaswani_jax.data.treebank "
    "vaswani_jax.evaluation.scored_texts vaswani_jax.exchange.marian_import "
    "vaswani_jax.exchange.verify vaswani_jax.hardware.summary "
    "vaswani_jax.hardware.workload vaswani_jax.inference.back_translation "
    "vaswani_jax.inference.decode_job vaswani_jax.pages.build "
    "vaswani_jax.pages.comparison_page vaswani_jax.pages.heads "
    "vaswani_jax.paper.claims vaswani_jax.paper.figures vaswani_jax.paper.tables "
    "vaswani_jax.plots.attention_lines vaswani_jax.plots.attention_maps "
    "vaswani_jax.plots.learning_curves vaswani_jax.plots.tree_diagrams "
    "vaswani_jax.preparer vaswani_jax.text_checks.checks vaswani_jax.trainer"
).split()
# What differs from test to test, and is read by no import of a library.
LATE = re.compile(
    "PYTEST_CURRENT_TEST|VASWANI_JAX_MIRRORS|XLA_FLAGS|AWS_.*|no_proxy"
    # What libraries set in the process of the tests when they are first used there.
    "|CRC32C_SW_MODE|KMP_INIT_AT_FORK|TORCHINDUCTOR_CACHE_DIR"
)
# The libraries read theirs when they are imported.
_environment = dict[str, str]()
_statuses = list[int]()  # that of a forked program which has ended
STREAMS = b"streams"  # what their descriptors are sent with
NUMBER = "--number="
# Trains without a picture at the end, as where matplotlib is not installed: a fifth of
# the time that a run of the tests needs. `vaswani train` draws it.
WITHOUT_PICTURES = "vaswani_jax.main"


def fits(command: Sequence[str], environment: dict[str, str]) -> bool:
    """Return whether `run` can run a command: `python -m`, in the first environment.

    The first time, in whichever worker, each program of the package is started by an
    interpreter of its own: it must not need an import of another.
    """
    if tuple(command[:2]) != (sys.executable, "-m"):
        return False
    early = {
        key: value for key, value in environment.items() if not LATE.fullmatch(key)
    }
    if not _environment:
        _environment.update(early)
    program = _program(command)
    if not program.startswith("vaswani_jax"):
        return early == _environment
    # The workers share this directory.
    compiled = pathlib.Path(environment["JAX_COMPILATION_CACHE_DIR"])
    mark = compiled.with_name(f"started {program}")
    was_started = mark.exists()
    mark.touch()
    return was_started and early == _environment


def _program(command: Sequence[str]) -> str:
    """Return the module that a command runs: for `vaswani`, that of its first word."""
    from vaswani_jax.cli import commands  # not for the clients of `command_of`

    module, *words = command[2:]
    if module == "vaswani_jax" and words and words[0] in commands.COMMANDS:
        return f"vaswani_jax.{commands.COMMANDS[words[0]][0]}"
    return module


def run(
    command: Sequence[str],
    *,
    stdin: bytes,
    cwd: pathlib.Path,
    environment: dict[str, str],
    timeout: float,
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run(command, input=stdin, capture_output=True)`."""
    with contextlib.ExitStack() as stack:
        streams = [
            stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in range(3)
        ]
        streams[0].write(stdin)
        streams[0].seek(0)
        connection = _ask(
            _address(),
            command[2:],
            streams=[stream.fileno() for stream in streams],
            cwd=str(cwd),
            environment=environment,
        )
        stack.enter_context(connection)
        replies = stack.enter_context(connection.makefile())
        process_id = int(replies.readline())
        # It is readable at the latest when the program has ended.
        has_ended = bool(select.select([connection], [], [], timeout)[0])
        if not has_ended:
            os.kill(process_id, signal.SIGKILL)
        status = int(replies.readline())
        if not has_ended:
            raise subprocess.TimeoutExpired(command, timeout)
        for stream in streams:
            stream.seek(0)
        output, errors = (stream.read() for stream in streams[1:])
        return subprocess.CompletedProcess(command, status, output, errors)


class Process:
    """A program that runs beside a test; used as a `subprocess.Popen` of its command.

    The program is forked elsewhere: a small process here has its streams and its end,
    and tells its number.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        """Fork a program for which `fits` holds.

        Args:
            command: Its command.
            **options: Those of `subprocess.Popen`.
        """
        reader, writer = os.pipe()
        words = [f"{NUMBER}{writer}", *command[2:]]
        interpreter = [sys.executable, "-S", "-E", __file__, _address()]
        self._client = subprocess.Popen(
            [*interpreter, *words], pass_fds=[writer], **options
        )
        os.close(writer)
        with os.fdopen(reader) as numbers:
            self.pid = int(numbers.readline())

    def __getattr__(self, name: str) -> Any:
        """Return what the small process has of the program."""
        return getattr(self._client, name)

    def __enter__(self) -> "Process":
        """Wait for the program when the block ends."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the streams and wait for the program."""
        self._client.__exit__(*error)  # type: ignore[arg-type]

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, unless it has ended."""
        if self._client.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program, unless it has ended."""
        self.send_signal(signal.SIGKILL)


def command_of(*module: str) -> list[str]:
    """Return a command that runs a module as `python -m` does, for a shell.

    Without a module it takes one as its first argument.
    """
    # Without site-packages an interpreter starts in little time.
    return [sys.executable, "-S", "-E", __file__, _address(), *module]


def wait_for(address: str, module: Sequence[str]) -> int:
    """Run a program with all that this process has; return its status.

    If a signal ends the program, it ends this process, too.

    Args:
        address: Where programs are forked.
        module: The program and its arguments. Before them, `--number=` and a descriptor
            say where to write the program's number.
    """
    descriptor = -1
    if module[0].startswith(NUMBER):
        descriptor = int(module[0].removeprefix(NUMBER))
        module = module[1:]
    # What a terminal sends to both is the program's.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection = _ask(
        address,
        module,
        streams=range(3),
        cwd=os.getcwd(),
        environment=os.environ,
    )
    with connection, connection.makefile() as replies:
        process_id = int(replies.readline())
        if descriptor >= 0:
            os.write(descriptor, f"{process_id}\n".encode())
            os.close(descriptor)
        status = int(replies.readline())
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _ask(
    address: str,
    module: Sequence[str],
    *,
    streams: Sequence[int],
    cwd: str,
    environment: Mapping[str, str],
) -> socket.socket:
    """Ask for a program; return where its number is read from, and then its status."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    socket.send_fds(connection, [STREAMS], streams)
    request = [module, cwd, dict(environment)]
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


@functools.cache
def _address() -> str:
    """Start the process that programs are forked from, which ends with this one."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    address = f"{directory}/programs"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.programs.warm", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=pathlib.Path(__file__).parents[2],
    )
    atexit.register(_end, server)
    assert server.stdout and server.stdout.readline() == b"ready\n"
    return address


def _end(server: "subprocess.Popen[bytes]") -> None:
    """End the process that programs are forked from."""
    for stream in (server.stdin, server.stdout):
        if stream:
            stream.close()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def serve(address: str) -> None:
    """Fork a program for each connection, until standard input ends."""
    atexit.register(end_at_once)  # The first to be registered is the last to be called.
    for name in [*LIBRARIES, *PACKAGE]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    draw()
    # Or a program would look through the libraries' objects, and copy their pages,
    # whenever it collects garbage, at its end above all: most of its time.
    gc.collect()
    gc.freeze()
    # Whoever runs the tests, programs are not under nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    print("ready", flush=True)
    while sys.stdin not in select.select([sys.stdin, server], [], [])[0]:
        connection, _ = server.accept()
        if not os.fork():
            server.close()
            # The program ends as this interpreter does: with its functions for that.
            answer(connection)
            return
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def draw() -> None:
    """Draw a picture: matplotlib looks for fonts and makes a parser for its first."""
    with contextlib.suppress(ImportError):
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        figure.subplots().set_xlabel(r"$10^{-3}$")
        figure.savefig(io.BytesIO())


def answer(connection: socket.socket) -> None:
    """Fork a program; send its number, and its status when it has ended."""
    _, streams, *_ = socket.recv_fds(connection, len(STREAMS), 3)
    with connection.makefile() as requests:
        request = json.loads(requests.readline())
    process_id = os.fork()
    if not process_id:
        connection.close()
        become(streams, *request)
        return
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{process_id}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
    connection.sendall(f"{status}\n".encode())
    os._exit(0)


def become(
    streams: Sequence[int],
    module: Sequence[str],
    cwd: str,
    environment: dict[str, str],
) -> None:
    """Turn this forked process into the program."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, closefd=False)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(module)
    if module[0] == WITHOUT_PICTURES:
        sys.modules["matplotlib"] = None  # type: ignore[assignment]
    try:
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        _statuses.append(code)
        raise
    except KeyboardInterrupt:
        raise  # The interpreter ends by the signal.
    except BaseException:
        _statuses.append(1)
        raise
    _statuses.append(0)


def end_at_once() -> None:
    """End a forked program with its status, after its own functions of atexit.

    Else the interpreter would take all modules apart, and copy their pages: a large
    part of the time of a short program. Its first start in `fits` ends as usual.
    """
    if _statuses:
        with contextlib.suppress(OSError):  # Else the interpreter says what fails.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_statuses[0] & 0xFF)


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(wait_for(sys.argv[1], sys.argv[2:]))
    serve(sys.argv[1])
