"""Section 5.2: compiled programs: where they are kept, and what compiled them."""

import os
import pathlib
from typing import Any, cast

import jax


def keep(place: pathlib.Path) -> None:
    """Keep compiled programs in a directory and look there, for the next start.

    It may be deleted at any time. An entry belongs to one program, one version of
    the compiler and one kind of device. JAX's own JAX_COMPILATION_CACHE_DIR names one
    for all runs, and comes first.
    """
    shared = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    found = shared or str(place.absolute())
    jax.config.update("jax_compilation_cache_dir", found)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def directory() -> pathlib.Path | None:
    """Where compiled programs are kept; None if they are not."""
    found = cast(Any, jax.config).jax_compilation_cache_dir
    return pathlib.Path(found) if found else None


def compiler() -> str:
    """The version of what compiles for these devices, and its flags."""
    version = jax.devices()[0].client.platform_version
    return f"jax {jax.__version__}, {version}, {os.environ.get('XLA_FLAGS', '')}"
