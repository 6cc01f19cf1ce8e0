"""The most memory that a process held, without the kernel's cache of files."""

import pathlib
import threading
import time


class Watch:
    """Reads this process's own memory every 10 ms; `peak_bytes` is the most so far."""

    def since_last(self) -> int:
        """The most since this was asked before."""
        peak, self._since = self._since, 0
        return peak

    def __init__(self) -> None:
        self.peak_bytes = self._since = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            status = pathlib.Path("/proc/self/status").read_text()
            held = int(status.split("RssAnon:")[1].split()[0]) * 1024
            self.peak_bytes = max(self.peak_bytes, held)
            self._since = max(self._since, held)
            time.sleep(0.01)
