"""Damage a checkpoint as a disk, a crash or a hand does."""

import pathlib
import shutil


def data_files(directory: pathlib.Path) -> list[pathlib.Path]:
    """All that hold values; which of them are read is Orbax's affair."""
    return [path for path in directory.rglob("d/*") if path.is_file()]


def truncate(directory: pathlib.Path) -> None:
    for file in data_files(directory):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(directory: pathlib.Path) -> None:
    for file in data_files(directory):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(bytes(data))


def lose_a_part(directory: pathlib.Path) -> None:
    shutil.rmtree(directory / "optimizer")


def empty(directory: pathlib.Path) -> None:
    shutil.rmtree(directory)
    directory.mkdir()
