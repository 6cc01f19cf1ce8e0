"""Pairs of text files and of generators, and the records of their text."""

import gzip
import hashlib
import itertools
import os
from types import MappingProxyType

import pyarrow.parquet
import pytest

from tests import settings
from vaswani_jax.data import sources

SPLITS = ["train", "valid", "test"]


def write(path, content):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def text_data(directory, **overrides):
    """Data settings of the text train.en, train.de and so on in a directory."""
    names = {
        f"data.{split}_{side}": f"{split}.{language}"
        for split in SPLITS
        for side, language in (("source", "en"), ("target", "de"))
    }
    values = {"data.source": "text", "data.text_directory": str(directory)}
    return settings.small_settings(**(values | names | overrides)).data


def generated(source, seed, **overrides):
    """Every pair of the generated task, a list for each split."""
    data = settings.small_settings(**({"data.source": source} | overrides)).data
    return {split: list(sources.pairs(data, split, seed=seed)) for split in SPLITS}


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_pairs_are_the_lines_side_by_side(tmp_path, ending):
    write(tmp_path / f"train.en{ending}", b"one\ntwo\n\nfour")
    write(tmp_path / f"train.de{ending}", "eins\r\nzwei\r\n\r\nvier ü\r\n".encode())
    names = {"train_source": f"train.en{ending}", "train_target": f"train.de{ending}"}
    data = text_data(tmp_path, **{f"data.{key}": name for key, name in names.items()})
    pairs = list(sources.pairs(data, "train", seed=1))
    assert pairs == [("one", "eins"), ("two", "zwei"), ("", ""), ("four", "vier ü")]


def test_sides_of_unequal_length_are_refused_with_both_counts(tmp_path):
    source, target = tmp_path / "train.en", tmp_path / "train.de"
    data = text_data(tmp_path)
    for left, right, ends in itertools.product(range(7), range(7), ["", "\n"]):
        write(source, ("\n".join("x" * left) + ends * bool(left)).encode())
        write(target, ("\n".join("y" * right) + ends * bool(right)).encode())
        if left == right:
            assert list(sources.pairs(data, "train", seed=1)) == [("x", "y")] * left
            continue
        with pytest.raises(ValueError) as caught:
            list(sources.pairs(data, "train", seed=1))
        counts = f"{source} has {left}, {target} has {right}"
        assert str(caught.value).endswith(counts)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_missing_file_is_named_with_its_key(tmp_path, split, side):
    for name in ("en", "de"):
        write(tmp_path / f"{split}.{name}", b"a\n")
    missing = tmp_path / f"{split}.{'en' if side == 'source' else 'de'}"
    missing.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        sources.pairs(text_data(tmp_path), split, seed=1)
    assert f"config.data.{split}_{side}" in str(caught.value)
    assert str(missing) in str(caught.value)
    assert f"name it with --config.data.{split}_{side}=NAME" in str(caught.value)
    no_test = "do without: --config.data.test_source= --config.data.test_target="
    assert (no_test in str(caught.value)) == (split == "test")


def test_a_line_without_its_tag_is_named_with_file_and_number(tmp_path):
    write(tmp_path / "train.en", b"<2de> one\n\n<2fr> two\n two\n")
    write(tmp_path / "train.de", b"eins\n\ndeux\nzwei\n")
    data = text_data(tmp_path, **settings.TWO_TARGETS | {"data.source": "text"})
    with pytest.raises(ValueError) as caught:
        sources.count(data, "train", seed=1)
    assert str(caught.value) == (
        f"{tmp_path / 'train.en'}, line 4 must begin with a tag that names the target "
        "language, <2de> or <2fr>, got ' two'"
    )
    write(tmp_path / "train.en", b"<2de> one\n\n<2fr> two\n<2de>two\n")
    assert list(sources.pairs(data, "train", seed=1))[2:] == [
        ("<2fr> two", "deux"),
        ("<2de>two", "zwei"),
    ]


def test_a_directory_is_no_text(tmp_path):
    (tmp_path / "train.en").mkdir()
    write(tmp_path / "train.de", b"a\n")
    with pytest.raises(FileNotFoundError, match=r"config\.data\.train_source"):
        sources.pairs(text_data(tmp_path), "train", seed=1)


def test_pairs_in_several_files_are_located_in_both(tmp_path):
    sizes = {"s1": 2, "s2": 0, "s3": 3}
    for name, size in sizes.items():
        rows = "".join(f"{name} {n}\t{name} {n}\n" for n in range(size))
        write(tmp_path / f"{name}.tsv", rows.encode())
        write(tmp_path / f"{name}.de", rows.encode())
    names = {"data.train_source": "s*.tsv#2", "data.train_target": "s*.de"}
    data = text_data(tmp_path, **names)
    locations = sources.locate(data, "train", {5, 2, 3})
    pairs = list(sources.pairs(data, "train", seed=1))
    for number in (2, 3, 5):
        location = locations.pop(number)
        assert location.source.stem == location.target.stem
        assert (location.source.suffix, location.target.suffix) == (".tsv", ".de")
        assert pairs[number - 1][0] == f"{location.source.stem} {location.line - 1}"
    assert not locations
    names = {"data.train_source": "s3.tsv#2", "data.train_target": "s3.de"}
    one = text_data(tmp_path, **names)
    assert sources.locate(one, "train", {1}) == {}


def test_shards_are_paired_in_their_order_and_errors_name_them(tmp_path):
    (tmp_path / "shards").mkdir()
    for number in (10, 9):
        write(tmp_path / f"shards/{number}.en", f"en {number}\n".encode())
        write(tmp_path / f"shards/{number}.de.gz", f"de {number}\n".encode())
    data = text_data(
        tmp_path,
        **{"data.train_source": "shards/*.en", "data.train_target": "shards/*.de.gz"},
    )
    pairs = list(sources.pairs(data, "train", seed=1))
    assert pairs == [("en 9", "de 9"), ("en 10", "de 10")]
    [sampled] = sources.sample(data, "train", seed=1, size=1, total=2)
    assert (sources.count(data, "train", seed=1), sampled) == (2, pairs[0])
    # A line moves from the second file to the first: the sums are equal.
    write(tmp_path / "shards/9.en", b"a\nb\n")
    write(tmp_path / "shards/10.en", b"")
    with pytest.raises(ValueError) as caught:
        sources.count(data, "train", seed=1)
    counts = f"{tmp_path}/shards/9.en has 2, {tmp_path}/shards/9.de.gz has 1"
    assert str(caught.value).endswith(counts)
    (tmp_path / "shards/10.en").unlink()
    with pytest.raises(ValueError) as caught:
        sources.pairs(data, "train", seed=1)
    assert "shards/*.en has 1, shards/*.de.gz has 2" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (["s4.en", "s5.en", "s6.en"], ["s4.de", "s6.de", "s55.de"], "s5.en with s6.de"),
        (["s51.en", "s52.en"], ["s1.de", "s2.de"], "s51.en with s1.de"),
        (["en-1.txt", "en-10.txt"], ["de-01.txt", "de-10.txt"], ""),
        (["1/x.en", "2/x.en"], ["1/x.de", "3/x.de"], "2/x.en with 3/x.de"),
        (["news.en", "crawls.en"], ["news.de", "crawls.de"], ""),
        (["all.en"], ["text.de"], ""),
    ],
)
def test_shards_whose_names_do_not_belong_together_are_named(
    source, target, message, tmp_path, caplog
):
    for folder, names in (("a", source), ("b", target)):
        for name in names:
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            write(tmp_path / folder / name, b"x\n")
    names = {"data.train_source": "a/**/*.*", "data.train_target": "b/**/*.*"}
    data = text_data(tmp_path, **names)
    assert sources.count(data, "train", seed=0) == len(source)
    warnings = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == bool(message)
    if message:
        assert message in warnings[0].replace(f"{tmp_path}/a/", "").replace(
            f"{tmp_path}/b/", ""
        )


def test_a_line_without_its_tag_is_named_by_its_shard(tmp_path):
    write(tmp_path / "1.tsv", b"eins\t<2de> one\n")
    write(tmp_path / "2.tsv", b"zwei\t<2de> two\ndrei\tthree\n")
    names = {"data.train_source": "*.tsv#2", "data.train_target": "*.tsv#1"}
    data = text_data(
        tmp_path, **settings.TWO_TARGETS | {"data.source": "text"}, **names
    )
    with pytest.raises(ValueError, match=r"2\.tsv, line 2 must begin with a tag"):
        sources.count(data, "train", seed=1)


def test_a_missing_column_is_named_with_its_key(tmp_path):
    write(tmp_path / "train.tsv", b"one\teins\n")
    data = text_data(tmp_path, **{"data.train_source": "train.tsv#en"})
    with pytest.raises(ValueError) as caught:
        sources.pairs(data, "train", seed=1)
    start = f"config.data.train_source: {tmp_path}/train.tsv: the column of tab-separa"
    assert str(caught.value).startswith(start)
    write(tmp_path / "train.en", b"one\n")
    table = pyarrow.table({"en": ["one"], "fr": ["un"]})
    pyarrow.parquet.write_table(table, tmp_path / "train.parquet")
    data = text_data(tmp_path, **{"data.train_target": "train.parquet#de"})
    with pytest.raises(ValueError) as caught:
        sources.pairs(data, "train", seed=1)
    assert str(caught.value) == (
        f"config.data.train_target: {tmp_path}/train.parquet: no column de; it has en, "
        "fr"
    )


def test_the_record_of_columns_and_shards_changes_with_each_of_them(tmp_path):
    for number in (1, 2):
        path = write(tmp_path / f"{number}.tsv", b"one\teins\n")
        os.utime(path, ns=(10**18, 10**18))

    def record(source, target="*.tsv#2", previous=MappingProxyType({})):
        names = {"data.train_source": source, "data.train_target": target}
        data = text_data(tmp_path, **names)
        return sources.text_record(data, "train", seed=1, previous=previous)

    first = record("*.tsv#1")
    digests = {first["source"]["sha256"], first["target"]["sha256"]}
    assert len(digests) == 2, "the columns differ"
    assert [file["bytes"] for file in first["source"]["files"]] == [9, 9]
    assert first["source"]["files"] == first["target"]["files"]
    assert record("1.tsv#1", "1.tsv#2")["source"]["sha256"] not in digests
    # Known sizes and times are not read again; a changed time is.
    write(tmp_path / "2.tsv", b"two\tzwei\n")
    os.utime(write(tmp_path / "2.tsv", b"1.e\teins\n"), ns=(10**18, 10**18))
    assert record("*.tsv#1", previous=first) == first
    os.utime(tmp_path / "2.tsv", ns=(10**18, 10**18 + 1))
    later = record("*.tsv#1", previous=first)
    assert later["source"]["sha256"] not in digests
    assert later["source"]["files"][0] == first["source"]["files"][0]


def test_a_sample_of_no_pairs_is_empty():
    pairs = [("a", "b"), ("c", "d")]
    assert list(sources.spread(iter(pairs), size=0, total=2)) == []


def test_there_is_a_test_split_if_it_is_named_or_generated(tmp_path):
    without = {"data.test_source": "", "data.test_target": ""}
    assert sources.splits(text_data(tmp_path, **without)) == ["train", "valid"]
    assert sources.splits(text_data(tmp_path)) == SPLITS
    copy_task = settings.small_settings(**{"data.source": "copy"}).data
    assert sources.splits(copy_task) == SPLITS


@pytest.mark.parametrize("source", ["copy", "reverse"])
def test_generated_targets_are_the_copied_or_reversed_words(source):
    for source_line, target_line in itertools.chain(*generated(source, 1).values()):
        words = target_line.split(" ")
        if source == "reverse":
            words.reverse()
        assert words == source_line.split(" ")
        assert 4 <= len(words) <= 12
        assert all(len(word) == 1 and "a" <= word <= "z" for word in words)


@pytest.mark.parametrize("source", ["copy", "reverse"])
def test_generated_pairs_are_distinct_and_as_many_as_asked(source):
    sizes = {"train": 211, "valid": 31, "test": 17}
    overrides = {f"data.num_{split}": size for split, size in sizes.items()}
    splits = generated(source, 5, **overrides)
    assert {split: len(pairs) for split, pairs in splits.items()} == sizes
    # Distinct over all splits, so that nothing held out is trained on.
    sources_of_all = {source for pairs in splits.values() for source, _ in pairs}
    assert len(sources_of_all) == sum(sizes.values())


@pytest.mark.parametrize("source", ["copy", "reverse"])
def test_generated_text_depends_on_the_seed_alone(source):
    first, second, repeated = (generated(source, seed) for seed in (3, 4, 3))
    assert first == repeated
    assert all(first[split] != second[split] for split in SPLITS)


def test_the_record_of_a_text_is_the_digest_of_its_files(tmp_path):
    data = text_data(tmp_path)
    contents = {"source": b"one\ntwo\n", "target": b"eins\nzwei\n"}
    write(tmp_path / "train.en", contents["source"])
    write(tmp_path / "train.de", contents["target"])
    record = sources.text_record(data, "train", seed=1, previous={})
    for side, content in contents.items():
        assert record[side]["sha256"] == hashlib.sha256(content).hexdigest()


def test_the_record_notices_every_change_of_size_or_time(tmp_path):
    data = text_data(tmp_path)
    for name, content in (("train.en", b"one\n"), ("train.de", b"eins\n")):
        os.utime(write(tmp_path / name, content), ns=(10**18, 10**18))
    recorded = sources.text_record(data, "train", seed=1, previous={})
    same = sources.text_record(data, "train", seed=1, previous=recorded)
    os.utime(write(tmp_path / "train.en", b"two\n"), ns=(10**18, 10**18 + 1))
    later = sources.text_record(data, "train", seed=1, previous=recorded)
    os.utime(write(tmp_path / "train.en", b"three\n"), ns=(10**18, 10**18))
    longer = sources.text_record(data, "train", seed=1, previous=recorded)
    assert same == recorded
    digests = {record["source"]["sha256"] for record in (recorded, later, longer)}
    assert len(digests) == 3
    assert {later["target"]["sha256"], longer["target"]["sha256"]} == {
        recorded["target"]["sha256"]
    }


def test_a_file_of_known_size_and_time_is_not_read_again(tmp_path):
    # Digests of tens of gigabytes would be minutes at every start.
    data = text_data(tmp_path)
    for name in ("train.en", "train.de"):
        os.utime(write(tmp_path / name, b"one\n"), ns=(10**18, 10**18))
    recorded = sources.text_record(data, "train", seed=1, previous={})
    os.utime(write(tmp_path / "train.en", b"two\n"), ns=(10**18, 10**18))
    assert sources.text_record(data, "train", seed=1, previous=recorded) == recorded


def test_the_record_of_generated_text_names_task_and_seed():
    def record(source, seed):
        data = settings.small_settings(**{"data.source": source}).data
        return sources.text_record(data, "train", seed=seed, previous={})

    assert record("copy", 1) == record("copy", 1)
    assert record("copy", 1) != record("copy", 2)
    assert record("copy", 1) != record("reverse", 1)


def test_a_file_elsewhere_of_equal_size_and_time_is_read(tmp_path):
    for folder, content in (("a", b"one\n"), ("b", b"two\n"), ("c", b"one\n")):
        (tmp_path / folder).mkdir()
        for name in ("train.en", "train.de"):
            os.utime(write(tmp_path / folder / name, content), ns=(10**18, 10**18))

    def record(folder, previous):
        data = text_data(tmp_path / folder)
        return sources.text_record(data, "train", seed=1, previous=previous)

    first = record("a", {})
    identities = [
        sources.content_identity(record(folder, first)) for folder in ("a", "b", "c")
    ]
    assert identities[0] == identities[2] != identities[1]
    # Older records have no path; their files are not read again.
    for entry in first.values():
        del entry["path"]
        entry["sha256"] = "digest"
    assert record("a", first) == first
