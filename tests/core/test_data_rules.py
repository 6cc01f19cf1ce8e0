"""Every rule of what data a configuration names: text, languages, corpora."""

import pytest

from tests.core import given


def test_sampled_segmentations_need_a_dropout_of_merges_and_bpe():
    sampled = {"data.subword_dropout": 0.1, "data.subword_samples": 3}
    assert given.parse(given.values(sampled | {"data.subword_model": "bpe"}))
    assert "got 3 and 0.0" in given.message({"data.subword_samples": 3})
    assert "got 1 and 0.1" in given.message({"data.subword_dropout": 0.1})
    assert "got 'unigram'" in given.message(sampled | {"data.subword_model": "unigram"})


def test_a_sentence_has_room_for_a_token_and_its_end_mark():
    assert "config.data.max_length must be at least 2, got 1" in given.message(
        {"data.max_length": 1}
    )
    assert given.parse(given.values({"data.max_length": 2}))


@pytest.mark.parametrize("key", given.GENERATED)
@pytest.mark.parametrize("source", ["cldr", "copy", "reverse"])
def test_generated_text_needs_the_number_of_its_pairs(source, key):
    wrong = {"data.source": source} | given.GENERATED | {key: 0}
    assert f"config.{key} must be at least 1, got 0" in given.message(wrong)


def test_text_files_need_no_number_of_pairs():
    assert given.parse(given.values(dict.fromkeys(given.GENERATED, 0)))


@pytest.mark.parametrize(
    "key",
    ["text_directory", "train_source", "train_target", "valid_source", "valid_target"],
)
def test_text_needs_the_names_of_its_files(key):
    empty = {f"data.{key}": ""}
    assert f"config.data.{key} must not be empty" in given.message(empty)
    assert given.parse(given.values(empty | {"data.source": "copy"} | given.GENERATED))


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("source", ["text", "cldr"])
def test_locales_are_given_for_every_source(source, key):
    wrong = given.GENERATED | {"data.source": source, f"data.{key}": ""}
    assert f"config.data.{key} must not be empty" in given.message(wrong)


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("locale", ["german", "d", "de-", "de_DE ", "x!"])
def test_the_language_of_text_is_a_code(key, locale):
    text = given.message({f"data.{key}": locale})
    assert f"config.data.{key} must be a code" in text and repr(locale) in text


@pytest.mark.parametrize("locale", ["de", "pt_BR", "zh-Hans-CN", "gsw", "en-GB", "DE"])
def test_locales_of_either_form_are_taken(locale):
    assert given.parse(given.values({"data.target_locale": locale}))


def test_test_files_come_in_pairs_or_not_at_all():
    text = given.message({"data.test_target": ""})
    assert "config.data.test_source" in text
    assert "config.data.test_target" in text
    assert "'test.en' and ''" in text
    assert given.parse(given.values({"data.test_source": "", "data.test_target": ""}))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_batch_has_room_for_the_longest_sentence(side):
    key = f"data.{side}_tokens_per_batch"
    text = given.message({key: 19})
    assert f"config.{key} must be at least config.data.max_length (20), got 19" in text
    assert given.parse(given.values({key: 20}))


WMT14 = {
    "data.source": "tfds:wmt14_translate/de-en",
    "data.source_locale": "en",
    "data.target_locale": "de",
    "data.num_train": 0,
    "data.num_valid": 0,
    "data.num_test": 0,
}


@pytest.mark.parametrize("direction", [("en", "de"), ("de", "en")])
def test_a_corpus_of_tensorflow_datasets_goes_either_way(direction):
    source, target = direction
    changes = {"data.source_locale": source, "data.target_locale": target}
    data = given.parse(given.values(WMT14 | changes)).data
    assert (data.source_locale, data.target_locale) == direction


@pytest.mark.parametrize(
    "direction", [("", ""), ("en", "fr"), ("en", "en"), ("de", "")], ids=str
)
def test_a_corpus_without_a_direction_of_its_own_languages_is_refused(direction):
    source, target = direction
    changes = {"data.source_locale": source, "data.target_locale": target}
    text = given.message(WMT14 | changes)
    assert "config.data.source_locale and config.data.target_locale" in text
    assert "tfds:wmt14_translate/de-en" in text and repr(target) in text


@pytest.mark.parametrize("name", ["tfds:", "tfds:wmt14_translate", "tfds:a/b"])
def test_a_corpus_is_named_with_its_pair(name):
    text = given.message(WMT14 | {"data.source": name})
    assert "config.data.source must be like tfds:wmt14_translate/de-en" in text
