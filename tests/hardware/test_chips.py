"""The table of data sheets: its figures agree with each other."""

import pytest

from vaswani_jax.hardware import chips

# Multiply-and-add units: tensor cores x MXUs x rows x columns, from Google's pages.
MULTIPLIERS = {"v4": 2 * 4 * 128**2, "v5e": 4 * 128**2, "v5p": 2 * 4 * 128**2}


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_the_clock_is_the_speed_divided_by_the_multipliers(name: str) -> None:
    chip = chips.CHIPS[name]
    assert chip.clock_hz == pytest.approx(
        chip.flops_per_second / (2 * MULTIPLIERS[name]), rel=0.005
    )


def test_the_clock_of_v6e_is_half_of_what_its_page_implies() -> None:
    chip = chips.CHIPS["v6e"]
    multipliers = 2 * 256**2  # two MXUs
    implied = chip.flops_per_second / (2 * multipliers)
    assert 2 * chip.clock_hz == pytest.approx(implied, rel=0.005)
    assert "twice that" in chip.clock_origin
    assert chip.clock_hz == chips.CHIPS["v5p"].clock_hz
    assert chip.memory_bytes_per_second == 1638e9


def test_links_are_a_tenth_slower_than_the_pages_imply() -> None:
    # GB/s of all links of a chip in both directions, and how many links it has.
    pages = {"v5e": (400, 4), "v5p": (1200, 6), "v6e": (800, 4)}
    for name, (gigabytes, links) in pages.items():
        chip = chips.CHIPS[name]
        implied = gigabytes * 1e9 / links / 2
        assert chip.link_bytes_per_second == pytest.approx(0.9 * implied)
        assert chip.link_origin == chips.SCALING_BOOK


def test_each_device_has_one_entry() -> None:
    kinds = [chip.device_kind for chip in chips.TABLE] + list(chips.OTHER_SPEEDS)
    assert len(set(kinds)) == len(kinds)
    assert set(chips.CHIPS) == {"v4", "v5e", "v5p", "v6e", "tpu7x", "h100", "a100"}


def test_the_two_devices_of_a_chip_share_its_sheet() -> None:
    chip = chips.CHIPS["tpu7x"]
    assert chip.devices_per_chip == 2
    assert chip.flops_per_second * 2 == 2307e12
    assert chip.memory_bytes * 2 == 192e9
    assert chip.memory_bytes_per_second * 2 == 7.37e12


def test_a_device_has_the_speed_of_its_data_sheet() -> None:
    assert chips.flops_per_second("NVIDIA A100-PCIE-40GB") == 312e12
    assert chips.flops_per_second("TPU v6 lite") == 918e12
    assert chips.flops_per_second("cpu") is None
