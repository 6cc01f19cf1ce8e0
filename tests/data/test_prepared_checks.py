"""Prepared data beside what settings name: what differs is named, and refused."""

import itertools
import os
import shutil

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.data import prepared, training_text


@pytest.mark.parametrize("split", small_text.SIZES)
@pytest.mark.parametrize("ending", ["en", "de"])
def test_changed_text_is_refused_with_its_split(text, split, ending):
    small_text.prepare(text)
    path = text / f"{split}.{ending}"
    lines = small_text.read_lines(path)
    small_text.write_lines(path, [*lines[:-1], lines[-1][::-1] + "."])
    assert f"the text of '{split}' has changed" in small_text.refusal(text)


def test_a_missing_corpus_does_not_hide_a_changed_one(text, caplog):
    for name, side in itertools.product(("news", "crawl"), ("en", "de")):
        shutil.copy(text / f"train.{side}", text / f"{name}.{side}")
    corpora = [
        {"name": name, "source": f"{name}.en", "target": f"{name}.de"}
        for name in ("news", "crawl")
    ]
    small_text.prepare(text, **{"data.corpora": corpora})
    (text / "crawl.en").unlink()
    caplog.clear()
    small_text.prepare(text, **{"data.corpora": corpora})
    assert "the prepared text of corpus 'crawl' is used" in caplog.text
    lines = small_text.read_lines(text / "news.en")
    small_text.write_lines(text / "news.en", ["ba ko", *lines[1:]])
    with pytest.raises(ValueError, match="the text of corpus 'news' has changed"):
        small_text.prepare(text, **{"data.corpora": corpora})


@pytest.mark.parametrize(
    ("change", "is_fixed"),
    [
        ({"data.vocab_size": 41}, True),
        ({"data.max_length": 31}, True),
        ({"data.test_source": "", "data.test_target": ""}, None),
        ({"data.valid_source": "", "data.valid_target": ""}, False),
        ("train", True),
        ("valid", False),
    ],
)
def test_data_that_checkpoints_need_is_not_to_be_prepared_again(text, change, is_fixed):
    data = small_text.prepare(text)
    overrides = {} if isinstance(change, str) else change
    if isinstance(change, str):
        path = text / f"{change}.en"
        small_text.write_lines(path, ["ba", *small_text.read_lines(path)[1:]])

    def advice(fingerprint):
        try:
            small_text.prepare(
                text, required_fingerprint=lambda: fingerprint, **overrides
            )
        except ValueError as error:
            return str(error).rpartition(". ")[2]

    again = (
        "Prepare it again (`vaswani prepare` or `vaswani train`, with --rebuild_data), "
        "restore the settings, or name another --workdir"
    )
    fixed = (
        "The run has checkpoints that need this data: restore the settings and the "
        "text, or name another --workdir"
    )
    assert advice(None) == (None if is_fixed is None else again)
    trained = {None: None, True: fixed, False: again}[is_fixed]
    assert advice(data.vocabulary.fingerprint) == trained


def test_advice_on_shared_data_names_no_workdir(text):
    shared = {"data.directory": str(text.with_name("data"))}
    data = small_text.prepare(text, **shared)
    for fingerprint, advice in {
        None: "Restore the settings, or name another config.data.directory; prepare it "
        "again (`vaswani prepare` or `vaswani train`, with --rebuild_data) only if no "
        "other run uses it",
        data.vocabulary.fingerprint: "The run has checkpoints: restore their settings "
        "and text, or name another config.data.directory",
    }.items():
        with pytest.raises(ValueError) as caught:
            small_text.prepare(
                text,
                required_fingerprint=lambda value=fingerprint: value,
                **shared,
                **{"data.max_length": 29},
            )
        assert str(caught.value) == (
            f"{data.directory} was prepared from other data: config.data.max_length is "
            f"29, was 30. {advice}"
        )
    initial = settings.letters_vocabulary()
    with pytest.raises(ValueError, match=r"name another config\.data\.directory$"):
        prepared.open_or_prepare(
            small_text.settings_of(text, **shared),
            data.directory,
            rebuild=False,
            initial_vocabulary=initial,
        )


def test_another_seed_of_generated_text_is_refused(tmp_path):
    def opened(seed):
        generated = settings.small_settings(**{"data.source": "reverse", "seed": seed})
        return prepared.open_or_prepare(generated, tmp_path / "data", rebuild=False)

    assert opened(1).counts == opened(1).counts
    with pytest.raises(ValueError, match=r"config\.seed is 2, was 1"):
        opened(2)


def test_touched_or_moved_text_is_the_same_text(text, tmp_path):
    files_before = small_text.contents(small_text.prepare(text).directory)
    for path in text.iterdir():
        os.utime(path, ns=(10**18, 10**18))
    assert small_text.contents(small_text.prepare(text).directory) == files_before
    moved = {"data.text_directory": str(tmp_path / "elsewhere")}
    text.rename(tmp_path / "elsewhere")
    assert (
        small_text.contents(small_text.prepare(text, **moved).directory) == files_before
    )


def test_a_split_that_is_not_named_is_not_there(text):
    none = {
        f"data.{split}_{side}": ""
        for split in ("valid", "test")
        for side in ("source", "target")
    }
    data = small_text.prepare(text, **none)
    assert list(data.counts) == ["train"]
    assert data.text_fingerprint("valid") == ""
    # One that is named later is prepared when the user says so.
    assert "the split 'valid' was not there" in small_text.refusal(text)


def test_another_vocabulary_is_refused(text):
    data = small_text.prepare(text)
    different = settings.learn_vocabulary(
        small_text.read_lines(text / "train.en"),
        small_text.settings_of(text, **{"data.vocab_size": 39}).data,
    )
    different.save(data.directory)
    message = small_text.refusal(text)
    assert different.fingerprint in message
    assert data.vocabulary.fingerprint in message


def test_settings_that_leave_out_a_given_vocabulary_are_warned_of(
    text, tmp_path, caplog
):
    model = tmp_path / "own.model"
    model.write_bytes(small_text.prepare(text).vocabulary.source.model)
    given = {"data.vocabulary": str(model)}
    data = small_text.prepare(text, rebuild=True, **given)
    required = data.vocabulary.fingerprint
    caplog.clear()
    small_text.prepare(text, **given)
    small_text.prepare(text, required_fingerprint=lambda: required)
    prepared.open_or_prepare(
        small_text.settings_of(text),
        data.directory,
        rebuild=False,
        initial_vocabulary=data.vocabulary,
    )
    assert caplog.messages == []
    small_text.prepare(text)
    [warning] = caplog.messages
    assert warning.startswith("config.data.vocabulary is empty, but ")
    assert str(data.directory) in warning and "--rebuild_data" in warning
    # Learned data has nothing to warn of.
    small_text.prepare(text, rebuild=True)
    caplog.clear()
    small_text.prepare(text)
    assert caplog.messages == []


def test_a_changed_version_of_a_generator_is_named(tmp_path):
    generated = settings.small_settings(**{"data.source": "reverse"})
    data = prepared.open_or_prepare(generated, tmp_path / "data", rebuild=False)
    path = data.directory / "manifest.json"
    path.write_text(path.read_text().replace('"version": "1"', '"version": "0"'))
    with pytest.raises(ValueError, match="the generator of 'train' is 1, was 0"):
        prepared.open_or_prepare(generated, tmp_path / "data", rebuild=False)


def test_prepared_data_serves_without_the_package_of_its_generator(
    tmp_path, monkeypatch, caplog
):
    generated = settings.small_settings(**{"data.source": "reverse"})
    data = prepared.open_or_prepare(generated, tmp_path / "data", rebuild=False)

    def fail(*arguments, **options):
        raise ImportError("the corpus needs a package")

    monkeypatch.setattr(training_text, "text_record", fail)
    opened = prepared.open_or_prepare(generated, tmp_path / "data", rebuild=False)
    assert opened.counts == data.counts
    assert "note: the corpus needs a package; the prepared 'train'" in caplog.text
