"""Name devices that are not here, for which their compiler can compile."""

import dataclasses
import importlib.util
import math
import os
import re
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from vaswani_jax.core import errors, extras, tpu_flags
from vaswani_jax.core.suggestions import suggest
from vaswani_jax.hardware import chips

GPUS_PER_HOST = 8
CHIPS_PER_TPU_HOST = (2, 2, 1)
# The extra that has a platform's compiler, and a module of it.
EXTRAS = {"tpu": ("tpu", "libtpu"), "gpu": ("cuda", "jax_plugins.xla_cuda13")}
# libtpu looks for no TPU and waits for no other process that compiles.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "",
    "TPU_HOST_BOUNDS": "1,1,1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
# What XLA's backends/gpu/target_config/specs say of the two GPUs, and what is
# installed here in place of a driver.
GPU_FACTS = {
    "h100": {
        "core_count": 132,
        "fpus_per_core": 128,
        "shared_memory_per_core": 233472,
        "shared_memory_per_block_optin": 232448,
        "memory_bandwidth": 3352320000000,
        "l2_cache_size": 52428800,
        "device_memory_size": 84942979072,
        "major": 9,
        "feature": "feature_extension: ACCELERATED_FEATURES",
        "links": 18,
    },
    "a100": {
        "core_count": 108,
        "fpus_per_core": 64,
        "shared_memory_per_core": 167936,
        "shared_memory_per_block_optin": 166912,
        "memory_bandwidth": 2039040000000,
        "l2_cache_size": 41943040,
        "device_memory_size": 85100068864,
        "major": 8,
        "feature": "",
        "links": 12,
    },
}


@dataclasses.dataclass(frozen=True)
class Hardware:
    """Chips of one kind that compute together.

    Attributes:
        chip: Their kind.
        extents: The grid of TPUs, as (2, 4); the hosts and GPUs of each for GPUs.
        num_slices: Grids of TPUs that a slower network joins.
    """

    chip: chips.Chip
    extents: tuple[int, ...]
    num_slices: int = 1

    @property
    def name(self) -> str:
        """The text that `parse` reads: v5e:2x4, v5e:512, h100:8."""
        is_grid = self.chip.dimensions and self.num_slices == 1
        size = "x".join(map(str, self.extents)) if is_grid else self.num_chips
        return f"{self.chip.name}:{size}"

    @property
    def num_chips(self) -> int:
        """The number of chips."""
        return math.prod(self.extents) * self.num_slices

    @property
    def num_devices(self) -> int:
        """The number of JAX devices."""
        return self.num_chips * self.chip.devices_per_chip

    @property
    def num_hosts(self) -> int:
        """The number of their hosts, usually."""
        per_host = 8 if self.chip.dimensions in (0, 2) else 4
        return -(-self.num_chips // per_host)


def parse(text: str) -> Hardware:
    """Return the hardware that a user names: a chip, a colon, a number or a shape.

    >>> parse("v5e:8").name, parse("v5p:64").extents, parse("h100:16").extents
    ('v5e:2x4', (4, 4, 4), (2, 8))

    Raises:
        ValueError: The chip is unknown, or there is no such shape.
    """
    name, _, size = text.strip().lower().partition(":")
    chip = chips.CHIPS.get(name)
    if chip is None:
        raise ValueError(
            f"--hardware={text}: unknown chip {name!r}{suggest(name, chips.CHIPS)} "
            f"(known: {', '.join(chips.CHIPS)})"
        )
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", size):
        raise ValueError(
            f"--hardware={text} must be CHIP:NUMBER or CHIP:SHAPE, such as {name}:8"
        )
    extents = tuple(map(int, size.split("x")))
    if not chip.dimensions:
        return Hardware(chip, _hosts(text, extents))
    num_slices = 1
    if len(extents) == 1:
        [number] = extents
        if number % chip.largest_slice == 0 and _is_power_of_two(chip.largest_slice):
            num_slices = number // chip.largest_slice
        extents = _usual_shape(text, number // num_slices, dimensions=chip.dimensions)
    if len(extents) != chip.dimensions:
        raise ValueError(
            f"--hardware={text}: a slice of {name} has {chip.dimensions} dimensions, "
            f"as {name}:{'x'.join(['2'] * chip.dimensions)}"
        )
    if math.prod(extents) > chip.largest_slice:
        hint = ""
        if _is_power_of_two(chip.largest_slice):
            hint = f"; {name}:{2 * chip.largest_slice} is two slices"
        raise ValueError(
            f"--hardware={text}: a slice of {name} has at most {chip.largest_slice} "
            f"chips{hint}"
        )
    _chips_per_host(text, extents)
    return Hardware(chip, extents, num_slices)


def _hosts(text: str, extents: tuple[int, ...]) -> tuple[int, ...]:
    [number, *further] = extents
    if further or (number > GPUS_PER_HOST and number % GPUS_PER_HOST):
        raise ValueError(
            f"--hardware={text}: GPUs are a number: 1 to {GPUS_PER_HOST}, or a "
            f"multiple of {GPUS_PER_HOST}, those of a host"
        )
    per_host = min(number, GPUS_PER_HOST)
    return number // per_host, per_host


def _is_power_of_two(number: int) -> bool:
    return number.bit_count() == 1


def _usual_shape(text: str, number: int, *, dimensions: int) -> tuple[int, ...]:
    exponent = number.bit_length() - 1
    if not _is_power_of_two(number):
        raise ValueError(
            f"--hardware={text}: slices have 1, 2, 4, 8, 16, ... chips; name the "
            f"shape of another, such as 2x{'x'.join(['6'] * (dimensions - 1))}"
        )
    extents = [1 << (exponent + axis) // dimensions for axis in range(dimensions)]
    if number == 4:  # A host has 2x2x1.
        extents.reverse()
    return tuple(extents)


def _chips_per_host(text: str, extents: Sequence[int]) -> tuple[int, int, int]:
    """Return the grid of each host's chips.

    Raises:
        ValueError: They do not make the whole grid.
    """
    x, y, z = (*extents, 1)[:3]
    if x % 2 == 0 and y % 2 == 0:
        return CHIPS_PER_TPU_HOST
    if x * y * z <= 4:
        return x, y, z
    raise ValueError(
        f"--hardware={text}: hosts have 2x2 chips, so the first two numbers of a "
        "larger shape must be even"
    )


def require(hardware: Hardware) -> None:
    """Refuse hardware whose compiler is not installed.

    Raises:
        ImportError: Names the extra that installs it.
    """
    extra, module = EXTRAS[hardware.chip.platform]
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) and importlib.util.find_spec(module):
        return
    raise ImportError(
        f"--hardware={hardware.name} needs the compiler of the extra {extra}: "
        f"{extras.how_to_install(extra)}"
    )


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process that compiles for absent devices.

    Args:
        variables: The environment of this process.
    """
    result = {**variables, **ENVIRONMENT}
    tpu_flags.set_defaults(result)
    # Flags of a CPU's compiler are unknown to a TPU's, which ends at spaces alone.
    result.pop("XLA_FLAGS", None)
    return result


def devices(hardware: Hardware) -> list[Any]:
    """Return devices to compile for; nothing can be computed on them.

    Raises:
        ImportError: The compiler is not installed.
        ValueError: The compiler knows no such devices, or this process has not the
            variables of `environment`.
    """
    from jax.experimental import topologies

    require(hardware)
    missing = [name for name in ENVIRONMENT if name not in os.environ]
    if missing:
        raise ValueError(f"set {', '.join(missing)} before Python starts")
    try:
        if hardware.chip.platform == "gpu":
            num_hosts, per_host = hardware.extents
            description = topologies.get_topology_desc(
                platform="cuda",
                target_config=gpu_description(hardware.chip),
                topology=f"1x{num_hosts}x{per_host}",
            )
        else:
            options: dict[str, Any] = {
                "chips_per_host_bounds": _chips_per_host(
                    hardware.name, hardware.extents
                )
            }
            if hardware.chip.name == "v4":
                options["chip_config_name"] = "megacore"  # One device a chip.
            if hardware.num_slices > 1:
                options["num_slices"] = hardware.num_slices
            shape = "x".join(map(str, hardware.extents))
            description = topologies.get_topology_desc(
                f"{hardware.chip.name}:{shape}", platform="tpu", **options
            )
    except RuntimeError as error:
        reason = errors.first_line(error)
        raise ValueError(f"--hardware={hardware.name}: {reason}") from None
    return list(description.devices)


def gpu_description(chip: chips.Chip) -> str:
    """Return XLA's description of a GPU (GpuTargetConfigProto, as text)."""
    facts = GPU_FACTS[chip.name]
    cudnn = metadata.version("nvidia-cudnn-cu13").split(".")[:3]
    dnn = " ".join(map("{}: {}".format, ("major", "minor", "patch"), cudnn))
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {facts["shared_memory_per_core"]}
  shared_memory_per_block_optin: {facts["shared_memory_per_block_optin"]}
  threads_per_core_limit: 2048
  core_count: {facts["core_count"]}
  fpus_per_core: {facts["fpus_per_core"]}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  memory_bandwidth: {facts["memory_bandwidth"]}
  l2_cache_size: {facts["l2_cache_size"]}
  clock_rate_ghz: {(chip.clock_hz or 0) / 1e9}
  device_memory_size: {facts["device_memory_size"]}
  cuda_compute_capability {{ major: {facts["major"]} {facts["feature"]} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  driver_version: "13.0.0"
  runtime_version: "13.0.0"
  compile_time_toolkit_version: "13.0.0"
  dnn_version: "{".".join(cudnn)}"
  device_interconnect_info {{ active_links: {facts["links"]} }}
  name: "{chip.device_kind}"
}}
platform_name: "CUDA"
dnn_version_info {{ {dnn} }}
runtime_version {{ major: 13 minor: 0 patch: 0 }}
device_description_str: "{chip.device_kind}"
"""
