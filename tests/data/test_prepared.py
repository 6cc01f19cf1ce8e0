"""Data prepared once: never silently stale, and not lost when preparing fails."""

import contextlib
import errno
import multiprocessing
import os
import shutil

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.core import files
from vaswani_jax.data import (
    manifest,
    prepare,
    prepared,
    run_vocabulary,
    text_files,
    token_files,
)
from vaswani_jax.data.vocabulary import Vocabulary


def test_prepared_data_is_not_prepared_twice(text, monkeypatch, caplog):
    first = small_text.prepare(text)
    contents = small_text.contents(first.directory)
    monkeypatch.setattr(run_vocabulary, "learn_subwords", small_text.forbidden)
    monkeypatch.setattr(token_files, "open_writer", small_text.forbidden)
    caplog.clear()
    second = small_text.prepare(text)
    assert small_text.contents(second.directory) == contents
    assert second.counts == first.counts
    assert second.vocabulary.fingerprint == first.vocabulary.fingerprint
    assert caplog.messages == []
    assert prepared.open_prepared(first.directory).counts == first.counts


def test_the_data_is_described_in_words(text):
    # `small_text` counts what its lines leave out.
    assert small_text.prepare(text).describe() == (
        "vocabulary of 40 subwords; train: 115 pairs (5 left out); valid: 6 pairs (3 "
        "left out); test: 3 pairs (1 left out)"
    )


def test_settings_that_do_not_shape_the_data_may_change(text):
    files_before = small_text.contents(small_text.prepare(text).directory)
    changed = {"data.source_tokens_per_batch": 700, "data.num_buckets": 4, "seed": 9}
    assert (
        small_text.contents(small_text.prepare(text, **changed).directory)
        == files_before
    )


def test_prepared_data_serves_when_its_text_is_gone(text, caplog):
    files_before = small_text.contents(small_text.prepare(text).directory)
    shutil.rmtree(text)
    data = small_text.prepare(text)
    assert small_text.contents(data.directory) == files_before
    assert data.text("test")[0][1] == small_text.STRANGE[1]
    assert any(
        line.startswith("note:") and "train.en" in line for line in caplog.messages
    )


def test_prepared_data_serves_when_its_text_is_gone_from_a_store(
    text, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    url = {"data.text_directory": f"file://{text}"}
    files_before = small_text.contents(small_text.prepare(text, **url).directory)
    shutil.rmtree(text)
    data = small_text.prepare(text, **url)
    assert small_text.contents(data.directory) == files_before
    assert any(
        line.startswith("note: config.data.text_directory=file://")
        for line in caplog.messages
    )


def test_missing_text_is_not_found_if_nothing_is_prepared(text):
    (text / "valid.de").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.data\.valid_target"):
        small_text.prepare(text)
    with pytest.raises(FileNotFoundError, match="no prepared data in"):
        prepared.open_prepared(text.with_name("data"))


def test_rebuilding_takes_the_changed_text_and_settings(text):
    small_text.prepare(text)
    small_text.write_lines(text / "valid.en", ["ba ko"] * small_text.SIZES["valid"])
    rebuilt = small_text.prepare(text, rebuild=True, **{"data.vocab_size": 41})
    assert rebuilt.vocabulary.size == 41
    assert rebuilt.text("valid")[0] == ["ba ko"] * small_text.SIZES["valid"]
    # What is there is what was asked for, so it opens.
    assert small_text.prepare(text, **{"data.vocab_size": 41}).counts == rebuilt.counts
    names = sorted(entry.name for entry in text.parent.iterdir())
    assert names == [".data.vaswani_jax_lock", "data", "text"]


def test_rebuilding_keeps_the_vocabulary_that_checkpoints_need(text):
    data = small_text.prepare(text)
    files = small_text.contents(data.directory)
    required = data.vocabulary.fingerprint

    def rebuild(**overrides):
        return small_text.prepare(
            text, rebuild=True, required_fingerprint=lambda: required, **overrides
        )

    for changes in ({"data.vocab_size": 41}, {"data.max_length": 20}):
        with pytest.raises(ValueError, match="The run has checkpoints that need this"):
            rebuild(**changes)
        assert small_text.contents(data.directory) == files
    # A held-out text may change, and token files may be damaged.
    small_text.write_lines(text / "valid.en", ["ba ko"] * small_text.SIZES["valid"])
    [path] = data.directory.glob("train.source.*int*")
    tokens = path.read_bytes()
    path.write_bytes(b"damaged")
    rebuilt = rebuild()
    assert rebuilt.vocabulary.fingerprint == required
    assert rebuilt.text("valid")[0] == ["ba ko"] * small_text.SIZES["valid"]
    assert path.read_bytes() == tokens
    # Another training text does not replace that of the checkpoints.
    small_text.write_lines(text / "train.en", ["ba ko"] * small_text.SIZES["train"])
    files = small_text.contents(data.directory)
    with pytest.raises(ValueError, match="the text of 'train' has changed"):
        rebuild()
    assert small_text.contents(data.directory) == files
    shutil.rmtree(data.directory)
    with pytest.raises(ValueError, match=f"trained with the vocabulary {required}"):
        rebuild()


def test_a_run_takes_back_its_directory_from_data_of_another_run(text):
    required = small_text.prepare(text).vocabulary.fingerprint
    other = small_text.prepare(text, rebuild=True, **{"data.vocab_size": 41})
    options = {"required_fingerprint": lambda: required}
    with pytest.raises(ValueError) as caught:
        small_text.prepare(text, **options)
    assert str(caught.value) == (
        f"{other.directory} has the data of another run (vocabulary "
        f"{other.vocabulary.fingerprint}; the checkpoints need {required}): prepare it "
        "again (`vaswani train` with --rebuild_data)"
    )
    rebuilt = small_text.prepare(text, rebuild=True, **options)
    assert rebuilt.vocabulary.fingerprint == required


@pytest.mark.parametrize("rebuild", [False, True])
def test_shared_data_of_another_run_is_left_alone(text, rebuild):
    shared = {"data.directory": str(text.with_name("data"))}
    required = small_text.prepare(text, **shared).vocabulary.fingerprint
    other = small_text.prepare(text, rebuild=True, **shared, **{"data.vocab_size": 41})
    files_before = small_text.contents(other.directory)
    advice = r"has the data of another run .*: name another config\.data\.directory$"
    with pytest.raises(ValueError, match=advice):
        small_text.prepare(
            text, rebuild=rebuild, required_fingerprint=lambda: required, **shared
        )
    assert small_text.contents(other.directory) == files_before


def test_rebuilding_takes_the_vocabulary_that_another_model_gave(text):
    vocabulary = settings.letters_vocabulary()
    options = {"required_fingerprint": lambda: vocabulary.fingerprint}
    changes = {"data.vocab_size": vocabulary.size, "data.byte_fallback": True}
    all_settings = small_text.settings_of(text, **changes)
    data = prepared.open_or_prepare(
        all_settings,
        text.with_name("data"),
        rebuild=False,
        initial_vocabulary=vocabulary,
        **options,
    )
    assert data.vocabulary.fingerprint == vocabulary.fingerprint
    rebuilt = small_text.prepare(text, rebuild=True, **options, **changes)
    assert rebuilt.vocabulary.fingerprint == vocabulary.fingerprint


def test_opening_data_asks_no_checkpoint_for_its_vocabulary(text):
    data = small_text.prepare(text)
    opened = small_text.prepare(text, required_fingerprint=small_text.forbidden)
    assert opened.vocabulary.fingerprint == data.vocabulary.fingerprint


def prepare_and_report(text, fingerprints):
    fingerprints.put(small_text.prepare(text).vocabulary.fingerprint)


@pytest.mark.filterwarnings("ignore:.*fork")
def test_processes_that_prepare_at_once_end_with_the_same_data(text):
    # Forked: to prepare needs no JAX, whose threads a fork lacks.
    context = multiprocessing.get_context("fork")
    fingerprints = context.SimpleQueue()
    both = [
        context.Process(
            target=prepare_and_report, args=(text, fingerprints), daemon=True
        )
        for _ in range(2)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(timeout=300)
        assert process.exitcode == 0
    assert {fingerprints.get() for _ in both} == {
        small_text.prepare(text).vocabulary.fingerprint
    }


@pytest.mark.parametrize("rebuild", [True, False])
def test_a_directory_of_something_else_is_left_alone(text, rebuild):
    foreign = text.with_name("data")
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    files_before = small_text.contents(foreign)
    with pytest.raises(ValueError, match="holds no prepared data"):
        small_text.prepare(text, rebuild=rebuild)
    assert small_text.contents(foreign) == files_before


def test_an_empty_directory_is_filled(text):
    text.with_name("data").mkdir()
    assert small_text.prepare(text).counts["train"]["kept"] == 115


@pytest.mark.parametrize("name", ["/", "file"])
def test_what_is_no_directory_for_data_is_refused(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    data = settings.small_settings(**{"data.directory": name}).data
    with pytest.raises(ValueError, match=rf"config\.data\.directory={name} must be"):
        prepared.data_directory(data, tmp_path)


def test_a_directory_without_a_manifest_is_no_prepared_data(text):
    named = settings.small_settings().data
    workdir = text.parent
    assert prepared.find_directory(named, workdir) is None
    (workdir / "data").mkdir()
    assert prepared.find_directory(named, workdir) is None
    (workdir / "data").rmdir()
    directory = small_text.prepare(text).directory
    assert prepared.find_directory(named, workdir) == directory == workdir / "data"
    model = workdir / "model.safetensors"
    assert prepared.find_directory(named, model) is None
    named = settings.small_settings(**{"data.directory": str(directory)}).data
    assert prepared.find_directory(named, model) == directory


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (run_vocabulary, "learn_subwords"),
        (Vocabulary, "save"),
        (text_files, "write_lines"),
        (token_files.TokenWriter, "write"),
        (manifest.json, "dumps"),
        (os, "rename"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_crash_leaves_the_earlier_data_or_none_and_the_next_call_succeeds(
    text, owner, name, monkeypatch
):
    directory = text.with_name("data")

    def crash(**options):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(owner, name, full_disk)
            small_text.prepare(text, **options)

    crash()
    with pytest.raises(FileNotFoundError):
        prepared.open_prepared(directory)
    assert small_text.prepare(text).counts["train"]["kept"] == 115
    files_before = small_text.contents(directory)
    larger = {"rebuild": True, "data.vocab_size": 41}
    crash(**larger)
    assert small_text.contents(directory) == files_before
    assert small_text.prepare(text).vocabulary.size == 40
    assert small_text.prepare(text, **larger).vocabulary.size == 41
    names = sorted(entry.name for entry in text.parent.iterdir())
    assert names == [".data.vaswani_jax_lock", "data", "text"]


def test_files_of_a_killed_preparation_do_not_get_into_the_data(text):
    expected = set(small_text.contents(small_text.prepare(text).directory))
    shutil.rmtree(text.with_name("data"))
    unfinished = text.with_name(".data.vaswani_jax_unfinished")
    unfinished.mkdir()
    (unfinished / "train.source.int32").write_bytes(b"stale")
    data = small_text.prepare(text)
    assert set(small_text.contents(data.directory)) == expected
    assert len(data.token_pairs("train").source) == 115


def test_a_kill_between_the_two_renames_loses_no_data(text, monkeypatch):
    files_before = small_text.contents(small_text.prepare(text).directory)
    rename, calls = os.rename, []

    def dies_at_the_second(old, new):
        calls.append(new)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(old, new)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "rename", dies_at_the_second)
        small_text.prepare(text, rebuild=True)
    # Nothing could be prepared again: the text is gone.
    shutil.rmtree(text)
    data = small_text.prepare(text)
    assert {
        path: old for path, (old, _) in small_text.contents(data.directory).items()
    } == {path: old for path, (old, _) in files_before.items()}


def test_rebuilding_removes_no_file_of_another_kind(text):
    directory = small_text.prepare(text).directory
    (directory / "thesis.tex").write_text("mine")
    files_before = small_text.contents(directory)
    with pytest.raises(ValueError, match=r"no prepared data \(thesis\.tex\)"):
        small_text.prepare(text, rebuild=True)
    assert small_text.contents(directory) == files_before


def test_a_manifest_of_another_program_is_left_alone(text):
    foreign = text.with_name("data")
    foreign.mkdir()
    (foreign / "manifest.json").write_text('{"name": "app"}')
    (foreign / "index.html").write_text("mine")
    files_before = small_text.contents(foreign)
    with pytest.raises(ValueError, match=r"index\.html"):
        small_text.prepare(text, rebuild=True)
    assert small_text.contents(foreign) == files_before


def test_a_link_to_a_directory_stays_one(text, tmp_path):
    large = tmp_path / "large"
    large.mkdir()
    text.with_name("data").symlink_to(large)
    for rebuild in (False, False, True):
        small_text.prepare(text, rebuild=rebuild)
        assert text.with_name("data").is_symlink()
        assert (large / "manifest.json").exists()


def test_prepared_data_that_cannot_be_written_can_be_read(text, monkeypatch):
    data = small_text.prepare(text)

    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files, "locked", refuse)
    assert small_text.prepare(text).counts == data.counts
    with pytest.raises(OSError, match="Read-only"):
        small_text.prepare(text, rebuild=True)
    shutil.rmtree(data.directory)
    with pytest.raises(OSError, match="Read-only"):
        small_text.prepare(text)


@pytest.mark.parametrize(
    ("changes", "depends"),
    [
        ({}, False),
        ({"data.subword_dropout": 0.5, "data.subword_samples": 2}, True),
        ({"data.source": "copy"}, True),
        (
            {
                "data.corpora": [
                    {
                        "name": "a",
                        "source": "train.en",
                        "target": "train.de",
                        "noise_upper": 0.5,
                    }
                ],
                **{"data.vocab_size": 300, "data.byte_fallback": True},
                "data.max_length": 100,
            },
            True,
        ),
    ],
    ids=["text", "dropout", "generated", "noise"],
)
def test_data_depends_on_the_seed_or_is_shared(text, tmp_path, changes, depends):
    of_seeds = [small_text.settings_of(text, seed=seed, **changes) for seed in (1, 2)]
    first, second = (
        small_text.sentences(
            prepared.open_or_prepare(each, tmp_path / f"{each.seed}", rebuild=False)
            .token_pairs("train")
            .source
        )
        for each in of_seeds
    )
    assert (first != second) == depends
    assert prepared.depends_on_seed(of_seeds[0].data) == depends
    refused = pytest.raises(ValueError, match=r"config\.seed is 2, was 1")
    with refused if depends else contextlib.nullcontext():
        prepared.open_or_prepare(of_seeds[1], tmp_path / "1", rebuild=False)


def test_shared_data_is_opened_as_if_it_was_prepared(text, tmp_path, monkeypatch):
    first = small_text.prepare(text)
    monkeypatch.setattr(prepare, "prepare", small_text.forbidden)
    prepared.link_data(first.directory, tmp_path / "shared")
    second = prepared.open_or_prepare(
        small_text.settings_of(text, seed=5), tmp_path / "shared", rebuild=False
    )
    assert second.manifest == first.manifest
    assert small_text.contents(second.directory) == small_text.contents(first.directory)
    # What is there stays; nothing gives nothing.
    (tmp_path / "other").mkdir()
    prepared.link_data(first.directory, tmp_path / "other")
    prepared.link_data(tmp_path / "other", tmp_path / "none")
    assert not (tmp_path / "none").exists() and not list((tmp_path / "other").iterdir())


def test_data_is_copied_where_there_are_no_links(text, tmp_path, monkeypatch):
    def no_link(*names):
        raise OSError(errno.EPERM, "no links")

    first = small_text.prepare(text)
    monkeypatch.setattr(os, "link", no_link)
    prepared.link_data(first.directory, tmp_path / "shared")
    assert prepared.open_prepared(tmp_path / "shared").manifest == first.manifest


@pytest.mark.parametrize("source", ["text", "reverse", "cldr"])
def test_data_of_another_source_is_refused_with_the_source_alone(text, source):
    """Records of text have files, those of generated text numbers."""
    other = "reverse" if source == "text" else "text"
    if source == "cldr":
        pytest.importorskip("babel")
    generated = {"data.source": other}
    data = small_text.prepare(text, **generated)
    reason = small_text.refusal(text, **{"data.source": source})
    assert f"data.source is {source!r}, was {other!r}" in reason
    for word in ("seed", "generator", "has changed"):
        assert word not in reason
    with pytest.raises(ValueError, match=r"data\.source"):
        small_text.prepare(
            text,
            rebuild=True,
            required_fingerprint=lambda: data.vocabulary.fingerprint,
            **{"data.source": source},
        )


def test_trees_that_have_moved_are_the_text_of_the_checkpoints(tmp_path):
    trees = {"02/a.mrg": "(S (NN Bread) (VBZ is))", "03/b.mrg": "(S (UH No))"}
    trees["22/c.mrg"] = "(S (UH Oh))"
    for name, tree in trees.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(tree + "\n")
    overrides = settings.TREEBANK | {
        "data.text_directory": str(tmp_path),
        "data.train_trees": "02-03",
        "data.vocab_size": 24,
        "data.valid_trees": "22",
        "data.test_trees": "",
    }

    def prepare(**changes):
        return prepared.open_or_prepare(
            settings.small_settings(**overrides | changes),
            tmp_path / "data",
            rebuild=bool(changes),
            required_fingerprint=lambda: first.vocabulary.fingerprint,
        )

    first = prepared.open_or_prepare(
        settings.small_settings(**overrides), tmp_path / "data", rebuild=False
    )
    (tmp_path / "wsj").mkdir()
    for name in ("02", "03"):
        (tmp_path / name).rename(tmp_path / "wsj" / name)
    moved = prepare(**{"data.train_trees": "wsj/02,wsj/03"})
    fingerprint = first.training_text_fingerprint()
    assert moved.training_text_fingerprint() == fingerprint
    # Not so if their text has changed.
    (tmp_path / "wsj/03/b.mrg").write_text("(S (UH Yes))\n")
    with pytest.raises(ValueError, match="the text of 'train' has changed"):
        prepare(**{"data.train_trees": "wsj/02,wsj/03"})
