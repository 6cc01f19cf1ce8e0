"""Mirrors of directories on stores: fsspec's memory and its local files."""

import pathlib
import shutil
from collections.abc import Iterator

import fsspec
import pytest

from vaswani_jax.core import remote
from vaswani_jax.data import directories

URL = "memory://bucket/run"


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[str]:
    """A directory on a store that is there for one test alone."""
    if request.param == "file":
        yield f"file://{tmp_path}/bucket/run"
        return
    yield "memory://bucket/run"
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]


class Machine:
    """A machine has its own mirrors."""

    def __init__(
        self, name: str, base: pathlib.Path, patch: pytest.MonkeyPatch
    ) -> None:
        self._mirrors, self._patch = base / name, patch

    def _arrive(self) -> None:
        self._patch.setenv("VASWANI_JAX_MIRRORS", str(self._mirrors))

    def here(self, url: str, **how: list[str]) -> pathlib.Path:
        self._arrive()
        return remote.here(url, **how)

    def send(self, path: pathlib.Path, *, within: str = "") -> None:
        self._arrive()
        remote.send(path, within=within)


@pytest.fixture
def one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine("one", tmp_path, monkeypatch)


@pytest.fixture
def two(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine("two", tmp_path, monkeypatch)


def write(directory: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def content(directory: pathlib.Path) -> dict[str, str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_text() for path in files}


def stored(url: str) -> dict[str, str]:
    store, root = fsspec.core.url_to_fs(url)
    return {
        path[len(root) + 1 :]: store.cat_file(path).decode()
        for path in store.find(root)
    }


RUN = {
    "starts.jsonl": "first\n",
    "config.json": "{}",
    "metrics.jsonl": "1\n2\n",
    "checkpoints/2/params/a": "two",
    "checkpoints/2/files.json": "two's seal",
    "data/manifest.json": "m",
    "data/train.source": "tokens",
}


@pytest.fixture
def sent(url: str, one: Machine) -> pathlib.Path:
    """The mirror of the first machine, when the store has all of it."""
    path = one.here(url)
    write(path, RUN)
    one.send(path)
    return path


def test_a_path_is_itself(tmp_path: pathlib.Path) -> None:
    assert remote.here(str(tmp_path / "runs")) == tmp_path / "runs"
    remote.send(tmp_path)
    remote.refresh(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_one_machine_sends_another_has(
    url: str, one: Machine, two: Machine
) -> None:
    path = one.here(url)
    assert content(path) == {}
    write(path, RUN)
    # Of this machine alone, or not whole.
    write(
        path,
        {
            "lock": "process 1",
            "compiled/program": "x",
            "metrics.unfinished": "1",
            "checkpoints/3.orbax-checkpoint-tmp/params/a": "th",
            "data/.hidden": "h",
        },
    )
    one.send(path)
    assert stored(url) == RUN
    assert content(two.here(url)) == RUN


def test_a_run_moves_to_another_machine_and_back(
    url: str, one: Machine, two: Machine, sent: pathlib.Path
) -> None:
    second = two.here(url)
    # It goes on: a newer checkpoint, and the old one goes.
    write(second, {"starts.jsonl": "first\nsecond\n", "metrics.jsonl": "1\n2\n3\n"})
    (second / "checkpoints/2/params/a").unlink()
    (second / "checkpoints/2/files.json").unlink()
    write(second, {"checkpoints/3/files.json": "seal", "checkpoints/3/params/a": "3"})
    two.send(second)
    assert stored(url) == content(second)
    # What the first machine had made in the meantime is of a run that is over.
    write(sent, {"checkpoints/4/files.json": "4", "metrics.jsonl": "1\n2\nx\n"})
    with pytest.raises(remote.SupersededError, match="another run has begun in"):
        one.send(sent)
    assert stored(url) == content(second)
    assert content(one.here(url)) == content(second)


def test_what_was_not_sent_is_kept_by_the_machine_that_has_it(
    url: str, one: Machine, sent: pathlib.Path
) -> None:
    # A line more in a file of the same name, a new file, and one that is over.
    write(sent, {"metrics.jsonl": "1\n2\n3\n", "checkpoints/3/files.json": "seal"})
    (sent / "checkpoints/2/params/a").unlink()
    (sent / "checkpoints/2/files.json").unlink()
    before = content(sent)
    # What is missing here may have been cleared away: it comes back.
    over = {name: text for name, text in RUN.items() if name[:14] == "checkpoints/2/"}
    assert content(one.here(url)) == {**before, **over}
    for name in over:
        (sent / name).unlink()
    one.send(sent)
    assert stored(url) == before


def test_what_is_cleared_away_here_stays_there(
    url: str, one: Machine, sent: pathlib.Path
) -> None:
    shutil.rmtree(sent / "checkpoints")
    shutil.rmtree(sent / "data")
    one.here(url)
    one.send(sent)
    assert stored(url) == content(sent) == RUN


def test_a_reader_does_not_touch_the_mirror_of_a_living_run(
    url: str, one: Machine, two: Machine, sent: pathlib.Path
) -> None:
    with directories.held(sent):
        second = two.here(url)
        write(second, {"starts.jsonl": "first\nsecond\n"})
        two.send(second)
        # decode, say, while the first run does not know yet.
        assert content(one.here(url)) == RUN | {"lock": (sent / "lock").read_text()}
        with pytest.raises(remote.SupersededError):
            one.send(sent)
    # Once it has ended, the mirror follows the store.
    assert one.here(url) == sent
    assert (sent / "starts.jsonl").read_text() == "first\nsecond\n"


def test_a_directory_that_is_replaced_has_no_seal_until_it_is_whole(
    url: str,
    one: Machine,
    two: Machine,
    sent: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(sent, {"data/train.source": "other", "data/train.target": "new"})
    store, _ = fsspec.core.url_to_fs(url)

    def cut(self: object, names: list[str], places: list[str], **more: object) -> None:
        store.put_file(names[0], places[0])
        raise OSError("cut")

    monkeypatch.setattr(type(store), "put", cut)
    with pytest.raises(remote.RemoteError, match="cut"):
        one.send(sent)
    monkeypatch.undo()
    found = content(two.here(url))
    assert not [name for name in found if name.startswith("data")]
    one.here(url)
    one.send(sent)
    assert stored(url) == content(sent)


def test_a_damaged_copy_comes_again_and_is_not_sent(
    url: str, one: Machine, sent: pathlib.Path
) -> None:
    write(sent, {"checkpoints/2/params/a": "tw", "checkpoints/2/params/b": "?"})
    one.send(sent)
    assert stored(url)["checkpoints/2/params/a"] == "two"
    assert remote.fetch_again(sent / "checkpoints/2")
    assert content(sent) == RUN
    assert not remote.fetch_again(sent / "checkpoints/3")


def test_what_another_run_has_superseded_is_set_aside(
    url: str, one: Machine, two: Machine, sent: pathlib.Path
) -> None:
    second = two.here(url)
    write(second, {"starts.jsonl": "first\nsecond\n"})
    two.send(second)
    unsent = {"evaluations/test.json": "41", "metrics.jsonl": "1\n2\n3\n"}
    write(sent, unsent)
    one.here(url)
    assert content(sent) == stored(url)
    [aside] = sent.parent.glob("*.superseded-*")
    assert content(aside) == unsent


def test_a_place_with_other_files_is_no_place_for_prepared_data(
    url: str, one: Machine, two: Machine
) -> None:
    path = one.here(url, mark="manifest.json")
    write(path, {"train.source": "t", "manifest.json": "m"})
    one.send(path)
    found = two.here(url, mark="manifest.json")
    assert content(found) == {"train.source": "t", "manifest.json": "m"}
    store, root = fsspec.core.url_to_fs(url)
    store.rm_file(f"{root}/manifest.json")
    # Who has it whole sends it again; who has not cannot tell what it is.
    one.here(url, mark="manifest.json")
    shutil.rmtree(found)
    with pytest.raises(ValueError, match=r"is not empty and has no manifest.json"):
        two.here(url, mark="manifest.json")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "must have a name"),
        ("gs:/bucket/run", "two slashes"),
        ("file:///", "names no directory"),
        ("github://a/b", "github://a/b: "),
        ("nowhere://a/b", "nowhere://a/b: .*nowhere"),
    ],
)
def test_a_name_that_means_no_place_is_refused(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        remote.here(name)


def test_a_directory_that_is_not_whole_is_not_there(
    url: str, one: Machine, two: Machine
) -> None:
    path = one.here(url)
    cut = {k: v for k, v in RUN.items() if k != "checkpoints/2/files.json"}
    cut = {k: v for k, v in cut.items() if k != "data/manifest.json"}
    write(path, cut)
    one.send(path)
    found = content(two.here(url))
    assert sorted(found) == ["config.json", "metrics.jsonl", "starts.jsonl"]


@pytest.mark.usefixtures("sent")
def test_only_what_is_asked_for_is_fetched(url: str, two: Machine) -> None:
    assert content(two.here(url, only=["config.json"])) == {"config.json": "{}"}
    found = content(two.here(url, skip=["checkpoints"]))
    assert found == {k: v for k, v in RUN.items() if not k.startswith("checkp")}
    # The rest comes when it is asked for, and nothing was lost there.
    assert content(two.here(url)) == RUN == stored(url)


def test_who_only_reads_sends_only_what_it_has_written(
    url: str, one: Machine, two: Machine, sent: pathlib.Path
) -> None:
    reader = two.here(url, skip=["checkpoints"])
    write(reader, {"evaluations/test.json": "41"})
    # The run goes on in the meantime.
    write(sent, {"starts.jsonl": "first\nsecond\n", "metrics.jsonl": "1\n2\n3\n"})
    one.send(sent)
    two.send(reader, within="evaluations")
    assert stored(url) == {**content(sent), "evaluations/test.json": "41"}


def test_a_store_that_lost_all_is_not_taken_for_a_new_run(
    url: str, one: Machine, sent: pathlib.Path
) -> None:
    store, root = fsspec.core.url_to_fs(url)
    store.rm(root, recursive=True)
    with pytest.raises(remote.RemoteError, match=r"is empty, but its mirror .* is not"):
        one.here(url)
    assert content(sent) == RUN


def test_names_that_lead_out_of_the_mirror_are_not_fetched(one: Machine) -> None:
    store = fsspec.filesystem("memory")
    try:
        for name in ("/b/run/../../../out", "/b/run//tmp/out", "/b/run/x/../../../y"):
            store.store[name] = store.open("/b/run/kept", "wb")
        store.pipe("/b/run/kept", b"k")
        path = one.here("memory://b/run")
        assert content(path) == {"kept": "k"}
        assert [p.name for p in path.parent.iterdir() if p.is_dir()] == [path.name]
    finally:
        store.store.clear()


def test_a_store_that_fails_is_told_with_its_name(
    one: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object, **more: object) -> None:
        raise RuntimeError("quota\nexceeded")

    path = one.here(URL)
    write(path, RUN)
    store, _ = fsspec.core.url_to_fs(URL)
    monkeypatch.setattr(type(store), "put", fails)
    with pytest.raises(remote.RemoteError, match=r"^memory://bucket/run: quota exceed"):
        one.send(path)
    monkeypatch.undo()
    one.send(path)
    assert stored(URL) == RUN
    store.store.clear()
