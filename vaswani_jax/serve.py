"""Serve models over HTTP: an API, a page to translate on, and LibreTranslate's API.

vaswani serve runs/demo
vaswani serve runs/demo fast=runs/small@best --port=8080
python -m vaswani_jax.serve --models=runs/demo
"""

import contextlib
import ipaddress
import logging
import os
import re
import sys

from absl import flags

from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import extras
from vaswani_jax.service.limits import Limits

logger = logging.getLogger(__name__)
DEFAULTS = Limits()
PACKAGES = ("fastapi", "httptools", "prometheus_client", "uvicorn")

MODELS = flags.DEFINE_multi_string(
    "models",
    [],
    "Runs, bundles or MarianMT directories: PATH, PATH@CHECKPOINT or NAME=PATH.",
)
HOST = flags.DEFINE_string(
    "host", "127.0.0.1", "The address to listen on; 0.0.0.0 listens on all addresses."
)
PORT = flags.DEFINE_integer(
    "port",
    8000,
    "The port to listen on; 0 takes any free one.",
    lower_bound=0,
    upper_bound=65535,
)
HOSTS = flags.DEFINE_list(
    "hosts",
    [],
    "The host names that the server answers to; by default those of this machine on "
    "the loopback address, elsewhere any.",
)
ROOT_PATH = flags.DEFINE_string(
    "root_path", "", "The path at which a proxy shows the server, such as /mt."
)
CORS_ORIGINS = flags.DEFINE_list(
    "cors_origins",
    [],
    "The origins whose pages may use the API, such as https://example.org.",
)
API_KEYS = path_flags.define_path(
    "api_keys", None, "A file of keys, one a line; a request needs one of them."
)
LOG_TEXTS = flags.DEFINE_bool("log_texts", False, "Log the texts of requests.")
RELOAD_SECONDS = flags.DEFINE_float(
    "reload_seconds",
    10.0,
    "How often to look for changed models; 0 looks at SIGHUP alone.",
    lower_bound=0.0,
)
BEAM_SIZES = flags.DEFINE_list(
    "beam_sizes",
    [],
    "The beam sizes that a request may name, the default first; by default the "
    "model's own alone.",
)
MAX_LENGTH_PENALTY = flags.DEFINE_float(
    "max_length_penalty",
    DEFAULTS.length_penalties[1],
    "The largest length penalty of a request.",
    lower_bound=0.0,
)
MAX_N_BEST = flags.DEFINE_integer(
    "max_n_best", DEFAULTS.n_best, "The most translations of a text.", lower_bound=1
)
MAX_TEXTS = flags.DEFINE_integer(
    "max_texts", DEFAULTS.texts, "The most texts of a request.", lower_bound=1
)
MAX_CHARACTERS = flags.DEFINE_integer(
    "max_characters",
    DEFAULTS.characters,
    "The most characters of a request.",
    lower_bound=1,
)
MAX_SECONDS = flags.DEFINE_float(
    "max_seconds",
    DEFAULTS.seconds,
    "The most seconds until a request is answered.",
    lower_bound=0.1,
)
MAX_QUEUE = flags.DEFINE_integer(
    "max_queue",
    DEFAULTS.queue,
    "The most sentences that wait for a model.",
    lower_bound=1,
)
WAIT_SECONDS = flags.DEFINE_float(
    "wait_seconds",
    DEFAULTS.wait_seconds,
    "The most seconds that a sentence waits for others to share its batch.",
    lower_bound=0.0,
)


def check_flags() -> None:
    """Refuse wrong values of flags, and an installation without the extra `serve`."""
    if not MODELS.value:
        raise ValueError("--models is missing: name a run, a bundle or NAME=PATH")
    root = ROOT_PATH.value
    if root and (not root.startswith("/") or root.endswith("/")):
        raise ValueError(f"--root_path={root} must begin with / and not end with it")
    _beam_sizes()
    _hosts()
    _check_origins()
    extras.require(PACKAGES, extra="serve", purpose="a server needs")


def _hosts() -> list[str]:
    """Return the names in --hosts, as the guard compares them.

    Raises:
        ValueError: One has a port, or there are none.
    """
    if HOSTS.present and not HOSTS.value:
        raise ValueError("--hosts= names no host: name one, or leave it out")
    names = []
    for value in HOSTS.value:
        name = _host_name(value.lower())
        if ":" in name and not name.endswith("]"):
            raise ValueError(
                f"--hosts={value} must be a name or an address without a port"
            )
        names.append(name)
    return names


def _host_name(name: str) -> str:
    """Return a name as a URL has it: an IPv6 address in brackets."""
    with contextlib.suppress(ValueError):
        return f"[{ipaddress.IPv6Address(name)}]"
    return name


def _check_origins() -> None:
    """Refuse origins that no browser sends.

    Raises:
        ValueError: One has a path, capitals or no scheme.
    """
    for origin in CORS_ORIGINS.value:
        # Browsers send "null" for pages of files.
        if origin not in ("*", "null") and not re.fullmatch(
            r"[a-z][a-z0-9+.-]*://[^/?#A-Z]+", origin
        ):
            raise ValueError(
                f"--cors_origins={origin} must be as browsers send it: scheme and host "
                "in lower case, without a path, such as https://example.org"
            )


def main() -> None:
    """Load the models, and answer requests until a signal ends the server."""
    # These need the extra, which check_flags looks for.
    from vaswani_jax.service import (
        app,
        guard,
        log_texts,
        model_files,
        models,
        page_writer,
        server,
    )
    from vaswani_jax.service.keys import Keys, read_keys

    hangups = server.note_hangups()
    origins = model_files.read_origins(MODELS.value)
    keys = Keys([])
    if API_KEYS.value:
        keys = read_keys(program.local_path("api_keys", API_KEYS.value))
    if not LOG_TEXTS.value:
        log_texts.hide()
    limits = _limits()
    with server.listening(HOST.value, PORT.value) as listener:
        url = server.url_of(listener)
        hosts = _hosts()
        if not hosts and _is_loopback(listener.getsockname()[0]):
            # Accept the printed address as a host name, too: it may be 127.0.1.1.
            names = [listener.getsockname()[0], HOST.value.lower()]
            hosts = [*guard.LOOPBACK_HOSTS, *map(_host_name, names)]
        loader = models.Loader(_load, limits=limits)
        served = [loader.load(origin) for origin in origins]
        failures: list[Exception] = []

        def fail(error: Exception) -> None:
            failures.append(error)
            running.should_exit = True

        def announce() -> None:
            logger.info("ready")
            print(url, flush=True)

        service = app.Service(
            models.Models(
                served,
                limits=limits,
                origins=origins,
                loader=loader,
                prepare=page_writer.prepare,
            ),
            app.Options(
                hosts=hosts,
                root_path=ROOT_PATH.value,
                cors_origins=CORS_ORIGINS.value,
                keys=keys,
                log_texts=LOG_TEXTS.value,
                reload_seconds=RELOAD_SECONDS.value,
            ),
            on_ready=announce,
            on_failure=fail,
        )
        running = server.Server(
            service, drain_seconds=limits.seconds + 5, hangups=hangups
        )
        logger.info(f"listening on {url}, preparing the models")
        running.run(sockets=[listener])
    if failures:
        raise failures[0]
    logger.info("ended")
    sys.stdout.flush()
    # A thread that still compiles would keep the process alive.
    os._exit(0)


def _limits() -> Limits:
    return Limits(
        texts=MAX_TEXTS.value,
        characters=MAX_CHARACTERS.value,
        beam_sizes=_beam_sizes(),
        length_penalties=(0.0, MAX_LENGTH_PENALTY.value),
        n_best=MAX_N_BEST.value,
        seconds=MAX_SECONDS.value,
        queue=MAX_QUEUE.value,
        wait_seconds=WAIT_SECONDS.value,
    )


def _beam_sizes() -> tuple[int, ...]:
    sizes = BEAM_SIZES.value
    if not all(size.isdecimal() and 0 < int(size) <= 100 for size in sizes):
        raise ValueError(
            f"--beam_sizes={','.join(sizes)} must be numbers from 1 to 100, separated "
            "by commas"
        )
    return tuple(dict.fromkeys(map(int, sizes)))


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _load(path: str):  # type: ignore[no-untyped-def]
    """Return the model of PATH or PATH@CHECKPOINT."""
    from vaswani_jax import api

    return api.load(path)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("models",), repeats=True),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
