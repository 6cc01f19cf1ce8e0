"""The peak of a device is from its data sheet, or measured."""

import pytest

from vaswani_jax.benchmarks import devices
from vaswani_jax.core import parallel


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("NVIDIA H200", 989e12), ("NVIDIA L4", 121e12), ("TPU v5 lite", 197e12)],
)
def test_a_known_accelerator_has_the_peak_of_its_data_sheet(
    kind, expected, monkeypatch
):
    monkeypatch.setattr(parallel, "device_kind", lambda: kind)
    flops, origin = devices.peak("bfloat16")
    assert flops == expected * parallel.num_devices()
    assert origin == "from the data sheet"


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("NVIDIA L40S", "bfloat16"), ("NVIDIA H200", "float32"), ("cpu", "bfloat16")],
)
def test_all_others_are_measured(kind, dtype, monkeypatch):
    monkeypatch.setattr(parallel, "device_kind", lambda: kind)
    monkeypatch.setattr(devices, "measured_peak", lambda dtype, size: float(size))
    # The eight virtual devices share the cores of one machine.
    assert devices.peak(dtype) == (2048.0, "measured on a 2048 x 2048 product")


def test_accelerators_are_measured_on_a_larger_product_each(monkeypatch):
    monkeypatch.setattr(parallel, "device_kind", lambda: "NVIDIA H200")
    monkeypatch.setattr(parallel, "on_cpu", lambda: False)
    monkeypatch.setattr(parallel, "num_devices", lambda: 3)
    monkeypatch.setattr(devices, "measured_peak", lambda dtype, size: float(size))
    peak = devices.peak("float32")
    assert peak == (3 * 8192.0, "measured on a 8192 x 8192 product")


def test_a_measured_peak_is_positive():
    assert devices.measured_peak("float32", size=64) > 0
