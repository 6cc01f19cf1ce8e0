"""Write scalars in the format of TensorBoard's event files.

A file is a sequence of records (tensorflow/core/lib/io/record_writer.h), each the
bytes of one `Event` (tensorflow/core/util/event.proto). Libraries that write such files
import PyTorch or TensorFlow if one is installed, which takes seconds.
"""

import functools
import math
import pathlib
import struct
import time
from collections.abc import Mapping
from typing import IO

# Tags of protocol buffers: a field's number and how its value is stored.
WALL_TIME, STEP, FILE_VERSION, SUMMARY, SESSION_LOG = 0x09, 0x10, 0x1A, 0x2A, 0x3A
SUMMARY_VALUE, VALUE_TAG, VALUE_SIMPLE = 0x0A, 0x0A, 0x15
SESSION_START = bytes((0x08, 1))
PREFIX = "events.out.tfevents."


class EventFile:
    """An event file that `create` has begun."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write one value of each name.

        Raises:
            OSError: The file cannot be written.
        """
        summary = b"".join(
            _bytes(
                SUMMARY_VALUE,
                _bytes(VALUE_TAG, name.encode())
                + bytes((VALUE_SIMPLE,))
                + _float32(value),
            )
            for name, value in values.items()
        )
        _write_event(self._file, step=step, field=_bytes(SUMMARY, summary))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def create(directory: pathlib.Path, *, first_step: int) -> EventFile:
    """Create an event file; TensorBoard shows earlier files up to its first step.

    Args:
        directory: Where it lies. TensorBoard reads files in the order of their names:
            a name has the time, or one more than the largest that is there.
        first_step: The first step that this file will have. TensorBoard ignores the
            events of earlier files from there on.

    Raises:
        OSError: The file cannot be written.
    """
    directory.mkdir(exist_ok=True)
    # The clock may have gone back.
    numbers = [number + 1 for number in _numbers(directory)]
    name = f"{PREFIX}{max([time.time_ns(), *numbers])}"
    file = open(directory / name, "wb")  # noqa: SIM115
    _write_event(file, step=0, field=_bytes(FILE_VERSION, b"brain.Event:2"))
    _write_event(file, step=first_step, field=_bytes(SESSION_LOG, SESSION_START))
    return EventFile(file)


def _numbers(directory: pathlib.Path) -> list[int]:
    """Return the numbers in the names of the event files of a directory."""
    texts = (path.name.removeprefix(PREFIX) for path in directory.glob(f"{PREFIX}*"))
    return [int(text) for text in texts if text.isdecimal()]


def _write_event(file: IO[bytes], *, step: int, field: bytes) -> None:
    wall_time = struct.pack("<Bd", WALL_TIME, time.time())
    event = wall_time + bytes((STEP,)) + _varint(step) + field
    length = struct.pack("<Q", len(event))
    file.write(length + _checksum(length) + event + _checksum(event))
    file.flush()


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # A finite number beyond those of 32 bits.
        return struct.pack("<f", math.copysign(math.inf, value))


def _bytes(tag: int, value: bytes) -> bytes:
    return bytes((tag,)) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    """Return a number of at least 0 in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))


def _checksum(data: bytes) -> bytes:
    """Return CRC-32C (Castagnoli) as records have it: rotated, with a constant."""
    table = _crc_table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    rotated = (crc >> 15 | crc << 17) + 0xA282EAD8
    return struct.pack("<I", rotated & 0xFFFFFFFF)


@functools.cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)
