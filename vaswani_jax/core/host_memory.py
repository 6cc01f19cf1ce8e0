"""How much memory this host can still give, a container's limit included."""

import contextlib
import os
import pathlib
import sys

CGROUP = pathlib.Path("/sys/fs/cgroup")  # version 2, as a container sees its own


def free_bytes() -> int:
    """Bytes of the host that are free, the cache of files among them."""
    pages = os.sysconf("SC_AVPHYS_PAGES")
    with contextlib.suppress(OSError), open("/proc/meminfo") as file:
        # The cache of files can be had, too.
        found = [line.split() for line in file if line.startswith("MemAvailable")]
        pages = int(found[0][1]) * 1024 // os.sysconf("SC_PAGE_SIZE")
    return min(pages * os.sysconf("SC_PAGE_SIZE"), _left_to_container(CGROUP))


def _left_to_container(directory: pathlib.Path) -> int:
    """Bytes that the limit of a container leaves, without its cache of files."""
    try:
        limit = int((directory / "memory.max").read_text())
        used = int((directory / "memory.current").read_text())
        stat = (directory / "memory.stat").read_text().split()
        cached = int(stat[stat.index("inactive_file") + 1])
    except (OSError, ValueError):  # There is none, or it says "max".
        return sys.maxsize
    return max(0, limit - used + cached)
