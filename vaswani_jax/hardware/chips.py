"""Speed, memory and links of accelerators, as their makers print them."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
    """The data sheet of a chip, for one of its JAX devices.

    Attributes:
        name: What `vaswani check --hardware` calls it.
        device_kind: What JAX calls it.
        platform: "tpu" or "gpu".
        flops_per_second: Dense bfloat16 matrix products.
        memory_bytes: High-bandwidth memory.
        memory_bytes_per_second: Its speed.
        clock_hz: Cycles a second; None where nobody prints it.
        link_bytes_per_second: One link of a TPU in one direction; all of a GPU's.
        devices_per_chip: How many JAX devices a chip is.
        dimensions: Of the grid that a slice of TPUs makes; 0 for GPUs.
        largest_slice: Chips that the maker's links join.
        origin: Where the figures but the next two are printed.
        clock_origin: Where the clock is printed, or what it is inferred from.
        link_origin: Where the links' speed is printed, or what it is inferred from.
    """

    name: str
    device_kind: str
    platform: str
    flops_per_second: float
    memory_bytes: int
    memory_bytes_per_second: float
    clock_hz: float | None
    link_bytes_per_second: float
    devices_per_chip: int = 1
    dimensions: int
    largest_slice: int
    origin: str
    clock_origin: str
    link_origin: str


GOOGLE = "Google Cloud's page of this TPU"
MULTIPLIERS = "inferred: FLOP/s / (2 x multipliers) of Google Cloud's page"
# Google Cloud's pages print rounder speeds: 50e9 for v5e and 100e9 for v5p and v6e, as
# all links of a chip in both directions / ports / 2.
SCALING_BOOK = "JAX's scaling book: one link, one way"
TABLE = (
    Chip(
        name="v4",
        device_kind="TPU v4",
        platform="tpu",
        flops_per_second=275e12,
        memory_bytes=32 * 10**9,
        memory_bytes_per_second=1228e9,
        clock_hz=1.05e9,
        link_bytes_per_second=45e9,
        dimensions=3,
        largest_slice=4096,
        origin=GOOGLE,
        clock_origin=MULTIPLIERS,
        link_origin=SCALING_BOOK,
    ),
    Chip(
        name="v5e",
        device_kind="TPU v5 lite",
        platform="tpu",
        flops_per_second=197e12,
        memory_bytes=16 * 10**9,
        memory_bytes_per_second=819e9,
        clock_hz=1.5e9,
        link_bytes_per_second=45e9,
        dimensions=2,
        largest_slice=256,
        origin=GOOGLE,
        clock_origin=MULTIPLIERS,
        link_origin=SCALING_BOOK,
    ),
    Chip(
        name="v5p",
        device_kind="TPU v5",
        platform="tpu",
        flops_per_second=459e12,
        memory_bytes=95 * 10**9,
        memory_bytes_per_second=2765e9,
        clock_hz=1.75e9,
        link_bytes_per_second=90e9,
        dimensions=3,
        largest_slice=8960,
        origin=GOOGLE,
        clock_origin=MULTIPLIERS,
        link_origin=SCALING_BOOK,
    ),
    Chip(
        name="v6e",
        device_kind="TPU v6 lite",
        platform="tpu",
        flops_per_second=918e12,
        memory_bytes=32 * 10**9,
        memory_bytes_per_second=1638e9,
        clock_hz=1.75e9,
        link_bytes_per_second=90e9,
        dimensions=2,
        largest_slice=256,
        origin=GOOGLE,
        clock_origin=(
            "inferred: as v5p's; FLOP/s / (2 x multipliers) of Google Cloud's page is "
            "twice that"
        ),
        link_origin=SCALING_BOOK,
    ),
    Chip(
        name="tpu7x",
        device_kind="TPU7x",
        platform="tpu",
        flops_per_second=2307e12 / 2,
        memory_bytes=192 * 10**9 // 2,
        memory_bytes_per_second=7370e9 / 2,
        clock_hz=None,
        link_bytes_per_second=90e9,
        devices_per_chip=2,
        dimensions=3,
        largest_slice=9216,
        origin=GOOGLE,
        clock_origin="nobody prints it",
        link_origin=SCALING_BOOK,
    ),
    Chip(
        name="h100",
        device_kind="NVIDIA H100 80GB HBM3",
        platform="gpu",
        flops_per_second=989e12,
        memory_bytes=80 * 10**9,
        memory_bytes_per_second=3350e9,
        clock_hz=1.98e9,
        link_bytes_per_second=450e9,
        dimensions=0,
        largest_slice=8,
        origin="NVIDIA's data sheet of H100 SXM",
        clock_origin="XLA's specs of this GPU",
        link_origin="NVIDIA's data sheet: NVLink / 2",
    ),
    Chip(
        name="a100",
        device_kind="NVIDIA A100-SXM4-80GB",
        platform="gpu",
        flops_per_second=312e12,
        memory_bytes=80 * 10**9,
        memory_bytes_per_second=2039e9,
        clock_hz=1.41e9,
        link_bytes_per_second=300e9,
        dimensions=0,
        largest_slice=8,
        origin="NVIDIA's data sheet of A100 SXM, 80 GB",
        clock_origin="XLA's specs of this GPU",
        link_origin="NVIDIA's data sheet: NVLink / 2",
    ),
)
CHIPS = {chip.name: chip for chip in TABLE}
# Devices whose programs `check` does not compile, with their speed alone.
OTHER_SPEEDS = {
    "NVIDIA A100-SXM4-40GB": CHIPS["a100"].flops_per_second,
    "NVIDIA A100-PCIE-40GB": CHIPS["a100"].flops_per_second,
    "NVIDIA A100 80GB PCIe": CHIPS["a100"].flops_per_second,
    "NVIDIA H200": CHIPS["h100"].flops_per_second,
    "NVIDIA L4": 121e12,
    "TPU v3": 61.5e12,  # half a chip
}


def flops_per_second(device_kind: str) -> float | None:
    """Return a device's speed in dense bfloat16 products, or None if unknown.

    >>> flops_per_second("TPU v5 lite")
    197000000000000.0
    """
    speeds = {chip.device_kind: chip.flops_per_second for chip in TABLE}
    return (speeds | OTHER_SPEEDS).get(device_kind)
