"""Decide which files differ between a directory on a store and its local copy.

A checkpoint and prepared data have a seal: without it, their files do not count.
"""

import dataclasses
import errno
import fnmatch
import json
import pathlib
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import fsspec

# Files that stay on this machine, unfinished files, paths that lead elsewhere, and the
# empty files by which some programs mark a folder of an object store.
PRIVATE = re.compile(
    r"(^|/)(\.[^/]*|lock|compiled|checkpoints\.damaged|(?:averaged|best)\.old)(/|$)"
    r"|\.unfinished|checkpoint-tmp|^/|//|/$|^$"
)
SEALS = ("files.json", "manifest.json")
# A checkpoint is written, replaced and deleted as a whole, seal included: an average
# with the copy in one file beside it.
CHECKPOINT = re.compile(
    r"((?:checkpoints|best|averaged)/\d+(?=/)|averaged/\d+(?=\.safetensors$))"
)
SEALED = re.compile(r"((?:checkpoints|best|averaged)/\d+|data)/")
# The fields that change with a file, as the stores call them.
VERSIONS = (
    "etag",
    "ETag",
    "generation",
    "md5Hash",
    "mtime",
    "LastModified",
    "created",
    "Last-Modified",  # HTTP, as the next two
    "Content-MD5",
    "Digest",
    "last_modified",
    "modified",
    "modify",  # FTP
    "modificationTime",  # HDFS
    "blob_id",  # Hugging Face
    "sha",  # GitHub
)


def list_files(
    store: "fsspec.AbstractFileSystem", root: str
) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of each file below a directory of a store, by their paths.

    Raises:
        OSError: The store cannot be read; a store may raise another error.
    """
    from fsspec import AbstractFileSystem  # Only a URL needs it.

    is_generic = type(store).find is AbstractFileSystem.find and not store.async_impl
    if not is_generic:
        return store.find(root, detail=True)
    # The generic `find` leaves out what it cannot list, as if there were no files.
    listed: dict[str, Mapping[str, Any]] = {}
    directories = [root]
    while directories:
        directory = directories.pop().rstrip("/") or "/"
        try:
            entries = store.ls(directory, detail=True)
        except OSError as error:
            # A store may raise an error of its own with this number.
            if not isinstance(error, FileNotFoundError) and error.errno != errno.ENOENT:
                raise
            continue  # There is none, or it was deleted meanwhile.
        for fields in entries:
            name = fields["name"].rstrip("/")
            if fields["type"] != "directory":
                listed[fields["name"]] = fields
            elif name != directory:  # A directory may be in its own listing.
                directories.append(name)
    return listed


@dataclasses.dataclass(frozen=True)
class Sync:
    """The versions that a file had when the store and the local copy were equal."""

    remote: str | None = None
    local: str | None = None


@dataclasses.dataclass(frozen=True)
class Pull:
    """The changes that bring a local copy to the state of its store.

    Attributes:
        replaced: The files to remove before the download: new data replaces them.
        outdated: The files to download.
        deleted: The files to remove after the download.
    """

    replaced: set[str]
    outdated: list[str]
    deleted: set[str]


def plan_pull(
    *,
    local: Mapping[str, str],
    remote: Mapping[str, str],
    last_sync: Mapping[str, Sync],
    skip: Collection[str],
    file_names: Collection[str],
    is_local_ahead: bool,
    is_holder: bool,
) -> Pull:
    """Return what to remove from a local copy and to download into it.

    Args:
        local: The version of each of its files.
        remote: The version of each file on the store.
        last_sync: The versions of each file at the last sync.
        skip: The top folders not to download.
        file_names: The only files to download, as `matches` takes them; if empty, all.
        is_local_ahead: Whether the local copy knows every start on the store.
        is_holder: Whether this process holds the local copy.
    """
    # Data that was prepared here, and not sent before the process ended.
    unsent_manifests = {
        name
        for name, version in local.items()
        if is_local_ahead
        and find_manifest(name) == name
        and version != last_sync.get(name, Sync()).local
    }
    outdated_names = [
        name
        for name in remote
        if name.partition("/")[0] not in skip
        and (matches(name, file_names) or not file_names)
        and find_manifest(name) not in unsent_manifests
        and is_outdated(
            local.get(name),
            remote=remote[name],
            last=last_sync.get(name, Sync()),
            is_local_ahead=is_local_ahead,
        )
    ]
    deleted_names = local.keys() - remote.keys()
    if file_names:
        # A shard that the store has lost no longer belongs to its glob.
        deleted_names = {
            name
            for name in deleted_names & last_sync.keys()
            if name not in file_names and matches(name, file_names)
        }
    elif is_local_ahead:
        # Another process has replaced the prepared data or an average, or a training
        # elsewhere has deleted old checkpoints.
        gone_names = deleted_names & last_sync.keys()
        pruned_names = set() if is_holder else find_pruned(gone_names, remote)
        rewritten = find_rewritten(outdated_names)
        deleted_names = pruned_names | {
            name
            for name in gone_names
            if find_manifest(name) in outdated_names
            or checkpoint_path(name) in rewritten
        }
    replaced_names = {
        name for name in deleted_names if find_manifest(name) in outdated_names
    }
    return Pull(replaced_names, outdated_names, deleted_names - replaced_names)


def matches(name: str, patterns: Collection[str]) -> bool:
    """Return whether a file has one of the names, or is in a directory of that name.

    A name may be a glob, in which * stands for no slash and ** for any directories.
    """
    return any(
        name == pattern
        or name.startswith(f"{pattern}/")
        or (
            ("**" in pattern or name.count("/") == pattern.count("/"))
            and fnmatch.fnmatchcase(name, pattern.replace("**/", "*"))
        )
        for pattern in patterns
    )


def is_outdated(
    local: str | None, *, remote: str, last: Sync, is_local_ahead: bool
) -> bool:
    """Return whether a local version, None if there is no file, must be replaced."""
    is_newer = local is None or last.remote != remote
    is_modified = local is not None and local != last.local
    if is_local_ahead:
        return is_newer and not is_modified
    return is_newer or is_modified


def is_changed(
    name: str,
    *,
    local: Mapping[str, str],
    remote: Mapping[str, str],
    last_sync: Mapping[str, Sync],
) -> bool:
    """Return whether a local file must be uploaded."""
    last = last_sync.get(name)
    path = checkpoint_path(name)
    if path and _is_replaced(path, local=local, remote=remote, last_sync=last_sync):
        return False
    seal = find_seal(name, local) if path else None
    if seal and last_sync.get(seal, Sync()).local == local[seal]:
        # It was sent whole: a later difference is damage.
        return last is not None and name not in remote
    return name not in remote or last is None or last.local != local[name]


def _is_replaced(
    path: str,
    *,
    local: Mapping[str, str],
    remote: Mapping[str, str],
    last_sync: Mapping[str, Sync],
) -> bool:
    """Return whether another machine has rewritten a checkpoint since the last sync.

    Files of the local one, sent before, must not come beside those of the new one.
    """
    seal = f"{path}/{SEALS[0]}"
    last = last_sync.get(seal, Sync())
    return (
        seal in remote
        and last.remote not in (None, remote[seal])
        and last.local == local.get(seal)
    )


def checkpoint_path(name: str) -> str | None:
    """Return the folder of the checkpoint that a file is in, or is a copy of."""
    return match[1] if (match := CHECKPOINT.match(name)) else None


def find_rewritten(names: Collection[str]) -> set[str]:
    """Return the folders of the checkpoints whose seals are among changed files.

    >>> find_rewritten(["averaged/8/files.json", "best/9/params", "data/manifest.json"])
    {'averaged/8'}
    """
    return {path for name in names if is_seal(name) and (path := checkpoint_path(name))}


def find_pruned(names: Collection[str], remote: Collection[str]) -> set[str]:
    """Return the files of checkpoints that the store lacks although it has newer ones.

    >>> old, newer = "checkpoints/500/files.json", "checkpoints/600/files.json"
    >>> find_pruned([old], [newer]), find_pruned([newer], [old])
    ({'checkpoints/500/files.json'}, set())
    """
    newest: dict[str, int] = {}
    stored = {path for name in remote if (path := checkpoint_path(name))}
    for path in stored:
        folder, _, step = path.partition("/")
        newest[folder] = max(int(step), newest.get(folder, 0))
    pruned = set()
    for name in names:
        path = checkpoint_path(name)
        if path and path not in stored:
            folder, _, step = path.partition("/")
            if int(step) < newest.get(folder, 0):
                pruned.add(name)
    return pruned


def find_manifest(name: str) -> str:
    """Return the path of the manifest of the prepared data that a file belongs to.

    "" for a file of a checkpoint, which is replaced as a whole.
    """
    if checkpoint_path(name):
        return ""
    return f"{match[0] if (match := SEALED.match(name)) else ''}manifest.json"


def find_seal(name: str, names: Collection[str]) -> str | None:
    """Return the seal among names that a file depends on; a seal returns itself."""
    if is_seal(name):
        return name
    match = SEALED.match(name)
    folder = match[0] if match else ""
    return next((folder + seal for seal in SEALS if folder + seal in names), None)


def is_seal(name: str) -> bool:
    """Return whether a file is the seal of a checkpoint or of prepared data."""
    return name.rpartition("/")[2] in SEALS


def has_version(fields: Mapping[str, Any]) -> bool:
    """Return whether a listing shows changes of a file that keep its size.

    >>> has_version({"size": 5, "ETag": "a1"}), has_version({"size": 5})
    (True, False)
    """
    return any(fields.get(key) is not None for key in VERSIONS)


def remote_version(fields: Mapping[str, Any]) -> str:
    """Return what changes with a file on a store, from the fields of its listing.

    Where `has_version` is false, that is its size alone.
    """
    marks = [f"{key}={fields[key]}" for key in VERSIONS if fields.get(key) is not None]
    return " ".join([str(fields.get("size")), *marks])


def local_version(path: pathlib.Path) -> str:
    """Return what changes with a file on this machine: its size and its time."""
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def data_content(manifest: bytes) -> Any:
    """Return what a manifest says of prepared data, without the times of its text.

    Checkpoints record the names and digests of the training text, so these count. A
    manifest without digests comes back as it is.
    """
    try:
        record = json.loads(manifest)
        text = {
            key: entry.get("sha256") if isinstance(entry, dict) else entry
            for key, entry in record.get("text", {}).get("train", {}).items()
        }
        return [record[key] for key in ("settings", "vocabulary", "files")] + [text]
    except (ValueError, KeyError, TypeError, AttributeError):
        return manifest
