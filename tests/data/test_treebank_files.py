"""Entries of a treebank as a user lays it out: each finds its files or says why."""

import pathlib

import pytest

from vaswani_jax.data import treebank_files

FILES = """
wsj/02/wsj_0201.mrg wsj/02/wsj_0202.mrg.gz wsj/02/README wsj/02/._wsj_0201.mrg
wsj/03/wsj_0301.MRG wsj/04/a/wsj_0401.parse wsj/22/wsj_2201.mrg wsj/23/notes.txt
gum/dev.trees.txt gum/train.tokens.txt
craft/b.tree craft/a.tree craft/c.ptb craft/c.xml craft/more/c.trees
odd[1]/x.mrg
""".split()
LISTS = {
    "ids.txt": b"b\r\n\n a \n",
    "twice.txt": b"a\nc\n",
    "unknown.txt": b"a\n\nz\n",
    "empty.txt": b"\n",
    "latin1.txt": b"a\n\xe9\n",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("tree[bank]")
    for name in FILES:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("(NN a)")
    for name, lines in LISTS.items():
        (directory / name).write_bytes(lines)
    (directory / "links").mkdir()
    (directory / "links/22").symlink_to(directory / "wsj/22")
    return directory


@pytest.mark.parametrize(
    ("entries", "files"),
    [
        ("", ""),
        (" ", ""),
        ("gum/dev.trees.txt", "gum/dev.trees.txt"),
        ("wsj/02", "wsj/02/wsj_0201.mrg wsj/02/wsj_0202.mrg.gz"),
        ("wsj/02/", "wsj/02/wsj_0201.mrg wsj/02/wsj_0202.mrg.gz"),
        (
            "wsj/02-04",
            "wsj/02/wsj_0201.mrg wsj/02/wsj_0202.mrg.gz wsj/03/wsj_0301.MRG"
            " wsj/04/a/wsj_0401.parse",
        ),
        ("wsj/03-03", "wsj/03/wsj_0301.MRG"),
        ("wsj/0[34]", "wsj/03/wsj_0301.MRG wsj/04/a/wsj_0401.parse"),
        ("wsj/*/wsj_??01.mrg", "wsj/02/wsj_0201.mrg wsj/22/wsj_2201.mrg"),
        ("gum/*.trees.txt", "gum/dev.trees.txt"),
        ("craft/**/*.tree*", "craft/a.tree craft/b.tree craft/more/c.trees"),
        ("craft", "craft/a.tree craft/b.tree craft/c.ptb craft/more/c.trees"),
        ("@ids.txt", "craft/b.tree craft/a.tree"),
        ("links", "links/22/wsj_2201.mrg"),
        ("odd[1]/x.mrg", "odd[1]/x.mrg"),
        ("odd[1]", "odd[1]/x.mrg"),
        (
            "wsj/22, gum/dev.trees.txt ,@ids.txt",
            "wsj/22/wsj_2201.mrg gum/dev.trees.txt craft/b.tree craft/a.tree",
        ),
    ],
)
def test_entries_have_their_files(
    directory: pathlib.Path, entries: str, files: str
) -> None:
    paths = treebank_files.find_files(directory, entries, key="train_trees")
    assert [path.relative_to(directory).as_posix() for path in paths] == files.split()


def test_an_entry_may_be_absolute(directory: pathlib.Path) -> None:
    entry = str(directory / "wsj" / "22")
    [path] = treebank_files.find_files(pathlib.Path("x"), entry, key="train_trees")
    assert path == directory / "wsj/22/wsj_2201.mrg"


def test_sections_may_lie_in_the_directory_itself(directory: pathlib.Path) -> None:
    paths = treebank_files.find_files(directory / "wsj", "02-03", key="train_trees")
    assert [path.name for path in paths] == [
        "wsj_0201.mrg",
        "wsj_0202.mrg.gz",
        "wsj_0301.MRG",
    ]


@pytest.mark.parametrize(
    ("entries", "entry", "rule"),
    [
        ("x.mrg", "x.mrg", "no file or directory matches DIR/x.mrg"),
        ("wsj/22,x*", "x*", "no file or directory matches DIR/x*"),
        (
            "wsj/23",
            "wsj/23",
            "no file below DIR/wsj/23 is one of *.mrg, *.ptb, *.tree,",
        ),
        ("wsj/02-22", "wsj/02-22", "there is no directory DIR/wsj/05"),
        ("wsj/22-23", "wsj/22-23", "no file below DIR/wsj/23 is one of *.mrg,"),
        ("wsj/2[3]", "wsj/2[3]", "no file below DIR/wsj/23 is one of *.mrg,"),
        ("@no.txt", "@no.txt", "there is no list of names DIR/no.txt"),
        (
            "@unknown.txt",
            "@unknown.txt",
            "DIR/unknown.txt, line 3: no file below DIR is one of z.mrg, z.ptb,",
        ),
        (
            "@empty.txt",
            "@empty.txt",
            "DIR/empty.txt is empty; list one file name per line",
        ),
    ],
)
def test_an_entry_without_a_file_is_named(
    directory: pathlib.Path, entries: str, entry: str, rule: str
) -> None:
    with pytest.raises(FileNotFoundError) as error:
        treebank_files.find_files(directory, entries, key="train_trees")
    message = str(error.value).replace(str(directory), "DIR")
    assert message.startswith(f"config.data.train_trees: {entry!r}: {rule}")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("wsj/22,,gum", "'': an entry must have a name"),
        ("wsj/22,", "'': an entry must have a name"),
        (
            "wsj/21-02",
            "'wsj/21-02': the range is descending; write the lower section first, for "
            "example 02-21",
        ),
        (
            "@twice.txt",
            "'@twice.txt': DIR/twice.txt, line 2: two files are named c: "
            "DIR/craft/c.ptb and DIR/craft/more/c.trees",
        ),
        ("@latin1.txt", "'@latin1.txt': DIR/latin1.txt, line 2: not UTF-8 ("),
        (
            "wsj/02-03, wsj/03",
            "'wsj/03' and 'wsj/02-03' have the same file DIR/wsj/03/wsj_0301.MRG; "
            "name it once",
        ),
    ],
)
def test_an_entry_that_means_no_files_is_refused(
    directory: pathlib.Path, entries: str, message: str
) -> None:
    with pytest.raises(ValueError, match=r"^config\.data\.test_trees: ") as error:
        treebank_files.find_files(directory, entries, key="test_trees")
    text = str(error.value).replace(str(directory), "DIR")
    assert text.startswith(f"config.data.test_trees: {message}")


@pytest.fixture
def annex(tmp_path: pathlib.Path) -> pathlib.Path:
    """A treebank of which one file was not fetched."""
    (tmp_path / "wsj").mkdir()
    (tmp_path / "wsj/1.mrg").write_text("(NN a)")
    (tmp_path / "wsj/2.mrg").symlink_to("../objects/2.mrg")
    (tmp_path / "one.txt").write_text("1\n")
    (tmp_path / "both.txt").write_text("1\n2\n")
    return tmp_path


@pytest.mark.parametrize(
    "entries", ["wsj", "wsj/*.mrg", "[w]sj", "wsj/2.mrg", "@both.txt"]
)
def test_a_link_to_a_missing_file_is_named(annex: pathlib.Path, entries: str) -> None:
    with pytest.raises(FileNotFoundError) as error:
        treebank_files.find_files(annex, entries, key="train_trees")
    assert str(error.value) == (
        f"config.data.train_trees: {entries!r}: no file {annex}/wsj/2.mrg: it is a "
        "link to a missing file"
    )


def test_a_list_needs_no_files_but_its_own(annex: pathlib.Path) -> None:
    paths = treebank_files.find_files(annex, "@one.txt", key="train_trees")
    assert paths == [annex / "wsj/1.mrg"]


@pytest.mark.parametrize(
    ("entries", "num_trees", "warning"),
    [
        ("02-21", 39_832, None),
        ("22", 1_700, None),
        (" wsj/23 ", 2_416, None),
        ("23", 2_400, "section 23 has 2,416 trees in LDC99T42, here 2,400"),
        ("wsj/22", 1_701, "section 22 has 1,700 trees in LDC99T42, here 1,701"),
        ("02-21", 1, "sections 02-21 have 39,832 trees in LDC99T42, here 1"),
        ("gum/dev.trees.txt", 5, None),
        ("22,23", 5, None),
        ("wsj/22,wsj/23", 5, None),
        ("", 0, None),
    ],
)
def test_sections_of_the_wall_street_journal_have_known_numbers(
    entries: str, num_trees: int, warning: str | None
) -> None:
    assert treebank_files.describe_wsj_mismatch(entries, num_trees) == warning
