"""What a call of evaluate scores: splits of the run, and files."""

import pathlib

import pytest

from vaswani_jax.evaluation import scored_texts


def test_splits_and_files_are_scored_in_their_order() -> None:
    values = ["test,valid", "a/news.en,b/news.de", "n=17=x#1,x#2"[2:], "k=a.en,b.de"]
    names = [test_set.name for test_set in scored_texts.parse(values)]
    assert names == ["test", "valid", "news", "17", "k"]
    years = ["news.2014.en.gz,news.2014.de.gz", "news.2015.en,news.2015.de"]
    names = [test_set.name for test_set in scored_texts.parse(years)]
    assert names == ["news.2014", "news.2015"]
    first, second = scored_texts.parse(["n=x=1/a.en,x=2/b.de", "c.en,x=1/c.de"])
    assert first == scored_texts.ScoredText("n", "x=1/a.en", "x=2/b.de")
    assert second == scored_texts.ScoredText("c", "c.en", "x=1/c.de")


def test_files_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    [test_set] = scored_texts.parse(["~/news.en,~/news.de"])
    files = (test_set.name, test_set.source, test_set.references)
    assert files == ("news", "/home/me/news.en", "/home/me/news.de")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["tset"], "--split=tset must be valid, test, or two files"),
        (["a.en"], "--split=a.en must be valid, test, or two files"),
        (["a.en,"], "two files: SOURCE,REFERENCES"),
        (["a,b,c"], "two files: SOURCE,REFERENCES"),
        (
            ["test.en,test.de"],
            "the name 'test' means the run's own text; name this text: --split=NAME=",
        ),
        (["a/b=x,y"], "got 'a/b'; choose another: --split=NAME=x,y"),
        (["valid", "test,valid"], "--split names valid twice"),
    ],
)
def test_other_values_are_refused(values: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        scored_texts.parse(values)


def test_files_are_read_as_all_text_is(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "news.tsv"
    path.write_text("one\teins\ntwo\tzwei\n")
    [test_set] = scored_texts.parse([f"{path}#1,{path}#2"])
    assert test_set.name == "news"
    assert test_set.read() == (["one", "two"], ["eins", "zwei"])


def test_a_missing_reference_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_text("x\ny\n")
    (tmp_path / "b").write_text("x\n")
    [test_set] = scored_texts.parse([f"{tmp_path / 'a'},{tmp_path / 'b'}"])
    with pytest.raises(ValueError, match=r"a has 2 lines, .*b 1: every source line"):
        test_set.read()
