"""Section 5.2's hardware: what a device could do at most, and the memory it took."""

import resource
import time

import jax
import jax.numpy as jnp

# Dense bfloat16 matrix products, FLOP/s of one chip, from the makers' data sheets.
DATA_SHEET = {
    "NVIDIA A100": 312e12,
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "NVIDIA L4": 121e12,
    "TPU v3": 123e12,
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5": 459e12,
    "TPU v6 lite": 918e12,
}


def data_sheet_peak(dtype: str) -> float | None:
    """FLOP/s of one known accelerator in bfloat16; None for all others."""
    kind = jax.devices()[0].device_kind
    names = [name for name in DATA_SHEET if kind.startswith(name)]
    if dtype != "bfloat16" or not names:
        return None
    return DATA_SHEET[max(names, key=len)]


def measured_peak(dtype: str) -> float:
    """FLOP/s of one large matrix product on one device, the best of several."""
    size = 2048 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((size, size), jnp.dtype(dtype))
    product = jax.jit(jnp.matmul)
    product(matrix, matrix).block_until_ready()
    seconds = []
    for _ in range(10):
        begun = time.perf_counter()
        product(matrix, matrix).block_until_ready()
        seconds.append(time.perf_counter() - begun)
    return 2.0 * size**3 / min(seconds)


def peak_memory_bytes() -> int:
    """The most memory that was in use: of a device, or of the process on a CPU."""
    found = [device.memory_stats() or {} for device in jax.local_devices()]
    peaks = [stats.get("peak_bytes_in_use", 0) for stats in found]
    if any(peaks):
        return max(peaks)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
