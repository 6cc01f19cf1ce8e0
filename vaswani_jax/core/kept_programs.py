"""Keep traced programs on disk as StableHLO, so that the next start traces none.

A file holds what `jax.export` serializes, never pickle, and no parameters. Its name is
a digest of all that the program depends on. JAX's compilation cache has what XLA makes
of it.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import logging
import os
import pathlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import jax.export

from vaswani_jax.core import compilation_cache, errors

logger = logging.getLogger(__name__)
# Begins every file; a change of the file's format changes the number.
MAGIC = b"vaswani_jax program 1\n"
SUFFIX = ".stablehlo"
# Stands for a program that JAX cannot export: it is not tried again.
NOT_EXPORTABLE = b""
# The most bytes of all files together; those that were used last stay.
LIMIT_BYTES = 2**28
# Their code takes part in tracing.
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")
# Options of JAX that change no program: caches, how devices and processes are found,
# and logs. All others belong to the key.
IRRELEVANT_OPTIONS = (
    "jax_compilation_cache_",
    "jax_persistent_cache_",
    "jax_enable_compilation_cache",
    "jax_platforms",
    "jax_num_cpu_devices",
    "jax_cuda_visible_devices",
    "jax_cpu_enable_async_dispatch",
    "jax_enable_preemption_service",
    "jax_log_compiles",
    "jax_logging_level",
)
# After this time, a file that a killed program has not finished is deleted.
HOUR_SECONDS = 3600


@dataclasses.dataclass(frozen=True)
class Identity:
    """The identity of a function among all others, without its code.

    Attributes:
        name: Its name in logs and profiles.
        closure: All values that it reads beside its arguments: numbers, strings,
            dataclasses and containers of these.
        outputs: Returns the tree of its outputs, with anything as leaves, from its
            arguments. None if it returns dictionaries, lists and tuples alone.
    """

    name: str
    closure: Any
    outputs: Callable[..., Any] | None = None


class NotExportableError(Exception):
    """JAX cannot write this program as StableHLO."""


def directory() -> pathlib.Path | None:
    """Return where programs are kept, or None if they are not."""
    home = compilation_cache.home()
    return home / "programs" if home else None


def shapes(arguments: Any, *, has_placement: bool = False) -> Any:
    """Return the shapes of a program's arguments, as a tree without values.

    Args:
        arguments: A tree of arrays.
        has_placement: Whether each shape has the placement of its array.
    """

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(
            leaf.shape,
            leaf.dtype,
            sharding=getattr(leaf, "sharding", None) if has_placement else None,
            weak_type=bool(getattr(leaf, "weak_type", False)),
        )

    return jax.tree.map(shape, arguments)


def load_or_export(
    identity: Identity,
    *,
    arguments: Any,
    devices: str,
    export: Callable[[], jax.export.Exported],
) -> jax.export.Exported:
    """Return a program from the disk, or trace it and keep it.

    A file that is damaged, or of another program, is made again.

    Args:
        identity: Of the function that is traced.
        arguments: The `shapes` of its arguments.
        devices: The devices that the program is for, in words.
        export: Traces the function.

    Raises:
        NotExportableError: JAX cannot keep it.
    """
    folder = directory()
    digest = key(identity, arguments=arguments, devices=devices)
    path = folder / f"{identity.name}-{digest[:40]}{SUFFIX}" if folder else None
    program = _read(path, digest) if path else None
    if program is None:
        try:
            program = bytes(export().serialize())
        except (ValueError, NotImplementedError) as error:
            reason = errors.first_line(error)
            logger.info("note: %s is traced at every start: %s", identity.name, reason)
            program = NOT_EXPORTABLE
        if path:
            _keep(path, digest, program)
    if program == NOT_EXPORTABLE:
        raise NotExportableError(identity.name)
    return _without_scipy(jax.export.deserialize(bytearray(program)))


def key(identity: Identity, *, arguments: Any, devices: str) -> str:
    """Return a digest of all that a program depends on.

    Args:
        identity: Of the function.
        arguments: The `shapes` of its arguments.
        devices: The devices, in words.

    Raises:
        TypeError: The identity's closure has a value that has no description.
    """
    leaves, structure = jax.tree.flatten(arguments)
    parts = {
        "source": _sources_at_start(),
        "function": (identity.name, describe(identity.closure)),
        "arguments": (str(structure), [_describe_shape(leaf) for leaf in leaves]),
        "devices": devices,
        "compiler": compilation_cache.compiler(),
        "packages": _versions(),
        "options": _options(),
    }
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()


def describe(value: Any) -> str:
    """Return a text that differs whenever values differ.

    Raises:
        TypeError: The value is, or contains, one whose text may be cut short or an
            address.

    >>> describe({"beam_size": 4, "models": ("big", None)})
    "dict[('beam_size', 4), ('models', tuple['big', None])]"
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    name = type(value).__qualname__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        parts = [f"{f.name}={describe(getattr(value, f.name))}" for f in fields]
    elif isinstance(value, Mapping):
        parts = [f"({describe(k)}, {describe(v)})" for k, v in value.items()]
    elif isinstance(value, tuple | list):
        parts = [describe(item) for item in value]
    else:
        raise TypeError(f"a program cannot be known by {value!r}, of {type(value)}")
    return f"{name}[{', '.join(parts)}]"


def _describe_shape(leaf: Any) -> tuple[Any, ...]:
    return tuple(leaf.shape), str(leaf.dtype), bool(getattr(leaf, "weak_type", False))


@functools.cache
def _sources_at_start() -> str:
    """Return the fingerprint of the package when this process first asked for it."""
    return compilation_cache.sources()


@functools.cache
def _versions() -> tuple[str, ...]:
    """Return the versions of Python and of the packages whose code is traced."""
    return (sys.version, *map(importlib.metadata.version, PACKAGES))


def _options() -> list[tuple[str, str]]:
    """Return JAX's options as they are in this context."""
    options = cast(Any, jax.config)
    return [
        (name, repr(getattr(options, name, default)))
        for name, default in sorted(options.values.items())
        if not name.startswith(IRRELEVANT_OPTIONS)
    ]


def _read(path: pathlib.Path, digest: str) -> bytes | None:
    """Return a file's program; None if it is missing, damaged or of another key."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head = len(MAGIC) + hashlib.sha256().digest_size
    program = content[head:]
    if content[:head] != MAGIC + _checksum(digest, program):
        logger.debug("%s is damaged: it is made again", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # It was used last.
    return program


def _checksum(digest: str, program: bytes) -> bytes:
    return hashlib.sha256(digest.encode() + program).digest()


def _keep(path: pathlib.Path, digest: str, program: bytes) -> None:
    """Write a program, and delete the least recently used ones."""
    if compilation_cache.sources() != _sources_at_start():
        return  # The source was edited since: this process may have read either text.
    # A program that cannot be written is traced again at the next start.
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        compilation_cache.write(path, MAGIC + _checksum(digest, program) + program)
        _evict(path.parent)


def _evict(folder: pathlib.Path) -> None:
    files = []
    for file in os.scandir(folder):
        with contextlib.suppress(FileNotFoundError):  # Another process deletes, too.
            status = file.stat()
            if file.name.endswith(SUFFIX):
                files.append((status.st_mtime_ns, status.st_size, file.path))
            elif time.time() - status.st_mtime > HOUR_SECONDS:
                os.unlink(file.path)
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > LIMIT_BYTES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _without_scipy(exported: jax.export.Exported) -> jax.export.Exported:
    """Return a program that JAX calls without importing SciPy, if it needs none.

    JAX imports it for LAPACK before it calls what was exported for a CPU: 0.25 s. The
    key has the platform, so that JAX need not check it.
    """
    if b"lapack" in exported.mlir_module_serialized:
        return exported
    is_checked = jax.export.DisabledSafetyCheck.platform()
    return dataclasses.replace(
        exported,
        platforms=("that of the key",),
        disabled_safety_checks=(*exported.disabled_safety_checks, is_checked),
    )
