"""Rules between settings: refused with the key, the value and the rule."""

import dataclasses

import pytest

from tests import settings
from tests.core.valid_config import GENERATED, parsed, refusal
from vaswani_jax.benchmarks import training_speed
from vaswani_jax.core import rules


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
def test_parts_of_a_batch_are_auto_or_a_positive_number(value):
    key = "training.accumulate_steps"
    assert f"config.{key} must be auto or a positive number, got {value!r}" in refusal(
        {key: value}
    )


def test_loggers_are_names_that_exist():
    assert parsed({"training.loggers": "wandb, trackio"})
    text = refusal({"training.loggers": "wandb,mflow"})
    assert "config.training.loggers must be names, separated by commas" in text
    assert text.endswith("got 'wandb,mflow'; did you mean mlflow?")


def test_a_logger_is_named_once():
    assert "has 'wandb' twice" in refusal({"training.loggers": "wandb,wandb"})


def test_r_drop_needs_dropout():
    assert parsed({"training.r_drop": 5.0, "model.relu_dropout_rate": 0.1})
    text = refusal({"training.r_drop": 5.0, "model.dropout_rate": 0.0})
    assert "config.training.r_drop" in text and "above 0, got 5.0" in text
    for rate in ("dropout_rate", "attention_dropout_rate", "relu_dropout_rate"):
        assert f"config.model.{rate}" in text
    assert parsed({"training.r_drop": 0.0, "model.dropout_rate": 0.0})


def test_separate_lengths_need_buckets():
    changes = {"data.bucket_lengths": "separate"}
    assert parsed(changes).data.bucket_lengths == "separate"
    text = refusal({**changes, "data.batching": "packed"})
    assert "config.data.bucket_lengths=separate needs config.data.batching" in text
    assert text.endswith("got 'packed'")


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("no_repeat_ngram", 3, "config.search.no_repeat_ngram=0, got 3"),
        ("min_tokens", 5, "config.search.min_tokens=1, got 5"),
        ("max_tokens", 9, "config.search.max_tokens=0, got 9"),
        ("max_extra_tokens", 1, "config.search.max_extra_tokens of at least 2, got 1"),
    ],
)
def test_a_search_for_trees_has_room_and_repeats_symbols(key, value, rule):
    changes = {**settings.TREEBANK, f"search.{key}": value}
    assert refusal(changes).endswith(f"config.search.legal_trees=True needs {rule}")
    assert parsed({**changes, "search.legal_trees": False})
    assert parsed({f"search.{key}": value})


def test_equation_3_has_no_other_rate():
    text = refusal({"optimizer.learning_rate": 1e-3})
    assert "config.optimizer.learning_rate must be 0 with" in text
    assert "schedule=paper" in text and "got 0.001" in text


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "inverse_sqrt"])
def test_another_schedule_needs_its_rate_and_no_factor_of_equation_3(schedule):
    changes = {"optimizer.schedule": schedule, "training.num_steps": 5}
    text = refusal(changes)
    assert f"schedule={schedule} needs config.optimizer.learning_rate above 0" in text
    changes["optimizer.learning_rate"] = 1e-3
    assert parsed(changes).optimizer.learning_rate == 1e-3
    text = refusal({**changes, "optimizer.learning_rate_scale": 0.5})
    assert "config.optimizer.learning_rate_scale" in text and "1, got 0.5" in text


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_rate_that_falls_needs_steps_after_the_warm_up(schedule):
    changes = {"optimizer.schedule": schedule, "optimizer.learning_rate": 1e-3}
    text = refusal({**changes, "training.num_steps": 4})
    assert "warmup_steps below config.training.num_steps (4), got 4" in text


def test_an_output_cannot_be_shorter_at_most_than_at_least():
    changes = {"search.min_tokens": 5, "search.max_tokens": 4}
    text = refusal(changes)
    assert "at least config.search.min_tokens (5), got 4" in text


@pytest.mark.parametrize(
    ("key", "value"), [("top_k", 5), ("temperature", 0.5), ("top_p", 0.5)]
)
def test_what_chooses_samples_needs_sampling(key, value):
    text = refusal({f"search.{key}": value})
    assert f"config.search.{key}={value} needs config.search.sampling=True" in text
    changes = {f"search.{key}": value, "search.sampling": True}
    assert parsed(changes).search.sampling


def test_sinusoids_need_an_even_width():
    assert "config.model.d_model must be a multiple of 2, got 33" in refusal(
        {"model.d_model": 33}
    )
    learned = {"model.positional_encoding": "learned", "model.d_model": 33}
    assert parsed(learned).model.d_model == 33


def test_no_more_checkpoints_are_averaged_than_kept():
    text = refusal({"training.average_checkpoints": 4})
    assert "config.training.average_checkpoints must be at most" in text
    assert "config.training.keep_checkpoints (3), got 4" in text


@pytest.mark.parametrize(
    ("overrides", "longest"),
    [
        ({}, 18 + 12),
        ({"data.max_length": 31}, 31),
        ({"search.max_extra_tokens": 15}, 33),
        ({"search.min_tokens": 35}, 35),
    ],
)
def test_learned_positions_reach_the_longest_sentence(overrides, longest):
    learned = {"model.positional_encoding": "learned", **overrides}
    text = refusal({**learned, "model.max_positions": longest - 1})
    assert f"config.model.max_positions must be at least {longest} " in text
    assert f"got {longest - 1}" in text
    assert parsed({**learned, "model.max_positions": longest})
    # The sinusoids have no limit.
    assert parsed({**overrides, "model.max_positions": 1})


FUSED = {
    "model.attention": "cudnn",
    "model.dtype": "bfloat16",
    "model.d_k": 8,
    "model.d_v": 8,
}


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("max_length", {"data.max_length": 15}),
        ("packed_length", {"data.packed_length": 21, "data.batching": "packed"}),
    ],
)
def test_fused_attention_needs_even_lengths(key, changes):
    assert f"needs an even config.data.{key}" in refusal(FUSED | changes)


def test_fused_attention_refuses_odd_lengths_of_random_work():
    model = settings.small_settings(**FUSED).model
    training_speed.same_batch("2x4x6", model, vocab_size=9)
    for shape, odd in (("2x3x4", 3), ("2x4x5", 5)):
        message = f"needs an even --shape={shape}, got {odd}"
        with pytest.raises(ValueError, match=message):
            training_speed.same_batch(shape, model, vocab_size=9)


def test_a_source_is_text_generated_or_a_dataset():
    text = refusal({"data.source": "other"})
    assert (
        "one of text, treebank, cldr, copy, reverse, tfds:DATASET/PAIR; got 'other'"
        in text
    )


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


def test_patience_needs_a_validation_set():
    none = {"data.valid_source": "", "data.valid_target": ""}
    text = refusal(none | {"training.patience": 3})
    assert "config.training.patience=3 needs a validation set: name config.data" in text
    # Generated text has one.
    generated = none | {"data.source": "copy"} | GENERATED
    assert parsed(generated | {"training.patience": 3}).training.patience == 3


def test_text_files_need_no_number_of_pairs():
    assert parsed(dict.fromkeys(GENERATED, 0))


@pytest.mark.parametrize("key", ["text_directory", "train_source", "train_target"])
def test_text_needs_the_names_of_its_files(key):
    empty = {f"data.{key}": ""}
    assert f"config.data.{key} must not be empty" in refusal(empty)
    assert parsed(empty | {"data.source": "copy"} | GENERATED)


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("source", ["text", "cldr"])
def test_locales_are_given_for_every_source(source, key):
    wrong = GENERATED | {"data.source": source, f"data.{key}": ""}
    example = "en" if key == "source_locale" else "de"
    assert refusal(wrong) == (
        f"config.data.{key} must not be empty: give it a value, as "
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
        rules.check_languages(data)
    rules.check_languages(parsed({"data.source": "copy"}).data)


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
    assert "needs its tags among config.data.user_symbols" in refusal(several)
    data = parsed(several | {"data.user_symbols": "<2de>,<2ja>"}).data
    rules.check_languages(data)
    wrong = dataclasses.replace(data, target_locale="de,qq")
    with pytest.raises(ValueError, match=r"target_locale must begin with .*'qq'"):
        rules.check_languages(wrong)


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
        "config.data.target_locale=de,pt_BR,ja needs its tags among "
        "config.data.user_symbols, as <2de>,<2pt_BR>,<2ja>; got '<2de>,<2ja>'"
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
