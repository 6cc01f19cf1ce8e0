"""How a configuration is read: keys, types, and those of older runs."""

import copy
import json
import pathlib

import pytest

from configs import of_run
from tests import settings
from tests.core import given
from vaswani_jax.core import config, parsing


def test_parse_gives_back_what_to_dict_took_apart():
    nested = given.values(
        {"seed": 17, "model.d_model": 34, "search.length_penalty": 0.25}
    )
    parsed = given.parse(nested)
    assert config.to_dict(parsed) == nested
    assert given.parse(config.to_dict(parsed)) == parsed


def test_equal_configs_hash_equal_and_different_ones_differ():
    first, again = given.parse(given.values({})), given.parse(given.values({}))
    other = given.parse(given.values({"seed": 9}))
    assert hash(first) == hash(again)
    assert {first, again, other} == {first, other}
    assert first != other


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        given.parse(given.values({})).model.d_model = 3


def test_unknown_key_is_refused_with_the_key_that_was_meant():
    text = given.message({"model.num_layer": 2})
    assert "config.model.num_layer;" in text
    assert "did you mean config.model.num_layers?" in text


def test_unknown_key_like_no_other_is_refused_with_the_known_keys():
    text = given.message({"optimizer.zzz": 2})
    assert "unknown key config.optimizer.zzz" in text
    assert "did you mean" not in text
    assert "warmup_steps" in text


def test_unknown_section_is_refused():
    assert "config.modell" in given.message({"modell": {}})


@pytest.mark.parametrize("key", ["seed", "model", "data.source", "search.beam_size"])
def test_missing_key_is_refused(key):
    nested = copy.deepcopy(given.values({}))
    *sections, name = key.split(".")
    section = nested
    for part in sections:
        section = section[part]
    del section[name]
    with pytest.raises(ValueError, match=f"missing key config.{key}\\b"):
        given.parse(nested)


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
    text = given.message({key: value})
    assert f"config.{key} must be of type {kind}, got {value!r}" in text


def test_a_value_where_a_section_belongs_is_refused():
    assert "config.model must be a section, got 3" in given.message({"model": 3})


def test_a_whole_number_is_accepted_for_a_real_one():
    penalty = given.parse(
        given.values({"search.length_penalty": 1})
    ).search.length_penalty
    assert type(penalty) is float
    assert penalty == 1.0


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
