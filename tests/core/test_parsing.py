"""Every rule of a configuration: refused with the key, the value and the rule."""

import copy
import json
import math
import pathlib

import ml_collections
import pytest

from configs import of_run
from tests import settings
from vaswani_jax.core import config, parsing

VALID = {
    "data.source": "text",
    "data.max_length": 20,
    "data.source_tokens_per_batch": 64,
    "data.target_tokens_per_batch": 96,
    "data.text_directory": ".",
    "data.train_source": "train.en",
    "data.train_target": "train.de",
    "data.valid_source": "valid.en",
    "data.valid_target": "valid.de",
    "data.test_source": "test.en",
    "data.test_target": "test.de",
    "model.positional_encoding": "sinusoidal",
    "model.max_positions": 30,
    "search.max_source_tokens": 18,
    "search.max_extra_tokens": 12,
    "training.keep_checkpoints": 3,
    "training.average_checkpoints": 3,
}
COUNTS = [
    *("model.num_layers", "model.d_model", "model.d_ff", "model.num_heads"),
    *("model.d_k", "model.d_v", "model.max_positions", "data.num_buckets"),
    *("data.sentencepiece_sample_size", "optimizer.warmup_steps"),
    *("training.num_steps", "data.subword_samples", "training.log_every_steps"),
    *("training.evaluate_every_steps", "training.checkpoint_every_steps"),
    *("training.keep_checkpoints", "training.average_checkpoints"),
    *("search.beam_size", "search.max_extra_tokens"),
    "search.source_tokens_per_batch",
]
RATES = [
    *("model.dropout_rate", "model.attention_dropout_rate", "model.relu_dropout_rate"),
    *("training.label_smoothing", "optimizer.beta1", "optimizer.beta2"),
]
CHOICES = {
    "model.layer_norm_position": ["post", "pre"],
    "model.positional_encoding": ["sinusoidal", "learned"],
    "model.dtype": ["float32", "bfloat16"],
    "data.source": ["text", "cldr", "copy", "reverse"],
    "data.subword_model": ["bpe", "unigram"],
    "data.text_form": ["detokenized", "tokenized"],
    "training.label_smoothing_form": ["uniform", "others", "no_pad"],
}
GENERATED = {"data.num_train": 9, "data.num_valid": 5, "data.num_test": 4}


def values(overrides):
    """A valid configuration as nested dictionaries, some of its values replaced."""
    nested = config.to_dict(settings.small_settings(**VALID))
    for key, value in overrides.items():
        *sections, name = key.split(".")
        section = nested
        for part in sections:
            section = section[part]
        section[name] = value
    return nested


def parse(nested):
    return parsing.parse(ml_collections.ConfigDict(nested))


def message(overrides):
    """Why the valid configuration with these overrides is refused."""
    with pytest.raises(ValueError) as caught:
        parse(values(overrides))
    return str(caught.value)


def test_parse_gives_back_what_to_dict_took_apart():
    nested = values({"seed": 17, "model.d_model": 34, "search.length_penalty": 0.25})
    parsed = parse(nested)
    assert config.to_dict(parsed) == nested
    assert parse(config.to_dict(parsed)) == parsed


def test_equal_configs_hash_equal_and_different_ones_differ():
    first, again = parse(values({})), parse(values({}))
    other = parse(values({"seed": 9}))
    assert hash(first) == hash(again)
    assert {first, again, other} == {first, other}
    assert first != other


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        parse(values({})).model.d_model = 3


def test_unknown_key_is_refused_with_the_key_that_was_meant():
    text = message({"model.num_layer": 2})
    assert "config.model.num_layer;" in text
    assert "did you mean config.model.num_layers?" in text


def test_unknown_key_like_no_other_is_refused_with_the_known_keys():
    text = message({"optimizer.zzz": 2})
    assert "unknown key config.optimizer.zzz" in text
    assert "did you mean" not in text
    assert "warmup_steps" in text


def test_unknown_section_is_refused():
    assert "config.modell" in message({"modell": {}})


@pytest.mark.parametrize("key", ["seed", "model", "data.source", "search.beam_size"])
def test_missing_key_is_refused(key):
    nested = copy.deepcopy(values({}))
    *sections, name = key.split(".")
    section = nested
    for part in sections:
        section = section[part]
    del section[name]
    with pytest.raises(ValueError, match=f"missing key config.{key}\\b"):
        parse(nested)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("seed", "1", "int"),
        ("seed", 1.0, "int"),
        ("seed", True, "int"),
        ("model.d_model", None, "int"),
        ("model.dropout_rate", True, "float"),
        ("model.dropout_rate", "0.1", "float"),
        ("model.dtype", 32, "str"),
        ("data.byte_fallback", 1, "bool"),
        ("data.byte_fallback", "yes", "bool"),
        ("data.train_source", ("a", "b"), "str"),
    ],
)
def test_wrong_type_is_refused(key, value, kind):
    text = message({key: value})
    assert f"config.{key} must be of type {kind}, got {value!r}" in text


def test_a_value_where_a_section_belongs_is_refused():
    assert "config.model must be a section, got 3" in message({"model": 3})


def test_a_whole_number_is_accepted_for_a_real_one():
    penalty = parse(values({"search.length_penalty": 1})).search.length_penalty
    assert type(penalty) is float
    assert penalty == 1.0


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("value", [0, -3])
def test_counts_are_at_least_one(key, value):
    # Averaging no checkpoint is refused as a count, before it is compared.
    assert f"config.{key} must be at least 1, got {value}" in message({key: value})


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
def test_parts_of_a_batch_are_auto_or_a_positive_number(value):
    key = "training.accumulate_steps"
    assert f"config.{key} must be auto or a positive number, got {value!r}" in message(
        {key: value}
    )


def test_sampled_segmentations_need_a_dropout_of_merges_and_bpe():
    sampled = {"data.subword_dropout": 0.1, "data.subword_samples": 3}
    assert parse(values(sampled | {"data.subword_model": "bpe"}))
    assert "got 3 and 0.0" in message({"data.subword_samples": 3})
    assert "got 1 and 0.1" in message({"data.subword_dropout": 0.1})
    assert "got 'unigram'" in message(sampled | {"data.subword_model": "unigram"})


def test_r_drop_needs_dropout():
    assert parse(values({"training.r_drop": 5.0, "model.relu_dropout_rate": 0.1}))
    text = message({"training.r_drop": 5.0, "model.dropout_rate": 0.0})
    assert "config.training.r_drop" in text and "above 0, got 5.0" in text
    assert "at least 0, got -1.0" in message({"training.r_drop": -1.0})


@pytest.mark.parametrize("key", RATES)
@pytest.mark.parametrize("value", [1.0, -0.01, 2])
def test_rates_are_at_least_zero_and_below_one(key, value):
    text = message({key: value})
    assert f"config.{key} must be in [0, 1), got {float(value)}" in text


@pytest.mark.parametrize("key", RATES)
def test_rate_zero_is_accepted(key):
    assert config.to_dict(parse(values({key: 0.0})))


@pytest.mark.parametrize(("key", "allowed"), CHOICES.items())
def test_choices_are_refused_with_all_that_is_allowed(key, allowed):
    text = message({key: "other"})
    assert f"config.{key} " in text
    assert "'other'" in text
    assert all(choice in text for choice in allowed)


@pytest.mark.parametrize(
    ("key", "choice"), [(key, one) for key, all_ in CHOICES.items() for one in all_]
)
def test_choices_are_accepted(key, choice):
    assert parse(values({key: choice} | GENERATED))


@pytest.mark.parametrize(
    "key", ["optimizer.epsilon", "optimizer.learning_rate_scale", "model.init_scale"]
)
@pytest.mark.parametrize("value", [0.0, -1e-9])
def test_epsilon_and_scale_are_positive(key, value):
    assert f"config.{key} must be positive, got {value}" in message({key: value})


@pytest.mark.parametrize("value", [-0.1])
def test_length_penalty_is_not_negative(value):
    text = message({"search.length_penalty": value})
    assert "config.search.length_penalty must be at least 0, got -0.1" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"min_tokens": 0}, "min_tokens must be at least 1, got 0"),
        ({"min_tokens": 5, "max_tokens": 4}, "at least config.search.min_tokens (5)"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"top_k": -1}, "top_k must be at least 0, got -1"),
        ({"top_p": 0.0}, "top_p must be over 0, at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be over 0, at most 1, got 1.5"),
        ({"no_repeat_ngram": -2}, "no_repeat_ngram must be at least 0, got -2"),
    ],
)
def test_what_a_search_cannot_mean_is_refused(changes, said):
    text = message({f"search.{key}": value for key, value in changes.items()})
    assert said in text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", [*RATES, "optimizer.epsilon", "search.length_penalty"])
def test_numbers_are_finite(key, value):
    assert f"config.{key} must be finite, got {value}" in message({key: value})


def test_seed_is_not_negative():
    # NumPy's generators, which shuffle the batches, take no negative seed.
    text = message({"seed": -1})
    assert "config.seed must be at least 0, got -1" in text


def test_sinusoids_need_an_even_width():
    assert "config.model.d_model must be a multiple of 2, got 33" in message(
        {"model.d_model": 33}
    )
    learned = {"model.positional_encoding": "learned", "model.d_model": 33}
    assert parse(values(learned)).model.d_model == 33


def test_a_sentence_has_room_for_a_token_and_its_end_mark():
    assert "config.data.max_length must be at least 2, got 1" in message(
        {"data.max_length": 1}
    )
    assert parse(values({"data.max_length": 2}))


@pytest.mark.parametrize("key", GENERATED)
@pytest.mark.parametrize("source", ["cldr", "copy", "reverse"])
def test_generated_text_needs_the_number_of_its_pairs(source, key):
    wrong = {"data.source": source} | GENERATED | {key: 0}
    assert f"config.{key} must be at least 1, got 0" in message(wrong)


def test_text_files_need_no_number_of_pairs():
    assert parse(values(dict.fromkeys(GENERATED, 0)))


@pytest.mark.parametrize(
    "key",
    ["text_directory", "train_source", "train_target", "valid_source", "valid_target"],
)
def test_text_needs_the_names_of_its_files(key):
    empty = {f"data.{key}": ""}
    assert f"config.data.{key} must not be empty" in message(empty)
    assert parse(values(empty | {"data.source": "copy"} | GENERATED))


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("source", ["text", "cldr"])
def test_locales_are_given_for_every_source(source, key):
    wrong = GENERATED | {"data.source": source, f"data.{key}": ""}
    assert f"config.data.{key} must not be empty" in message(wrong)


@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
@pytest.mark.parametrize("locale", ["german", "d", "de-", "de_DE ", "x!"])
def test_the_language_of_text_is_a_code(key, locale):
    text = message({f"data.{key}": locale})
    assert f"config.data.{key} must be a code" in text and repr(locale) in text


@pytest.mark.parametrize("locale", ["de", "pt_BR", "zh-Hans-CN", "gsw", "en-GB", "DE"])
def test_locales_of_either_form_are_taken(locale):
    assert parse(values({"data.target_locale": locale}))


def test_test_files_come_in_pairs_or_not_at_all():
    text = message({"data.test_target": ""})
    assert "config.data.test_source" in text
    assert "config.data.test_target" in text
    assert "'test.en' and ''" in text
    assert parse(values({"data.test_source": "", "data.test_target": ""}))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_batch_has_room_for_the_longest_sentence(side):
    key = f"data.{side}_tokens_per_batch"
    text = message({key: 19})
    assert f"config.{key} must be at least config.data.max_length (20), got 19" in text
    assert parse(values({key: 20}))


def test_no_more_checkpoints_are_averaged_than_kept():
    text = message({"training.average_checkpoints": 4})
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
    text = message({**learned, "model.max_positions": longest - 1})
    assert f"config.model.max_positions must be at least {longest} " in text
    assert f"got {longest - 1}" in text
    assert parse(values({**learned, "model.max_positions": longest}))
    # The sinusoids have no limit.
    assert parse(values({**overrides, "model.max_positions": 1}))


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
    data = parse(values(WMT14 | changes)).data
    assert (data.source_locale, data.target_locale) == direction


@pytest.mark.parametrize(
    "direction", [("", ""), ("en", "fr"), ("en", "en"), ("de", "")], ids=str
)
def test_a_corpus_without_a_direction_of_its_own_languages_is_refused(direction):
    source, target = direction
    changes = {"data.source_locale": source, "data.target_locale": target}
    text = message(WMT14 | changes)
    assert "config.data.source_locale and config.data.target_locale" in text
    assert "tfds:wmt14_translate/de-en" in text and repr(target) in text


@pytest.mark.parametrize("name", ["tfds:", "tfds:wmt14_translate", "tfds:a/b"])
def test_a_corpus_is_named_with_its_pair(name):
    text = message(WMT14 | {"data.source": name})
    assert "config.data.source must be like tfds:wmt14_translate/de-en" in text


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("max_length", {"data.max_length": 15}),
        ("packed_length", {"data.packed_length": 21, "data.batching": "packed"}),
    ],
)
def test_fused_attention_needs_even_lengths(key, changes):
    fused = {
        "model.attention": "cudnn",
        "model.dtype": "bfloat16",
        "model.d_k": 8,
        "model.d_v": 8,
    }
    assert f"needs an even config.data.{key}" in message(fused | changes)


def test_the_first_runs_are_read_with_what_was_no_setting_yet(tmp_path):
    """old_config.json is what `main` recorded when there were the fewest settings."""
    old = pathlib.Path(__file__).with_name("old_config.json").read_text()
    (tmp_path / "config.json").write_text(old)
    found = parsing.parse(of_run.get_config(str(tmp_path)))
    values = config.flatten(json.loads(old))
    now = config.flatten(config.to_dict(found))
    assert now.keys() - values.keys() == set(config.ADDED_LATER)
    for key, value in values.items():
        assert now[key] == (str(value) if key.endswith("accumulate_steps") else value)


def test_the_configuration_of_a_run_is_read_from_its_workdir(tmp_path):
    expected = settings.small_settings(**{"model.d_k": 5, "seed": 7})
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict(expected)))
    assert parsing.parse(of_run.get_config(str(tmp_path))) == expected
    for damage in ("{", "[1]", "3"):
        path.write_text(damage)
        with pytest.raises(ValueError, match=r"config\.json is damaged"):
            of_run.get_config(str(tmp_path))
    path.unlink()
    with pytest.raises(ValueError, match=r"config\.json cannot be read"):
        of_run.get_config(str(tmp_path))
    with pytest.raises(ValueError, match="name the workdir"):
        of_run.get_config()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 10**20}, "config.seed must be at most"),
        ({"training.num_steps": 10**20}, "config.training.num_steps must be at most"),
        ({"optimizer.warmup_steps": 2**31}, "warmup_steps must be at most"),
        ({"data.normalization": "foo"}, "config.data.normalization must be one of"),
        ({"data.vocab_size": 4}, "config.data.vocab_size must be at least 5"),
        ({"search.top_k": 5}, "config.search.top_k=5 is of config.search.sampling"),
        ({"search.temperature": 0.5}, "config.search.temperature=0.5 is of config"),
    ],
)
def test_what_would_be_refused_later_or_never_is_refused_at_once(changes, said):
    with pytest.raises(ValueError, match=said):
        settings.small_settings(**changes)
