"""Keep compiled programs on disk, so that the next start need not compile them."""

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any, cast

import jax

from vaswani_jax.core import tpu_flags

# The variables with flags of the compilers.
FLAGS = ("XLA_FLAGS", tpu_flags.VARIABLE)


def enable(path: pathlib.Path) -> None:
    """Keep compiled programs in a directory, and look for them there.

    The directory may be deleted at any time: an entry belongs to one program, version
    of the compiler and kind of device. JAX's own JAX_COMPILATION_CACHE_DIR, which names
    one directory for all runs, takes precedence.
    """
    shared = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    jax.config.update("jax_compilation_cache_dir", shared or str(path.absolute()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def directory() -> pathlib.Path | None:
    """Return the directory of compiled programs, or None if they are not kept."""
    path = cast(Any, jax.config).jax_compilation_cache_dir
    return pathlib.Path(path) if path else None


def compiler() -> str:
    """Return the version of the compiler for these devices, and its flags."""
    version = jax.devices()[0].client.platform_version
    flags = [os.environ.get(name, "") for name in FLAGS]
    return ", ".join([f"jax {jax.__version__}", version, *flags])


def remember(
    name: str, key: str, measure: Callable[[], dict[str, Any]], *, keep: bool
) -> dict[str, Any]:
    """Return what has been measured, kept beside the compiled programs.

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
    measured = measure()
    if keep:
        # What cannot be cached is measured again.
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(measured), encoding="utf-8")
    return measured


def entry(name: str, key: str) -> pathlib.Path | None:
    """Return the file of what `remember` keeps, or None if nothing is kept."""
    path = directory()
    if path is None:
        return None
    digest = hashlib.sha256(repr((key, _sources())).encode()).hexdigest()[:32]
    return path / f"{name}-{digest}.json"


def _sources() -> str:
    """Return a fingerprint of this package."""
    digest = hashlib.sha256()
    package = pathlib.Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
