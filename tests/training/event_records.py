"""Read TensorBoard's event files by tensorboardX's messages and checksums."""

import io
import pathlib
import struct
from collections.abc import Iterator

from tensorboardX import record_writer
from tensorboardX.proto import event_pb2


def read_events(path: pathlib.Path) -> Iterator[event_pb2.Event]:
    """Read as TensorBoard does: length, its checksum, event, its checksum."""

    def checked(size: int) -> bytes:
        data = stream.read(size)
        (checksum,) = struct.unpack("I", stream.read(4))
        assert checksum == record_writer.masked_crc32c(data)
        return data

    stream = io.BytesIO(path.read_bytes())
    while stream.tell() < path.stat().st_size:
        (length,) = struct.unpack("Q", checked(8))
        yield event_pb2.Event.FromString(checked(length))
