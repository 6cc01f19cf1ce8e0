"""Settings of data that exclude each other are refused with the rule."""

import dataclasses

import pytest

from tests.core.valid_config import GENERATED, parsed, refusal
from vaswani_jax.core import data_rules


def test_separate_lengths_need_buckets():
    changes = {"data.bucket_lengths": "separate"}
    assert parsed(changes).data.bucket_lengths == "separate"
    text = refusal({**changes, "data.batching": "packed"})
    assert "config.data.bucket_lengths=separate needs config.data.batching" in text
    assert text.endswith("got 'packed'")


def test_a_source_is_text_generated_or_a_dataset():
    text = refusal({"data.source": "other"})
    assert (
        "one of text, treebank, cldr, copy, reverse, tfds:DATASET/PAIR; got 'other'"
        in text
    )


@pytest.mark.parametrize("split", ["train", "valid", "test", "silver"])
def test_trees_are_for_a_treebank(split):
    text = refusal({f"data.{split}_trees": "a.trees"})
    key = f"config.data.{split}_trees=a.trees"
    assert f"{key} needs config.data.source=treebank, got " in text


@pytest.mark.parametrize("source", ["text", "cldr", "copy", "reverse"])
def test_every_source_is_accepted(source):
    changes = {"data.source": source} | GENERATED
    assert parsed(changes).data.source == source


def test_sampled_segmentations_need_a_dropout_of_merges_and_bpe():
    sampled = {"data.subword_dropout": 0.1, "data.subword_samples": 3}
    assert parsed(sampled | {"data.subword_model": "bpe"})
    assert "got 3 and 0.0" in refusal({"data.subword_samples": 3})
    assert "got 1 and 0.1" in refusal({"data.subword_dropout": 0.1})
    assert "got 'unigram'" in refusal(sampled | {"data.subword_model": "unigram"})


@pytest.mark.parametrize("key", GENERATED)
@pytest.mark.parametrize("source", ["cldr", "copy", "reverse"])
def test_generated_text_needs_the_number_of_its_pairs(source, key):
    wrong = {"data.source": source} | GENERATED | {key: 0}
    assert f"config.{key} must be at least 1, got 0" in refusal(wrong)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_held_out_text_has_two_sides_or_none(split):
    none = {f"data.{split}_source": "", f"data.{split}_target": ""}
    assert parsed(none)
    for key in none:
        text = refusal({key: ""})
        keys = f"config.data.{split}_source and config.data.{split}_target"
        assert f"{keys} go together, got" in text


def test_text_files_need_no_number_of_pairs():
    assert parsed(dict.fromkeys(GENERATED, 0))


@pytest.mark.parametrize("key", ["text_directory", "train_source", "train_target"])
def test_text_needs_the_names_of_its_files(key):
    empty = {f"data.{key}": ""}
    assert f"config.data.{key} must not be empty" in refusal(empty)
    assert parsed(empty | {"data.source": "copy"} | GENERATED)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_training_text_is_not_named_beside_corpora(side):
    corpus = {"name": "a", "source": "a.en", "target": "a.de"}
    key = f"data.train_{side}"
    mixed = parsed({"data.corpora": [corpus], key: "news"}).data
    with pytest.raises(ValueError) as caught:
        data_rules.check_training_files(mixed, ["seed", key])
    assert str(caught.value) == (
        f"config.{key}=news is not read with config.data.corpora: add it as a corpus, "
        "or set --config.data.corpora="
    )
    # A preset or a run may name it, and a user may say that there is none.
    data_rules.check_training_files(mixed, ["seed", "data.corpora"])
    none = parsed({"data.corpora": [corpus], key: ""}).data
    data_rules.check_training_files(none, [key])
    data_rules.check_training_files(parsed({key: "news"}).data, [key])


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("source", ["text", "cldr"])
def test_locales_are_given_for_every_source(source, key):
    wrong = GENERATED | {"data.source": source, f"data.{key}": ""}
    example = "en" if key == "source_locale" else "de"
    assert refusal(wrong) == (
        f"config.data.{key} must not be empty: give it a value, such as "
        f"--config.data.{key}={example}"
    )


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("locale", ["german", "d", "de-", "de_DE ", "x!"])
def test_the_language_of_text_is_a_code(key, locale):
    text = refusal({f"data.{key}": locale})
    assert f"config.data.{key} must be a code" in text and repr(locale) in text


def test_a_code_that_is_no_language_is_refused_before_data_is_prepared():
    # A run that an earlier version began keeps it.
    data = parsed({"data.source": "text", "data.source_locale": "jp"}).data
    message = "config.data.source_locale must begin .*'jp'; did you mean ja?"
    with pytest.raises(ValueError, match=message):
        data_rules.check_languages(data)
    data_rules.check_languages(parsed({"data.source": "copy"}).data)


@pytest.mark.parametrize("locale", ["de", "pt_BR", "zh-Hans-CN", "gsw", "en-GB", "DE"])
def test_locales_of_either_form_are_taken(locale):
    assert parsed({"data.target_locale": locale})


SEVERAL = GENERATED | {
    "data.source": "cldr",
    "data.target_locale": "de,pt_BR,ja",
    "data.user_symbols": "<formal>,<2pt_BR>,<2ja>,<2de>",
    "data.num_valid": 30,
    "data.num_test": 60,
}


def test_generated_text_has_several_target_locales():
    assert parsed(SEVERAL).data.target_locale == "de,pt_BR,ja"


def test_text_files_have_several_target_locales_if_their_tags_are_kept_whole():
    several = {"data.target_locale": "de,ja"}
    assert "in config.data.user_symbols, got" in refusal(several)
    data = parsed(several | {"data.user_symbols": "<2de>,<2ja>"}).data
    data_rules.check_languages(data)
    wrong = dataclasses.replace(data, target_locale="de,qq")
    with pytest.raises(ValueError, match=r"target_locale must begin with .*'qq'"):
        data_rules.check_languages(wrong)


@pytest.mark.parametrize("source", ["copy", "tfds:wmt14_translate/de-en"])
def test_other_text_has_one_target_locale(source):
    text = refusal(SEVERAL | {"data.source": source, "data.target_locale": "de,en"})
    assert "config.data.target_locale" in text and "de,en" in text


@pytest.mark.parametrize("locales", ["de,de", "de, fr", "de,", "de;fr,es"])
def test_target_locales_are_a_list_of_different_codes(locales):
    text = refusal(SEVERAL | {"data.target_locale": locales})
    assert "different locales, separated by commas" in text and repr(locales) in text


def test_the_tags_of_target_locales_are_user_symbols():
    text = refusal(SEVERAL | {"data.user_symbols": "<2de>,<2ja>"})
    assert text == (
        "config.data.target_locale=de,pt_BR,ja needs "
        "the tags <2de>,<2pt_BR>,<2ja> in config.data.user_symbols, got '<2de>,<2ja>'"
    )


@pytest.mark.parametrize("key", ["num_valid", "num_test"])
def test_target_locales_have_equal_numbers_of_held_out_pairs(key):
    text = refusal(SEVERAL | {f"data.{key}": 31})
    assert f"config.data.{key} must be a multiple of the 3 locales" in text
    assert text.endswith("got 31")


def test_test_files_come_in_pairs_or_not_at_all():
    text = refusal({"data.test_target": ""})
    assert "config.data.test_source" in text
    assert "config.data.test_target" in text
    assert "'test.en' and ''" in text
    assert parsed({"data.test_source": "", "data.test_target": ""})


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_batch_has_room_for_the_longest_sentence(side):
    key = f"data.{side}_tokens_per_batch"
    text = refusal({key: 19})
    assert f"config.{key} must be at least config.data.max_length (20), got 19" in text
    assert parsed({key: 20})


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
    data = parsed(WMT14 | changes).data
    assert (data.source_locale, data.target_locale) == direction


@pytest.mark.parametrize(
    "direction", [("", ""), ("en", "fr"), ("en", "en"), ("de", "")], ids=str
)
def test_a_corpus_without_a_direction_of_its_own_languages_is_refused(direction):
    source, target = direction
    changes = {"data.source_locale": source, "data.target_locale": target}
    text = refusal(WMT14 | changes)
    assert "config.data.source_locale and config.data.target_locale" in text
    assert "tfds:wmt14_translate/de-en" in text and repr(target) in text


@pytest.mark.parametrize("name", ["tfds:", "tfds:wmt14_translate", "tfds:a/b"])
def test_a_corpus_is_named_with_its_pair(name):
    text = refusal(WMT14 | {"data.source": name})
    assert "config.data.source must be like tfds:wmt14_translate/de-en" in text
