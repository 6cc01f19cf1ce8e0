"""Section 5.2's runs where machines come and go: directories on object stores.

A run locks, renames and maps files, which no object store can. A directory that fsspec
names by a URL (gs://, s3://, ...) therefore has a mirror on this machine. `here` brings
the mirror up to date; `send` brings the store up to date. What one run sends, no other
overwrites: of two runs in one place the one that began last goes on.

Mirrors lie in the user's cache, or where VASWANI_JAX_MIRRORS says; one that has been
sent can be deleted.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import fsspec

# Only of this machine, not yet whole, or out of the directory.
PRIVATE = re.compile(
    r"(^|/)(\.[^/]*|lock|compiled)(/|$)|\.unfinished|checkpoint-tmp|^/|//"
)
# A directory whose files are all there has this one, which is sent last, goes first.
SEALS = {"files.json", "manifest.json"}
SEALED = re.compile(r"((?:checkpoints|best|averaged)/\d+|data)/")
# Every start of a run adds a line.
STARTS = "starts.jsonl"
VERSIONS = ("etag", "ETag", "generation", "md5Hash", "mtime", "LastModified", "created")


class RemoteError(OSError):
    """A store cannot be read or written."""


class SupersededError(RemoteError):
    """Another run has begun in the same place since."""


def is_remote(name: str) -> bool:
    """Whether a name is a URL of a store, not a path on this machine."""
    return "://" in name


def here(
    name: str,
    *,
    skip: Collection[str] = (),
    only: Collection[str] = (),
    mark: str = "",
) -> pathlib.Path:
    """A directory as this machine has it: its own, or the mirror, brought up to date.

    Args:
        name: A path, or a URL that fsspec understands.
        skip: Directories right in it that are not asked for.
        only: The only files that are asked for, if any are named.
        mark: A file without which the store counts as empty, if one is named.

    Raises:
        ValueError: fsspec does not know the URL, or needs a package for it.
        RemoteError: The store cannot be read, or has lost what the mirror has.
    """
    if not is_remote(name):
        return pathlib.Path(name)
    url = name.rstrip("/")
    mirror = _Mirror(url, _place(url))
    with mirror.alone():
        mirror.fetch(skip, only, mark)
    return mirror.path


def refresh(path: pathlib.Path) -> None:
    """Bring the mirror that a path is up to date; for another path, nothing.

    Raises:
        RemoteError: See `here`.
    """
    if url := _url_of(path):
        mirror = _Mirror(url, path)
        with mirror.alone():
            mirror.fetch((), (), "")


def send(path: pathlib.Path, *, within: str = "") -> None:
    """Bring the store up to date with the mirror that a path is; or do nothing.

    Args:
        path: A directory, of a mirror or not.
        within: The only directory in it to send; all of it is the run's own to send.

    Raises:
        RemoteError: It cannot be written.
        SupersededError: Another run has begun there since the mirror was fetched.
    """
    if url := _url_of(path):
        mirror = _Mirror(url, path)
        with mirror.alone():
            mirror.send(within and f"{within}/")


def _place(url: str) -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    mirrors = os.environ.get("VASWANI_JAX_MIRRORS") or f"{cache}/vaswani_jax"
    readable = re.sub(r"[^A-Za-z0-9]+", "_", url)[-60:].strip("_")
    name = f"{readable}_{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    return pathlib.Path(mirrors).expanduser().absolute() / name


def _url_of(path: pathlib.Path) -> str | None:
    record = _record_of(path)
    return str(json.loads(record.read_text())["url"]) if record.exists() else None


def _record_of(mirror: pathlib.Path) -> pathlib.Path:
    return mirror.with_name(f"{mirror.name}.mirror.json")


class _Mirror:
    """A directory here and its store; the record tells what both had when equal."""

    def __init__(self, url: str, path: pathlib.Path) -> None:
        self._url, self.path = url, path
        try:
            self._store, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ValueError(f"{url}: {error}") from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One process of this machine at a time; what a store raises is told."""
        self.path.mkdir(parents=True, exist_ok=True)
        record = _record_of(self.path)
        with open(record.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._known: dict[str, dict[str, Any]] = {}
            if record.exists():
                self._known = json.loads(record.read_text())["files"]
            try:
                yield
            except RemoteError:
                raise
            except Exception as error:  # Each kind of store raises its own.
                reason = " ".join(str(error).split())[:300] or repr(error)
                raise RemoteError(f"{self._url}: {reason}") from error
            unfinished = record.with_suffix(".unfinished")
            known = {"url": self._url, "files": self._known}
            unfinished.write_text(json.dumps(known, indent=0))
            unfinished.replace(record)

    def fetch(self, skip: Collection[str], only: Collection[str], mark: str) -> None:
        """Bring here what is new there."""
        there = self._there()
        if mark and mark not in there:
            there = {}
        if self._known and not there:
            raise RemoteError(
                f"{self._url} is empty, but its mirror {self.path} is not: remove the "
                "mirror to begin anew, or copy it back"
            )
        ahead = self._is_ahead(there)
        present = self._present()
        wanted = []
        for name, version in there.items():
            if name.partition("/")[0] in skip or (only and name not in only):
                continue
            known = self._known.get(name, {"there": None, "here": None})
            untouched = present.get(name) == known["here"]
            news = known["there"] != version
            if (news and untouched) if ahead else (news or not untouched):
                wanted.append(name)
        if not (ahead or only):
            for name in present.keys() - there.keys():
                (self.path / name).unlink()
                self._known.pop(name, None)
        for name in wanted:
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"{self.path / name}.unfinished" for name in wanted]
        if wanted:
            self._store.get([f"{self._root}/{name}" for name in wanted], parts)
        for name, part in zip(wanted, parts, strict=True):
            os.replace(part, self.path / name)
            self._known[name] = {
                "there": there[name],
                "here": _version_here(self.path / name),
            }

    def send(self, prefix: str) -> None:
        """Bring there what is new here, seals last; remove what is gone here."""
        there = self._there()
        if not (prefix or self._is_ahead(there)):
            raise SupersededError(
                f"another run has begun in {self._url} since; this one ends, its files "
                f"are in {self.path}"
            )
        present = self._present()
        changed = [
            name
            for name, version in present.items()
            if name.startswith(prefix)
            and (self._known.get(name, {}).get("here") != version or name not in there)
        ]
        self._put([name for name in changed if not _is_seal(name)])
        self._put([name for name in changed if _is_seal(name)])
        gone = [
            name
            for name in self._known
            if name.startswith(prefix) and name not in present
        ]
        for name in sorted(gone, key=_is_seal, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                self._store.rm_file(f"{self._root}/{name}")
            del self._known[name]
        there = self._there()
        for name in changed:
            # One that is not listed yet is sent again.
            known = {"there": there.get(name), "here": present[name]}
            self._known[name] = known

    def _put(self, names: Sequence[str]) -> None:
        if not names:
            return
        targets = [f"{self._root}/{name}" for name in names]
        for parent in sorted({target.rpartition("/")[0] for target in targets}):
            self._store.makedirs(parent, exist_ok=True)
        self._store.put([str(self.path / name) for name in names], targets)

    def _there(self) -> dict[str, str]:
        """Version by name of each file there, without directories in parts."""
        self._store.invalidate_cache()
        try:
            listed = self._store.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        start = len(self._root.rstrip("/")) + 1
        found = {
            path[start:]: _version(info)
            for path, info in listed.items()
            if not PRIVATE.search(path[start:])
        }
        sealed = {name.rpartition("/")[0] for name in found if _is_seal(name)}
        return {
            name: version
            for name, version in found.items()
            if not (inside := SEALED.match(name)) or inside[1] in sealed
        }

    def _present(self) -> dict[str, str]:
        files = (path for path in self.path.rglob("*") if path.is_file())
        named = {path.relative_to(self.path).as_posix(): path for path in files}
        return {
            name: _version_here(path)
            for name, path in sorted(named.items())
            if not PRIVATE.search(name)
        }

    def _is_ahead(self, there: Mapping[str, str]) -> bool:
        """Whether no other machine has begun a run there that is not known here."""
        if STARTS not in there:
            return True
        ours = self.path / STARTS
        theirs = self._store.cat_file(f"{self._root}/{STARTS}")
        return ours.exists() and ours.read_bytes().startswith(theirs)


def _is_seal(name: str) -> bool:
    return name.rpartition("/")[2] in SEALS


def _version(info: Mapping[str, Any]) -> str:
    marks = [f"{key}={info[key]}" for key in VERSIONS if info.get(key) is not None]
    return " ".join([str(info.get("size")), *marks])


def _version_here(path: pathlib.Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"
