"""Section 5.2's runs where machines come and go: directories on object stores.

A run locks, renames and maps files, which no object store can. A directory that fsspec
names by a URL (gs://, s3://, ...) therefore has a mirror on this machine, in the
user's cache or where VASWANI_JAX_MIRRORS says. `here` brings the mirror up to date,
`send` the store. A mirror that has been sent can be deleted, whole.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import fsspec

__all__ = ["RemoteError", "SupersededError"]


def is_remote(name: str) -> bool:
    """Whether a name is a URL of a store, not a path on this machine."""
    return "://" in name


def place(name: str) -> pathlib.Path:
    """Where a directory is or will be on this machine; nothing is fetched.

    Raises:
        ValueError: The name is empty, or a URL that cannot be one.
    """
    if not name:
        raise ValueError("a directory must have a name, got ''")
    if re.match(r"[a-z][a-z0-9+.-]+:/[^/]", name):
        raise ValueError(f"{name}: a URL has two slashes after its colon")
    if not is_remote(name):
        return pathlib.Path(name)
    if not name.partition("://")[2].strip("/"):
        raise ValueError(f"{name} names no directory")
    url = name.rstrip("/")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    mirrors = os.environ.get("VASWANI_JAX_MIRRORS") or f"{cache}/vaswani_jax"
    readable = re.sub(r"[^A-Za-z0-9]+", "_", url)[-60:].strip("_")
    found = f"{readable}_{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    path = pathlib.Path(mirrors).expanduser().absolute() / found
    mirror = Mirror(url, path)
    if not record_of(path).exists():
        with mirror.alone():
            pass
    return path


def here(
    name: str,
    *,
    skip: Collection[str] = (),
    only: Collection[str] = (),
    mark: str = "",
) -> pathlib.Path:
    """A directory as this machine has it: its own, or the mirror, brought up to date.

    A mirror that a run of this machine has is left to that run.

    Args:
        name: A path, or a URL that fsspec understands.
        skip: Directories right in it that are not asked for.
        only: The only files that are asked for, if any are named.
        mark: A file that the store must have, unless it is empty.

    Raises:
        ValueError: fsspec does not know the URL, or needs a package for it; or there
            are other files and no `mark`.
        RemoteError: The store cannot be read, or has lost what the mirror has.
    """
    path = place(name)
    _fetch(path, skip, only, mark, held=False)
    return path


def fetch(path: pathlib.Path) -> None:
    """Bring the mirror that a path is up to date, for who holds it.

    Raises:
        RemoteError: See `here`.
    """
    _fetch(path, (), (), "", held=True)


def refresh(path: pathlib.Path) -> None:
    """Bring the mirror that a path is up to date, unless a run here has it.

    Raises:
        RemoteError: See `here`.
    """
    _fetch(path, (), (), "", held=False)


def _fetch(
    path: pathlib.Path,
    skip: Collection[str],
    only: Collection[str],
    mark: str,
    *,
    held: bool,
) -> None:
    if url := _url_of(path):
        mirror = Mirror(url, path)
        with mirror.alone():
            if held or not mirror.is_held():
                mirror.fetch(skip, only, mark)


def fetch_again(path: pathlib.Path) -> bool:
    """Replace a directory in a mirror by the store's; whether it has it.

    Raises:
        RemoteError: See `here`.
    """
    for whole in path.absolute().parents:
        if url := _url_of(whole):
            mirror = Mirror(url, whole)
            with mirror.alone():
                return mirror.fetch_again(f"{path.absolute().relative_to(whole)}/")
    return False


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
        mirror = Mirror(url, path)
        with mirror.alone():
            mirror.send(within and f"{within}/")


def _url_of(path: pathlib.Path) -> str | None:
    record = record_of(path)
    return str(json.loads(record.read_text())["url"]) if record.exists() else None


# Only of this machine, not yet whole, or out of the directory.
PRIVATE = re.compile(
    r"(^|/)(\.[^/]*|lock|compiled|checkpoints\.damaged|best\.old)(/|$)"
    r"|\.unfinished|checkpoint-tmp|^/|//"
)
SEALS = {"files.json", "manifest.json"}
SEALED = re.compile(r"((?:checkpoints|best|averaged)/\d+|data)/")
# Of these nothing changes when they are sealed, and they go as a whole.
NUMBERED = re.compile(r"((?:checkpoints|best|averaged)/\d+)/")
STARTS = "starts.jsonl"
VERSIONS = ("etag", "ETag", "generation", "md5Hash", "mtime", "LastModified", "created")


class RemoteError(OSError):
    """A store cannot be read or written."""


class SupersededError(RemoteError):
    """Another run has begun in the same place since."""


def record_of(path: pathlib.Path) -> pathlib.Path:
    """Where it is written whose mirror a directory is, and what was equal."""
    whole = path.absolute()
    return whole.parent / f"{whole.name}.mirror.json"


class Mirror:
    """A directory here and its store; the record has both versions when equal."""

    def __init__(self, url: str, path: pathlib.Path) -> None:
        self._url, self.path = url, path
        self._aside = path.with_name(f"{path.name}.superseded-{time.time_ns()}")
        try:
            self._store, self._root = fsspec.core.url_to_fs(url)
        except Exception as error:  # Each kind of store raises its own.
            raise ValueError(f"{url}: {_line(error)}") from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One process of this machine at a time; what a store raises is told."""
        self.path.mkdir(parents=True, exist_ok=True)
        record = record_of(self.path)
        with open(record.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._known: dict[str, dict[str, Any]] = {}
            if record.exists():
                self._known = json.loads(record.read_text())["files"]
            try:
                yield
            except (RemoteError, ValueError):
                raise
            except Exception as error:  # Each kind of store raises its own.
                raise RemoteError(f"{self._url}: {_line(error)}") from error
            unfinished = record.with_suffix(".unfinished")
            known = {"url": self._url, "files": self._known}
            unfinished.write_text(json.dumps(known, indent=0))
            unfinished.replace(record)

    def is_held(self) -> bool:
        """Whether a run of this machine has it, and keeps it up to date itself."""
        lock = self.path / "lock"
        if not lock.exists():
            return False
        with open(lock) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def fetch(self, skip: Collection[str], only: Collection[str], mark: str) -> None:
        """Bring here what is new there."""
        there = self._there()
        if self._known and not there:
            raise RemoteError(
                f"{self._url} is empty, but its mirror {self.path} is not: remove the "
                "mirror to begin anew, or copy it back"
            )
        if mark and mark not in there:
            if there and not (self.path / mark).exists():
                raise ValueError(
                    f"{self._url} is not empty and has no {mark}: name another place"
                )
            return
        ahead = self._is_ahead(there)
        present = self._present()
        wanted = []
        for name, version in there.items():
            if name.partition("/")[0] in skip or (only and name not in only):
                continue
            known = self._known.get(name, {"there": None, "here": None})
            untouched = present.get(name, known["here"]) == known["here"]
            news = known["there"] != version or name not in present
            if (news and untouched) if ahead else (news or not untouched):
                wanted.append(name)
        self._get(wanted, there, replacing={} if ahead else present)
        if not (ahead or only):
            self._set_aside(present.keys() - there.keys(), present)

    def fetch_again(self, prefix: str) -> bool:
        """Replace what is in a directory here by what is there, if it is there."""
        there = self._there()
        wanted = [name for name in there if name.startswith(prefix)]
        if wanted:
            for name in self._present():
                if name.startswith(prefix):
                    (self.path / name).unlink()
                    self._known.pop(name, None)
            self._get(wanted, there, replacing={})
        return bool(wanted)

    def _get(
        self,
        names: Sequence[str],
        there: Mapping[str, str],
        *,
        replacing: Mapping[str, str],
    ) -> None:
        """Bring files here; what was in their places, of `replacing`, is set aside."""
        if not names:
            return
        for name in names:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        parts = [f"{self.path / name}.unfinished" for name in names]
        self._store.get([f"{self._root}/{name}" for name in names], parts)
        self._set_aside(replacing.keys() & set(names), replacing)
        for name, part in zip(names, parts, strict=True):
            os.replace(part, self.path / name)
            self._known[name] = {
                "there": there[name],
                "here": _version_here(self.path / name),
            }

    def _set_aside(self, names: Collection[str], present: Mapping[str, str]) -> None:
        """Remove what was sent; what was not goes to a directory beside the mirror."""
        for name in names:
            known = self._known.pop(name, None)
            if known and known["here"] == present[name]:
                (self.path / name).unlink()
            else:
                (self._aside / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(self.path / name, self._aside / name)

    def send(self, prefix: str) -> None:
        """Bring there what is new here, and remove numbered directories gone here."""
        there = self._there()
        if not (prefix or self._is_ahead(there)):
            raise SupersededError(
                f"another run has begun in {self._url} since; this one ends, its files "
                f"are in {self.path}"
            )
        present = self._present()
        changed = {
            name
            for name in present
            if name.startswith(prefix) and self._is_changed(name, present, there)
        }
        seals = {seal for name in changed if (seal := _seal_of(name, present))}
        for seal in seals & there.keys():
            self._store.rm_file(f"{self._root}/{seal}")
        self._put(sorted(changed - seals))
        self._put(sorted(seals))
        self._remove(prefix, present)
        there = self._there()
        for name in changed | seals:
            # One that is not listed yet is sent again.
            known = {"there": there.get(name), "here": present[name]}
            self._known[name] = known

    def _is_changed(
        self, name: str, present: Mapping[str, str], there: Mapping[str, str]
    ) -> bool:
        known = self._known.get(name)
        if NUMBERED.match(name) and (seal := _seal_of(name, present)):
            sealed = self._known.get(seal)
            if sealed and sealed["here"] == present[seal]:
                return known is not None and name not in there
        return name not in there or known is None or known["here"] != present[name]

    def _put(self, names: Sequence[str]) -> None:
        if not names:
            return
        targets = [f"{self._root}/{name}" for name in names]
        for parent in sorted({target.rpartition("/")[0] for target in targets}):
            self._store.makedirs(parent, exist_ok=True)
        self._store.put([str(self.path / name) for name in names], targets)

    def _remove(self, prefix: str, present: Mapping[str, str]) -> None:
        here = {found[1] for name in present if (found := NUMBERED.match(name))}
        gone = [
            name
            for name in self._known
            if name.startswith(prefix)
            and (found := NUMBERED.match(name))
            and found[1] not in here
        ]
        for name in sorted(gone, key=_is_seal, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                self._store.rm_file(f"{self._root}/{name}")
            del self._known[name]

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
        """Whether no run has begun there that is not known here."""
        if STARTS not in there:
            return True
        ours = self.path / STARTS
        theirs = self._store.cat_file(f"{self._root}/{STARTS}")
        return ours.exists() and ours.read_bytes().startswith(theirs)


def _seal_of(name: str, present: Mapping[str, str]) -> str | None:
    """The seal of the directory that a file is in, or of the whole; itself if it is."""
    if _is_seal(name):
        return name
    inside = SEALED.match(name)
    folder = f"{inside[1]}/" if inside else ""
    return next((folder + seal for seal in SEALS if folder + seal in present), None)


def _is_seal(name: str) -> bool:
    return name.rpartition("/")[2] in SEALS


def _version(info: Mapping[str, Any]) -> str:
    marks = [f"{key}={info[key]}" for key in VERSIONS if info.get(key) is not None]
    return " ".join([str(info.get("size")), *marks])


def _version_here(path: pathlib.Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or repr(error)
