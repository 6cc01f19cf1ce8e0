"""Check the API keys of those who use a server."""

import hashlib
import hmac
import logging
import pathlib
import re
import stat

logger = logging.getLogger(__name__)
MIN_LENGTH = 16


class Keys:
    """The keys of a server; without any, everyone may use it."""

    def __init__(self, keys: list[str]) -> None:
        """Keep the digests of keys, not the keys."""
        self._digests = [_digest(key) for key in keys]

    @property
    def are_needed(self) -> bool:
        """Return whether a request needs a key."""
        return bool(self._digests)

    def accept(self, key: str | None) -> bool:
        """Return whether a key opens the server, in the same time for any key."""
        digest = _digest(key or "")
        is_known = False
        for known_digest in self._digests:
            is_known |= hmac.compare_digest(digest, known_digest)
        return is_known or not self._digests


def read_keys(path: pathlib.Path) -> Keys:
    """Return the keys of a file, one a line; lines that begin with # are comments.

    Warns of a file that others may read.

    Raises:
        OSError: The file cannot be read.
        ValueError: Others may write the file, it has no key, or a key is too short or
            has characters that no header may have.
    """
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(
            f"--api_keys={path} may be written by others: `chmod 600 {path}`"
        )
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        logger.warning(f"--api_keys={path} may be read by others: `chmod 600 {path}`")
    keys = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"--api_keys={path} is not in UTF-8: {error}") from None
    for number, line in enumerate(lines, start=1):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        if len(key) < MIN_LENGTH or not re.fullmatch(r"[!-~]+", key):
            raise ValueError(
                f"--api_keys={path}, line {number}: a key has at least {MIN_LENGTH} "
                "characters, which are visible ASCII"
            )
        keys.append(key)
    if not keys:
        raise ValueError(f"--api_keys={path} has no key: write one a line")
    return Keys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()
