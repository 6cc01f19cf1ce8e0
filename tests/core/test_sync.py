"""Which files are sent and fetched depends on their versions and on their seals."""

from typing import Any

import pytest

from vaswani_jax.core import sync
from vaswani_jax.core.sync import Sync

SEAL = "checkpoints/8/files.json"
PART = "checkpoints/8/params"


@pytest.mark.parametrize(
    ("name", "pattern", "is_match"),
    [
        ("text/a.de", "text/a.de", True),
        ("text/a.de", "text", True),
        ("text2/a.de", "text", False),
        ("text/a.de", "text/*.de", True),
        ("text/old/a.de", "text/*.de", False),
        ("text/old/a.de", "text/**/*.de", True),
        ("text/a.de", "text/**/*.de", True),
    ],
)
def test_a_name_matches_itself_its_directory_and_a_glob(
    name: str, pattern: str, is_match: bool
) -> None:
    assert sync.matches(name, [pattern]) == is_match


def test_prepared_data_has_its_manifest_in_the_run_or_alone() -> None:
    assert sync.find_manifest("data/train.source") == "data/manifest.json"
    assert sync.find_manifest("train.source") == "manifest.json"
    assert sync.find_manifest(PART) == sync.find_manifest(SEAL) == ""


# The versions at the last sync are "1".
@pytest.mark.parametrize(
    ("local", "remote", "if_ahead", "if_behind"),
    [
        ("1", "1", False, False),
        (None, "1", True, True),
        ("1", "2", True, True),
        ("2", "1", False, True),
        ("2", "2", False, True),
    ],
)
def test_a_copy_that_is_ahead_keeps_its_own_changes(
    local: str | None, remote: str, if_ahead: bool, if_behind: bool
) -> None:
    for is_ahead, expected in ((True, if_ahead), (False, if_behind)):
        is_outdated = sync.is_outdated(
            local, remote=remote, last=Sync("1", "1"), is_local_ahead=is_ahead
        )
        assert is_outdated == expected


def plan(
    local: dict[str, str], remote: dict[str, str], **options: Any
) -> tuple[set[str], list[str], set[str]]:
    """Return what a pull replaces, downloads and deletes.

    At the last sync, the versions were "1", but for files named `unsent`.
    """
    names = {*local, *remote}
    plan = sync.plan_pull(
        local=local,
        remote=remote,
        last_sync={name: Sync("1", "1") for name in names if name != "unsent"},
        **{
            "skip": (),
            "file_names": (),
            "is_local_ahead": True,
            "is_holder": False,
            **options,
        },
    )
    return plan.replaced, plan.outdated, plan.deleted


def test_a_pull_fetches_what_the_store_has_changed_and_the_copy_lacks() -> None:
    local = {"equal": "1", "store": "1", "copy": "2"}
    remote = {"equal": "1", "store": "2", "copy": "1", "text/lost": "1"}
    assert plan(local, remote) == (set(), ["store", "text/lost"], set())
    # A copy that another run has replaced keeps no change of its own.
    everything = ["store", "copy", "text/lost"]
    assert plan(local, remote, is_local_ahead=False) == (set(), everything, set())
    assert plan(local, remote, skip=["text"]) == (set(), ["store"], set())
    assert plan(local, remote, file_names=["text"]) == (set(), ["text/lost"], set())


def test_a_pull_deletes_what_the_store_has_replaced_or_pruned() -> None:
    newer = "checkpoints/9/files.json"
    local = {SEAL: "1", PART: "1", "data/old": "1", "data/manifest.json": "1"}
    local["unsent"] = "1"
    remote = {newer: "1", "data/manifest.json": "2"}
    outdated = [newer, "data/manifest.json"]
    assert plan(local, remote) == ({"data/old"}, outdated, {SEAL, PART})
    # Who trains decides which checkpoints stay.
    assert plan(local, remote, is_holder=True) == ({"data/old"}, outdated, set())
    replaced, _, deleted = plan(local, remote, is_local_ahead=False)
    assert (replaced, deleted) == ({"data/old"}, {SEAL, PART, "unsent"})


def test_a_pull_replaces_a_rewritten_checkpoint_as_a_whole() -> None:
    seal, earlier, later = (f"averaged/8/{name}" for name in ("files.json", "a", "b"))
    copy = "averaged/8.safetensors"
    local = dict.fromkeys((seal, earlier, copy, SEAL, PART, "unsent"), "1")
    remote = {seal: "2", later: "2", SEAL: "1"}
    for is_holder in (False, True):
        expected = (set(), [seal, later], {earlier, copy})
        assert plan(local, remote, is_holder=is_holder) == expected


def test_files_of_a_checkpoint_that_was_sent_whole_are_not_sent_again() -> None:
    local = {SEAL: "1", PART: "damaged"}
    last_sync = {SEAL: Sync("1", "1"), PART: Sync("1", "1")}
    versions = {"local": local, "last_sync": last_sync}
    whole, lost = {SEAL: "1", PART: "1"}, {SEAL: "1"}
    assert not sync.is_changed(PART, remote=whole, **versions)
    assert sync.is_changed(PART, remote=lost, **versions)
    # Another machine has rewritten it, with other files.
    rewritten = {SEAL: "2", "checkpoints/8/other": "2"}
    assert not sync.is_changed(PART, remote=rewritten, **versions)
    # A checkpoint that has no seal yet, or another one, is sent.
    versions["last_sync"] = {PART: Sync("1", "1")}
    assert sync.is_changed(PART, remote=whole, **versions)


def test_a_seal_belongs_to_the_files_beside_it() -> None:
    names = {SEAL, PART, "checkpoints/9/params", "data/manifest.json", "config.json"}
    assert sync.find_seal(PART, names) == SEAL
    assert sync.find_seal(SEAL, names) == SEAL
    assert sync.find_seal("checkpoints/9/params", names) is None
    assert sync.find_seal("data/train.ids", names) == "data/manifest.json"
    assert sync.find_seal("config.json", names) is None
    assert sync.checkpoint_path(PART) == "checkpoints/8"
    assert sync.checkpoint_path("data/train.ids") is None


def test_a_copy_in_one_file_goes_with_the_average_beside_it_and_needs_no_seal() -> None:
    copy, seal = "averaged/8.safetensors", "averaged/8/files.json"
    assert sync.checkpoint_path(copy) == sync.checkpoint_path(seal) == "averaged/8"
    assert sync.find_seal(copy, {copy, seal}) is None
    assert sync.find_manifest(copy) == ""
    versions = {copy: "1", seal: "1"}
    last_sync = {name: Sync("1", "1") for name in versions}
    for local, is_changed in (("1", False), ("2", True)):
        changed = sync.is_changed(
            copy, local={copy: local, seal: "1"}, remote=versions, last_sync=last_sync
        )
        assert changed == is_changed
    assert sync.find_pruned([copy], ["averaged/9/files.json"]) == {copy}
    # A file of the user's own.
    assert sync.checkpoint_path("checkpoints/8.safetensors") is None


@pytest.mark.parametrize(
    ("field", "first", "second"),
    [
        ("Last-Modified", "Mon, 01 Dec 2025 10:00:00 GMT", ""),
        ("Content-MD5", "aaaa", "bbbb"),
        ("Digest", "sha-256=aaaa", "sha-256=bbbb"),
        ("last_modified", 1, 2),
        ("modified", 1, 2),
        ("modify", "20251201100000", "20251201100001"),
        ("modificationTime", 1764583200000, 1764583200001),
        ("blob_id", "aaaa", "bbbb"),
        ("sha", "aaaa", "bbbb"),
    ],
)
def test_files_of_equal_size_differ_in_what_their_store_shows(
    field: str, first: object, second: object
) -> None:
    fields = {"name": "model", "size": 5, field: first}
    assert sync.has_version(fields)
    assert sync.remote_version(fields) == sync.remote_version(dict(fields))
    assert sync.remote_version(fields) != sync.remote_version({**fields, field: second})
    assert not sync.has_version({"name": "model", "size": 5, "lfs": None})
