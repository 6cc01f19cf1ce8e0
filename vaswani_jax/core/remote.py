"""Keep a local copy of each directory on an object store.

A run locks, appends to, renames and maps files, which no object store can, and it
trains on while the store is out of reach. Each machine therefore keeps a local copy of
a remote directory (gs://, s3://, any URL that fsspec knows), in the user's cache or
where VASWANI_JAX_MIRRORS says. A copy that has been pushed can be deleted as a whole.

Two files protect a run. Each start of a run adds a line to `starts.jsonl`: a remote
line that the local file lacks means that another run has taken over. A checkpoint and
prepared data have a seal, which is sent last and removed first: without it they do not
count.
"""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import posixpath
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from vaswani_jax.core import errors, files, paths, sync, tensor_file
from vaswani_jax.core.sync import Sync

if TYPE_CHECKING:
    import fsspec

STARTS = "starts.jsonl"


class RemoteError(OSError):
    """A store cannot be read or written."""


def is_remote(name: str) -> bool:
    """Return whether a name is a URL of a store, not a path on this machine."""
    return "://" in name


def open_directory(name: str) -> files.Directory:
    """Return the directory at a path (with ~) or URL, without downloading it.

    Raises:
        ValueError: The name is empty, the home of no user, or an incomplete URL, or
            fsspec cannot use it.
    """
    if not name:
        raise ValueError("a directory must have a name, got ''")
    if re.match(r"[a-z][a-z0-9+.-]+:/[^/]", name):
        raise ValueError(f"{name}: a URL has two slashes after its colon")
    if not is_remote(name):
        return files.Directory(pathlib.Path(paths.expand_home(name)))
    if not name.partition("://")[2].strip("/"):
        raise ValueError(f"{name} names no directory")
    url = name.rstrip("/")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    mirrors = os.environ.get("VASWANI_JAX_MIRRORS") or f"{cache}/vaswani_jax"
    slug = re.sub(r"[^A-Za-z0-9]+", "_", url)[-60:].strip("_")
    unique_name = f"{slug}_{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    path = pathlib.Path(paths.expand_home(mirrors)).absolute() / unique_name
    import fsspec  # Only a URL needs it.

    try:
        store, root = fsspec.core.url_to_fs(url)
    except Exception as error:  # Each kind of store raises its own.
        raise ValueError(f"{url}: {errors.one_line(error)}") from None
    return RemoteDirectory(path, url=url, store=store, root=root)


def local_file(name: str) -> pathlib.Path:
    """Return the path of a file; of a URL, that of its local copy, up to date.

    Raises:
        ValueError: As `open_directory`.
        RemoteError: The store cannot be read, or has no such file.
    """
    directory = open_directory(name)
    if not isinstance(directory, RemoteDirectory):
        return directory.path
    return directory.pull_file()


def open_workdir(name: str) -> files.Directory:
    """Return the directory of a run, as `open_directory`.

    Raises:
        ValueError: As `open_directory`, or it is a file.
    """
    directory = open_directory(name)
    is_file = directory.path.exists() and not directory.path.is_dir()
    if is_file or (is_remote(name) and tensor_file.is_tensor_file(name)):
        raise ValueError(f"workdir {name} must be a directory, and is a file")
    return directory


class RemoteDirectory(files.Directory):
    """A directory on a store, and its local copy; `open_directory` makes it.

    Attributes:
        path: The local copy. Beside it lie `*.mirror.json`, the record of the last
            sync, and `*.superseded-*`, unsent files of a run that another replaced.
    """

    def __init__(
        self,
        path: pathlib.Path,
        *,
        url: str,
        store: "fsspec.AbstractFileSystem",
        root: str,
    ) -> None:
        super().__init__(path)
        self._url = url
        self._store = store
        self._root = root
        self._record = path.with_name(f"{path.name}.mirror.json")
        self._is_holder = False

    @functools.cached_property
    def _superseded(self) -> pathlib.Path:
        return self.path.with_name(f"{self.path.name}.superseded-{time.time_ns()}")

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        self._make_directory()
        with files.held(self.path):
            self._is_holder = True
            try:
                self.pull()
                self.push()
                yield
            finally:
                self._is_holder = False

    def pull(
        self,
        *,
        skip: Collection[str] = (),
        file_names: Collection[str] = (),
        mark: str = "",
        is_follower: bool = False,
    ) -> pathlib.Path:
        # ./a and x//b are a and x/b, as on this machine.
        file_names = [posixpath.normpath(name) for name in file_names]
        with self._open_record() as last_sync:
            if not self._is_holder and files.is_held(self.path):
                return self.path
            remote, local = self._remote_versions(file_names), self._local_versions()
            if not (remote or local):
                last_sync.clear()  # The copy was removed, to begin anew.
            if last_sync and not remote:
                raise RemoteError(
                    f"{self._url} is empty, but its local copy {self.path} is not: "
                    "remove the copy to begin anew, or upload it"
                )
            if mark and mark not in remote:
                if remote and not (self.path / mark).exists():
                    raise RemoteError(
                        f"{self._url} is not empty and has no {mark}: name another "
                        "place"
                    )
                return self.path
            # A follower may have written the run at an earlier start. The process that
            # writes it in this one lacks what was not sent.
            is_local_ahead = not is_follower and self._is_local_ahead(remote)
            plan = sync.plan_pull(
                local=local,
                remote=remote,
                last_sync=last_sync,
                skip=skip,
                file_names=file_names,
                is_local_ahead=is_local_ahead,
                is_holder=self._is_holder,
            )
            # First what new data replaces: if this is cut, the next pull repeats it.
            self._remove(plan.replaced, last_sync=last_sync)
            self._download(plan.outdated, remote=remote, last_sync=last_sync)
            self._remove(plan.deleted, last_sync=last_sync)
        return self.path

    def pull_file(self) -> pathlib.Path:
        """Download the one file that the URL names, and return its local path.

        It is downloaded only if it has changed, or if the store does not show changes.

        Raises:
            RemoteError: The store cannot be read, or has no such file.
        """
        name = self._root.rpartition("/")[2]
        with self._open_record() as last_sync:
            self._store.invalidate_cache()
            try:
                fields = self._store.info(self._root)
            except FileNotFoundError:
                raise RemoteError(f"there is no file {self._url}") from None
            remote = sync.remote_version(fields)
            path = self.path / name
            is_current = (
                sync.has_version(fields)
                and path.exists()
                and last_sync.get(name) == Sync(remote, sync.local_version(path))
            )
            if not is_current:
                part = path.with_name(f"{name}.unfinished")
                self._store.get_file(self._root, str(part))
                part.replace(path)
                last_sync[name] = Sync(remote, sync.local_version(path))
        return path

    def push(self, *, folder: str = "") -> None:
        with self._open_record() as last_sync:
            remote = self._remote_versions()
            if folder in ("", "data") and not self._is_local_ahead(remote):
                raise files.SupersededError(
                    f"another run has begun in {self._url} since; this one ends, its "
                    f"files are in {self.path}"
                )
            prefix = folder and f"{folder}/"
            local = self._local_versions()
            changed_names = {
                name
                for name in local
                if name.startswith(prefix)
                and sync.is_changed(
                    name, local=local, remote=remote, last_sync=last_sync
                )
            }
            for manifest in {f"{prefix}manifest.json", "data/manifest.json"}:
                if manifest in changed_names:
                    self._refuse_other_data(
                        manifest, remote=remote, last_sync=last_sync
                    )
            seals = {
                seal for name in changed_names if (seal := sync.find_seal(name, local))
            }
            for seal in seals & remote.keys():
                self._store.rm_file(f"{self._root}/{seal}")
            self._upload(sorted(changed_names - seals))
            # Files of what was replaced would otherwise be read with the new ones.
            rewritten = sync.find_rewritten(changed_names)
            self._delete(
                {
                    name
                    for name in last_sync.keys() - local.keys()
                    if sync.find_manifest(name) in changed_names
                    or sync.checkpoint_path(name) in rewritten
                },
                last_sync=last_sync,
            )
            self._upload(sorted(seals))
            # Delete the checkpoints that were deleted here.
            checkpoints = {sync.checkpoint_path(name) for name in local} | {None}
            self._delete(
                {
                    name
                    for name in last_sync
                    if name.startswith(prefix)
                    and sync.checkpoint_path(name) not in checkpoints
                },
                last_sync=last_sync,
            )
            remote = self._remote_versions()
            for name in changed_names | seals:
                # A file that the store does not list yet is sent again.
                last_sync[name] = Sync(remote.get(name), local[name])

    def _refuse_other_data(
        self,
        manifest: str,
        *,
        remote: Mapping[str, str],
        last_sync: Mapping[str, Sync],
    ) -> None:
        """Refuse to replace prepared data that another machine has sent since.

        Raises:
            SupersededError: Its manifest is of other data than the local one.
        """
        last = last_sync.get(manifest, Sync())
        if manifest not in remote or remote[manifest] == last.remote:
            return
        remote_manifest = self._store.cat_file(f"{self._root}/{manifest}")
        local_manifest = (self.path / manifest).read_bytes()
        if sync.data_content(remote_manifest) != sync.data_content(local_manifest):
            raise files.SupersededError(
                f"another run has prepared other data in {self._url} since; this one "
                f"ends: delete {self.path} to use that data, or name another directory"
            )

    def pull_again(self, path: pathlib.Path) -> bool:
        prefix = f"{path.absolute().relative_to(self.path)}/"
        with self._open_record() as last_sync:
            remote = self._remote_versions()
            names = [name for name in remote if name.startswith(prefix)]
            if names:
                shutil.rmtree(path, ignore_errors=True)
                self._download(names, remote=remote, last_sync=last_sync)
            return bool(names)

    @contextlib.contextmanager
    def _open_record(self) -> Iterator[dict[str, Sync]]:
        """Lock and yield the record of the last sync; rewrite it if nothing fails.

        Raises:
            RemoteError: The store raised an exception.
        """
        self._make_directory()
        with open(self._record.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            files.lock(lock, wait=True)
            last_sync = {}
            if self._record.exists():
                last_sync = self._read_record()
            try:
                yield last_sync
            except (RemoteError, files.SupersededError):
                raise
            except Exception as error:  # Each kind of store raises its own.
                raise RemoteError(f"{self._url}: {errors.one_line(error)}") from error
            rows = {name: vars(last) for name, last in last_sync.items()}
            record = {"url": self._url, "files": rows}
            files.write_atomically(self._record, json.dumps(record))

    def _make_directory(self) -> None:
        # `core.compilation_cache` uses the parent, too, unless others can write it.
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(exist_ok=True)

    def _read_record(self) -> dict[str, Sync]:
        try:
            rows = json.loads(self._record.read_text(encoding="utf-8"))["files"]
            # Earlier versions wrote the same values under other keys.
            return {name: Sync(*row.values()) for name, row in rows.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = errors.first_line(error)
            raise RemoteError(
                f"{self._record} is damaged ({reason}): delete it, and the next sync "
                f"compares all files of {self.path} with the store"
            ) from None

    def _download(
        self,
        names: Collection[str],
        *,
        remote: Mapping[str, str],
        last_sync: dict[str, Sync],
    ) -> None:
        """Download files; set aside unsent ones that they replace."""
        if not names:
            return
        parts = [f"{self.path / name}.unfinished" for name in names]
        for part in parts:
            os.makedirs(os.path.dirname(part), exist_ok=True)
        self._store.get([f"{self._root}/{name}" for name in names], parts)
        for name, part in zip(names, parts, strict=True):
            self._set_aside(name, last_sync.get(name, Sync()))
            os.replace(part, self.path / name)
            last_sync[name] = Sync(remote[name], sync.local_version(self.path / name))

    def _set_aside(self, name: str, last: Sync) -> None:
        """Move a file out of the local copy unless the store has had this version."""
        path = self.path / name
        if path.exists() and last.local != sync.local_version(path):
            (self._superseded / name).parent.mkdir(parents=True, exist_ok=True)
            path.replace(self._superseded / name)

    def _remove(self, names: Collection[str], *, last_sync: dict[str, Sync]) -> None:
        """Remove files of the local copy; set aside unsent ones."""
        for name in names:
            self._set_aside(name, last_sync.pop(name, Sync()))
            (self.path / name).unlink(missing_ok=True)
            self._remove_empty_folders(name)

    def _remove_empty_folders(self, name: str) -> None:
        """Remove folders that a deleted file leaves empty: they look like steps."""
        for folder in (self.path / name).parents:
            if folder == self.path or any(folder.iterdir()):
                return
            folder.rmdir()

    def _delete(self, names: Collection[str], *, last_sync: dict[str, Sync]) -> None:
        """Delete files on the store, seals first."""
        for name in sorted(names, key=sync.is_seal, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                self._store.rm_file(f"{self._root}/{name}")
            del last_sync[name]

    def _upload(self, names: Collection[str]) -> None:
        if not names:
            return
        targets = [f"{self._root}/{name}" for name in names]
        if not self._store.async_impl:  # Object stores, all async, have no directories.
            for parent in {target.rpartition("/")[0] for target in targets}:
                self._store.makedirs(parent, exist_ok=True)
        self._store.put([str(self.path / name) for name in names], targets)

    def _remote_versions(self, file_names: Collection[str] = ()) -> dict[str, str]:
        """Return the version of each file on the store.

        Unsealed files are left out, unless they are named. Where a listing shows no
        more than sizes, files of equal size have the same version.
        """
        self._store.invalidate_cache()
        try:
            listing = sync.list_files(self._store, self._root)
        except FileNotFoundError:
            return {}
        start = len(self._root.rstrip("/")) + 1
        versions = {}
        for path, fields in listing.items():
            name = path[start:]
            if sync.PRIVATE.search(name):
                continue
            is_needed = not file_names or sync.matches(name, file_names)
            if fields.get("size") is None and is_needed:
                # Over HTTP, a directory lists names alone.
                with contextlib.suppress(FileNotFoundError):
                    fields = self._store.info(path)
            versions[name] = sync.remote_version(fields)
        return {
            name: version
            for name, version in versions.items()
            if not sync.SEALED.match(name)
            or sync.find_seal(name, versions)
            or sync.matches(name, file_names)
        }

    def _local_versions(self) -> dict[str, str]:
        paths = sorted(path for path in self.path.rglob("*") if path.is_file())
        names = {path.relative_to(self.path).as_posix(): path for path in paths}
        return {
            name: sync.local_version(path)
            for name, path in names.items()
            if not sync.PRIVATE.search(name)
        }

    def _is_local_ahead(self, remote: Mapping[str, str]) -> bool:
        """Return whether the local copy knows every start on the store."""
        if STARTS not in remote:
            return True
        path = self.path / STARTS
        starts = self._store.cat_file(f"{self._root}/{STARTS}")
        return path.exists() and path.read_bytes().startswith(starts)
