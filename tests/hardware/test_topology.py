"""Names of hardware, and how mistakes in them are refused."""

import importlib.util

import pytest

from vaswani_jax.hardware import topology


@pytest.mark.parametrize(
    ("text", "name", "num_devices", "num_hosts"),
    [
        ("v5e:2x4", "v5e:2x4", 8, 1),
        ("v5e:8", "v5e:2x4", 8, 1),
        ("v5e:1", "v5e:1x1", 1, 1),
        ("v6e:64", "v6e:8x8", 64, 8),
        ("v5e:256", "v5e:16x16", 256, 32),
        ("v5e:512", "v5e:512", 512, 64),
        ("v5p:4", "v5p:2x2x1", 4, 1),
        ("v5p:8", "v5p:2x2x2", 8, 2),
        ("v4:128", "v4:4x4x8", 128, 32),
        (" V5P:8x8x8", "v5p:8x8x8", 512, 128),
        ("tpu7x:8", "tpu7x:2x2x2", 16, 2),
        ("h100:8", "h100:8", 8, 1),
        ("a100:3", "a100:3", 3, 1),
        ("h100:64", "h100:64", 64, 8),
    ],
)
def test_a_number_has_its_usual_shape(
    text: str, name: str, num_devices: int, num_hosts: int
) -> None:
    hardware = topology.parse(text)
    assert hardware.name == name
    assert hardware.num_devices == num_devices
    assert hardware.num_hosts == num_hosts
    assert topology.parse(name) == hardware


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "v5:8",
            r"unknown chip 'v5'; did you mean .*known: v4, v5e, v5p, v6e, tpu7x, ",
        ),
        ("tpu", r"known: v4, .*, h100, a100\)"),
        ("v5e", "must be CHIP:NUMBER or CHIP:SHAPE, such as v5e:8"),
        ("v5e:0", "must be CHIP:NUMBER"),
        ("v5e:2x-4", "must be CHIP:NUMBER"),
        ("v5e:6", "slices have 1, 2, 4, 8, 16"),
        ("v5e:2x2x2", "a slice of v5e has 2 dimensions, as v5e:2x2"),
        ("v5e:16x32", "at most 256 chips; v5e:512 is two slices"),
        ("v5p:16x32x32", "at most 8960 chips$"),
        ("v5p:16384", "at most 8960 chips$"),
        ("v5e:300", "slices have 1, 2, 4, 8, 16"),
        ("v5p:2x4", "a slice of v5p has 3 dimensions, as v5p:2x2x2"),
        ("v5e:3x4", "must be even"),
        ("h100:12", "1 to 8, or a multiple of 8"),
        ("h100:2x4", "GPUs are a number"),
    ],
)
def test_what_does_not_exist_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topology.parse(text)


@pytest.mark.parametrize(("text", "extra"), [("v5e:8", "tpu"), ("h100:8", "cuda")])
def test_a_missing_compiler_names_its_extra(
    text: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=rf"pip install 'vaswani-jax\[{extra}\]'"):
        topology.require(topology.parse(text))


def test_a_compiler_starts_without_a_cpus_flags() -> None:
    variables = {
        "XLA_FLAGS": "--xla_cpu_something=1",
        "HOME": "/home",
        "LIBTPU_INIT_ARGS": "--mine",
    }
    environment = topology.environment(variables)
    assert "XLA_FLAGS" not in environment
    assert environment["HOME"] == "/home"
    assert environment["JAX_PLATFORMS"] == "cpu"
    assert variables["XLA_FLAGS"]
    assert environment["LIBTPU_INIT_ARGS"] == "--mine"


def test_devices_need_the_variables_of_their_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY", raising=False)
    with pytest.raises(ValueError, match="TPU_SKIP_MDS_QUERY"):
        topology.devices(topology.parse("v5e:8"))


def test_a_gpu_is_described_with_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topology.metadata, "version", lambda name: "9.7.5.3")
    text = topology.gpu_description(topology.parse("h100:8").chip)
    assert 'dnn_version: "9.7.5"' in text
    assert "dnn_version_info { major: 9 minor: 7 patch: 5 }" in text
    assert 'name: "NVIDIA H100 80GB HBM3"' in text
    assert text.count("{") == text.count("}")
