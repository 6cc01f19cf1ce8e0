"""A configuration is read from a config file's values, or from a run's record."""

import copy
import json
import pathlib
import re

import pytest

from configs import of_run
from tests.core.valid_config import parse_nested, parsed, refusal, values
from tests.settings import small_settings
from vaswani_jax.core import config, parsing


def test_parse_gives_back_what_to_dict_took_apart():
    nested = values({"seed": 17, "model.d_model": 34, "search.length_penalty": 0.25})
    settings = parse_nested(nested)
    assert config.to_dict(settings) == nested
    assert parse_nested(config.to_dict(settings)) == settings


def test_equal_configs_hash_equal_and_different_ones_differ():
    first, equal, different = parsed({}), parsed({}), parsed({"seed": 9})
    assert hash(first) == hash(equal)
    assert {first, equal, different} == {first, different}
    assert first != different


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        parsed({}).model.d_model = 3


def test_unknown_key_is_refused_with_the_key_that_was_meant():
    text = refusal({"model.num_layer": 2})
    assert "config.model.num_layer;" in text
    assert "did you mean config.model.num_layers?" in text


def test_unknown_key_like_no_other_is_refused_with_the_known_keys():
    text = refusal({"optimizer.zzz": 2})
    assert "unknown key config.optimizer.zzz" in text
    assert "did you mean" not in text
    assert "warmup_steps" in text


def test_unknown_section_is_refused():
    assert "config.modell" in refusal({"modell": {}})


@pytest.mark.parametrize("key", ["seed", "model", "data.source", "search.beam_size"])
def test_missing_key_is_refused(key):
    nested = copy.deepcopy(values({}))
    *sections, name = key.split(".")
    section = nested
    for part in sections:
        section = section[part]
    del section[name]
    with pytest.raises(ValueError, match=f"missing key config.{key}\\b"):
        parse_nested(nested)


def test_a_value_where_a_section_belongs_is_refused():
    assert "config.model must be a section, got 3" in refusal({"model": 3})


def test_the_first_runs_are_read_with_what_was_no_setting_yet(tmp_path):
    """old_config.json is what `main` recorded when there were the fewest settings."""
    old = pathlib.Path(__file__).with_name("old_config.json").read_text()
    (tmp_path / "config.json").write_text(old)
    recorded = config.flatten(json.loads(old))
    loaded = config.flatten(config.to_dict(parsing.load(tmp_path)))
    later = {
        setting.key
        for setting in config.SETTINGS.values()
        if setting.legacy is not None
    }
    assert loaded.keys() - recorded.keys() == later
    for key, value in recorded.items():
        assert loaded[key] == (
            str(value) if key.endswith("accumulate_steps") else value
        )


def test_the_configuration_of_a_run_is_read_from_its_workdir(tmp_path):
    expected = small_settings(**{"model.d_k": 5, "seed": 7})
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict(expected)))
    assert parsing.load(tmp_path) == expected
    assert parsing.parse(of_run.get_config(str(tmp_path))) == expected
    for damage in ("{", "[1]", "3"):
        path.write_text(damage)
        with pytest.raises(ValueError, match=r"config\.json is damaged"):
            of_run.get_config(str(tmp_path))
    path.unlink()
    with pytest.raises(ValueError, match=r"holds no run: it has no config\.json"):
        of_run.get_config(str(tmp_path))
    with pytest.raises(ValueError, match="name the workdir"):
        of_run.get_config()


def test_settings_are_overridden_by_dotted_keys():
    settings = small_settings()
    changed = parsing.override(settings, {"seed": 5, "search.beam_size": 2})
    assert (changed.seed, changed.search.beam_size) == (5, 2)
    assert changed.model == settings.model
    assert parsing.override(settings, {}) is settings
    for key, message in (
        ("search.beam", "did you mean config.search.beam_size?"),
        ("seed.x", "unknown key config.seed.x"),
        ("modl.num_heads", "config.modl.num_heads; did you mean config.model.num_"),
        ("model", "config.model must be a section, got 5"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            parsing.override(settings, {key: 5})
