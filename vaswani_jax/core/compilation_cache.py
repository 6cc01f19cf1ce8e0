"""Keep compiled programs on disk, so that the next start need not compile them."""

import os
import pathlib
from typing import Any, cast

import jax


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
    return f"jax {jax.__version__}, {version}, {os.environ.get('XLA_FLAGS', '')}"
