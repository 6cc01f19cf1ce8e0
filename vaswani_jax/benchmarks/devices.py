"""The peak speed of the devices, and the memory that they have used."""

import functools
import sys
import time

import jax
import jax.numpy as jnp
import psutil

from vaswani_jax.core import parallel
from vaswani_jax.hardware import chips
from vaswani_jax.model import products


def peak(dtype: str) -> tuple[float, str]:
    """Return the most FLOP/s of all devices together, and the figure's origin.

    It is from the data sheet of a known accelerator in bfloat16, otherwise measured.
    """
    printed = chips.flops_per_second(parallel.device_kind())
    if dtype == "bfloat16" and printed is not None:
        return printed * parallel.num_devices(), "from the data sheet"
    # Virtual devices share the same cores.
    size, devices = (2048, 1) if parallel.on_cpu() else (8192, parallel.num_devices())
    origin = f"measured on a {size} x {size} product"
    return measured_peak(dtype, size=size) * devices, origin


def measured_peak(dtype: str, *, size: int) -> float:
    """Return the FLOP/s of a large matrix product on one device, the best of ten."""
    # A GPU's clock is higher on numbers that are all alike.
    matrix = jax.random.normal(jax.random.key(0), (size, size), jnp.dtype(dtype))
    # As in the model: no TF32, and no single pass of bfloat16.
    precision = products.precision_of(matrix)
    product = jax.jit(functools.partial(jnp.matmul, precision=precision))
    product(matrix, matrix).block_until_ready()
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        product(matrix, matrix).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2.0 * size**3 / min(seconds)


def peak_memory_bytes() -> int:
    """Return the most memory in use so far: of a device, or of the process on a CPU."""
    peaks = [
        (device.memory_stats() or {}).get("peak_bytes_in_use", 0)
        for device in jax.local_devices()
    ]
    if any(peaks):
        return max(peaks)
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().peak_wset)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
