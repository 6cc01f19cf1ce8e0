"""`vaswani serve` answers on a socket until a signal ends it."""

import json
import pathlib
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests import settings
from tests.programs import command_lines, runs
from vaswani_jax.checkpoints import bundle, store
from vaswani_jax.core import config


def command(*words: str) -> tuple[str, ...]:
    """Return the words of `vaswani serve`."""
    return (sys.executable, "-m", "vaswani_jax", "serve", *words)


def ask(url: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    """A model in one file, of short sentences: few programs are compiled for it."""
    # Room for three letters, each with a subword for its space, and an end mark.
    limits = {"search.max_source_tokens": 8, "search.max_tokens": 8}
    small = settings.small_settings(**limits)
    vocabulary = settings.letters_vocabulary()
    sizes = {"vocab_size": vocabulary.size, "seed": 1}
    params = settings.random_params(small.model, **sizes)
    record = {"vocabulary": vocabulary.fingerprint, "config": config.to_dict(small)}
    checkpoint = store.Checkpoint(8, {"params": params}, record)
    path = tmp_path / "letters.safetensors"
    bundle.Bundle(small, vocabulary, checkpoint).save(path, dtype="float32")
    return path


def test_it_answers_and_sigterm_ends_it_after_what_it_accepted(
    model: pathlib.Path,
) -> None:
    # A lone sentence waits that long for others, and so is still there at the signal.
    # Any address of this machine is loopback, where it can be bound.
    host = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
    flags = ("--port=0", "--wait_seconds=1", "--beam_sizes=2", f"--host={host}")
    words = command(str(model), *flags)
    with runs.running(words, env=runs.environment(devices=1)) as process:
        assert process.stdout and process.stderr
        url = process.stdout.readline().decode().strip()
        assert url.startswith(f"http://{host}:"), process.stderr.read().decode()
        assert ask(f"{url}health") == (200, {"status": "ready", "models": ["letters"]})
        status, answer = ask(f"{url}v1/translate", {"text": "a b\n\nc", "n_best": 2})
        assert status == 200
        [result] = answer["results"]
        assert "\n\n" in result["translations"][0]["text"]
        assert ask(f"{url}v1/translate", {"text": 3})[0] == 422
        host, port = url.removeprefix("http://").rstrip("/").split(":")
        body = b'{"text": "a b c"}'
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(
                b"POST /v1/translate HTTP/1.0\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            # An answer to a later request means that the first one was read.
            assert ask(f"{url}v1/models")[0] == 200
            process.send_signal(signal.SIGTERM)
            received = b"".join(iter(lambda: client.recv(65536), b""))
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 0, messages.decode()
    assert "Traceback" not in messages.decode()
    assert messages.decode().splitlines()[-1] == "ended"


def test_a_second_signal_ends_it_without_the_answers(model: pathlib.Path) -> None:
    words = command(str(model), "--port=0", "--beam_sizes=2", "--max_seconds=600")
    with runs.running(words, env=runs.environment(devices=1)) as process:
        assert process.stdout and process.stderr
        url = process.stdout.readline().decode().strip()
        assert url, process.stderr.read().decode()
        host, port = url.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            # It waits for the rest of the body, and so for the answer.
            client.sendall(
                b"POST /v1/translate HTTP/1.0\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{"
            )
            assert ask(f"{url}v1/models")[0] == 200
            process.send_signal(signal.SIGTERM)
            while ask(f"{url}health")[0] == 200:
                pass  # The first signal has not arrived.
            process.send_signal(signal.SIGTERM)
            assert client.recv(1) == b""
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, messages.decode()
    assert "Traceback" not in messages.decode()


REFUSED = {
    "": "--models is missing: name a run, a bundle or NAME=PATH",
    "none --port=0": "none is not a directory; name that of a run",
    "none --root_path=a": "--root_path=a must begin with / and not end",
    "none --hosts=a:8000": "--hosts=a:8000 must be a name or an address",
    "none --hosts=": "--hosts= names no host: name one, or leave it out",
    "none --api_keys=": "--api_keys has an empty path: name a file or a directory;",
    "none --cors_origins=https://a.org/": "=https://a.org/ must be as browse",
    "none --cors_origins=a.org": "--cors_origins=a.org must be as browsers",
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = [(line.split(), tmp_path_factory.mktemp("line")) for line in REFUSED]
    return dict(zip(REFUSED, command_lines.run("serve", lines), strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_what_makes_no_sense_is_refused_in_one_line(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    error = runs.error_of(refusals[line])
    assert error.startswith("error: ")
    assert REFUSED[line] in error
