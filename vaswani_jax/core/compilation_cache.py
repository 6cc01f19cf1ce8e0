"""Keep compiled programs in a directory of the user, for a quicker next start."""

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import stat
import tempfile
from collections.abc import Callable
from typing import Any, cast

import filelock
import jax

from vaswani_jax.core import tpu_flags

logger = logging.getLogger(__name__)
# Names another directory than vaswani_jax in $XDG_CACHE_HOME, else in ~/.cache.
VARIABLE = "VASWANI_JAX_CACHE"
# The variables with flags of the compilers.
FLAGS = ("XLA_FLAGS", tpu_flags.VARIABLE)
# The most bytes of compiled programs; those that were used last stay.
LIMIT_BYTES = 2**30
# JAX reads the times of all entries whenever it adds one.
MAX_ENTRIES = 2000
UNFINISHED = ".unfinished"
_home: pathlib.Path | None = None
# The directory of compiled programs that `enable` has set; another is the caller's.
_compiled: str | None = None
_refused: set[pathlib.Path] = set()


def enable() -> None:
    """Keep programs in the user's directory, and look for them there.

    It may be emptied at any time: an entry belongs to one program, version of the
    compiler and kind of device. Nothing is kept, with one warning, where the directory
    cannot be written or other users can write it. JAX's own JAX_COMPILATION_CACHE_DIR,
    or its option in Python, names a directory without a limit, and takes precedence for
    compiled programs.
    """
    global _home, _compiled
    _home = _open_home()
    shared = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    chosen = cast(Any, jax.config).jax_compilation_cache_dir
    if shared:
        _compiled = shared
        jax.config.update("jax_compilation_cache_dir", shared)
    elif _home and chosen in (None, _compiled):
        compiled = _home / "compiled"
        _tidy(compiled)
        _compiled = str(compiled)
        jax.config.update("jax_compilation_cache_dir", _compiled)
        if cast(Any, jax.config).jax_compilation_cache_max_size == -1:
            jax.config.update("jax_compilation_cache_max_size", LIMIT_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def home() -> pathlib.Path | None:
    """Return the user's directory that `enable` has opened; None keeps nothing."""
    return _home if cast(Any, jax.config).jax_enable_compilation_cache else None


def directory() -> pathlib.Path | None:
    """Return the directory of compiled programs on a disk; None if there is none.

    JAX keeps them at a URL, too, as gs://bucket/cache.
    """
    path = cast(Any, jax.config).jax_compilation_cache_dir
    return pathlib.Path(path) if path and "://" not in path else None


def _open_home() -> pathlib.Path | None:
    """Return the user's directory, made if it is missing, or None if it is not safe."""
    path = pathlib.Path("~/.cache/vaswani_jax")
    try:
        path = _home_path()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        # Windows has no numbers of users.
        if hasattr(os, "getuid") and status.st_uid != os.getuid():
            reason = "it belongs to another user"
        elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            reason = "other users can write it"
        elif not os.access(path, os.W_OK | os.X_OK):
            reason = "it cannot be written"
        else:
            for name in ("compiled", "programs"):
                (path / name).mkdir(mode=0o700, exist_ok=True)
            return path
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home.
        reason = str(error)
    if path not in _refused:
        _refused.add(path)
        logger.warning(
            f"no compiled programs are kept in {path}: {reason}; {VARIABLE} names "
            "another directory"
        )
    return None


def _home_path() -> pathlib.Path:
    """Return the directory that the environment names."""
    if path := os.environ.get(VARIABLE):
        return pathlib.Path(path).expanduser().absolute()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return cache.absolute() / "vaswani_jax"


def _tidy(compiled: pathlib.Path) -> None:
    """Delete what a killed program left, and the least recently used entries.

    JAX writes an entry, then the time of its use: an entry without it may be cut off.
    """
    with contextlib.suppress(OSError, filelock.Timeout):
        names = os.listdir(compiled)
        entries = {name[:-6] for name in names if name.endswith("-cache")}
        times = {name[:-6] for name in names if name.endswith("-atime")}
        if entries == times and len(names) <= 2 * MAX_ENTRIES:
            return
        with filelock.FileLock(compiled / ".lockfile", timeout=1):
            for name in entries ^ times:
                _delete_entry(compiled, name)
            by_use = sorted(
                entries & times,
                key=lambda name: (compiled / f"{name}-atime").stat().st_mtime_ns,
            )
            for name in by_use[:-MAX_ENTRIES]:
                _delete_entry(compiled, name)
            records = sorted(
                compiled.glob("*.json"), key=lambda path: path.stat().st_mtime_ns
            )
            for path in records[:-MAX_ENTRIES]:
                path.unlink(missing_ok=True)


def _delete_entry(compiled: pathlib.Path, name: str) -> None:
    for suffix in ("cache", "atime"):
        (compiled / f"{name}-{suffix}").unlink(missing_ok=True)


def compiler() -> str:
    """Return the version of the compiler for these devices, and its flags."""
    version = jax.devices()[0].client.platform_version
    flags = [os.environ.get(name, "") for name in FLAGS]
    return ", ".join([f"jax {jax.__version__}", version, *flags])


def remember(
    name: str, key: str, measure: Callable[[], dict[str, Any]], *, keep: bool
) -> dict[str, Any]:
    """Return a measurement, which is kept beside the compiled programs.

    An entry belongs to one key and to the source of this package, whose code decides
    what programs need. A damaged or missing entry is measured again.

    Args:
        name: Begins the name of the entry's file.
        key: All that the measurement depends on beside the source.
        measure: Returns what JSON can hold.
        keep: Whether this process may write an entry.
    """
    file = entry(name, key)
    if file is None:
        return measure()
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass  # It is missing or cut off: it may be deleted at any time.
    value = measure()
    if keep:
        # What cannot be cached is measured again.
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, json.dumps(value).encode())
    return value


def write(path: pathlib.Path, content: bytes) -> None:
    """Write a file atomically, whatever other processes write or read there."""
    handle, unfinished = tempfile.mkstemp(UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def entry(name: str, key: str) -> pathlib.Path | None:
    """Return the file of what `remember` keeps, or None if nothing is kept."""
    path = directory()
    if path is None:
        return None
    digest = hashlib.sha256(repr((key, sources())).encode()).hexdigest()[:32]
    return path / f"{name}-{digest}.json"


def sources() -> str:
    """Return a fingerprint of this package, of the text of all modules as it is now.

    Reading all of it takes 5 milliseconds; sizes and times would miss an edit.
    """
    digest = hashlib.sha256()
    package = pathlib.Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(package)} {len(text)} ".encode())
        digest.update(text)
    return digest.hexdigest()
