"""Configuration files are found by name, and loaded from anywhere."""

import pathlib
import sys

import pytest

from configs import base_ende, demo, own_text, table3
from vaswani_jax.core import languages, parsing, presets
from vaswani_jax.paper import table4


def test_a_preset_is_found_by_its_name_and_by_its_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = presets.directory() / "demo.py"
    assert presets.find("demo") == (file, "")
    assert presets.find(str(file)) == (file, "")
    assert presets.find("table3:A1") == (presets.directory() / "table3.py", "A1")
    monkeypatch.chdir(tmp_path)
    assert presets.find("demo") == (file, "")


def test_a_run_is_found_by_its_directory(tmp_path: pathlib.Path) -> None:
    record = presets.directory() / "of_run.py"
    (tmp_path / "config.json").write_text("{}")
    assert presets.find(str(tmp_path)) == (record, str(tmp_path))
    assert presets.find("gs://bucket/run") == (record, "gs://bucket/run")
    assert presets.find("of_run:gs://bucket/run") == (record, "gs://bucket/run")


def test_what_is_no_configuration_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"demp is no preset.*; did you mean demo\?"):
        presets.find("demp")
    with pytest.raises(ValueError, match=r"there is no file x/demos.py; did you mean"):
        presets.find("x/demos.py")
    with pytest.raises(ValueError, match=r"holds no run: it has no config\.json"):
        presets.find(str(tmp_path))
    with pytest.raises(ValueError, match=r"there is no file zzz\.py$"):
        presets.find("zzz.py:A1")


def test_presets_are_those_of_the_repository() -> None:
    assert {"base_ende", "big_enfr", "demo", "own_text"} <= set(presets.names())
    assert "of_run" not in presets.names()
    assert presets.load(*presets.find("demo")) == demo.get_config()
    assert presets.load(*presets.find("table3:B1")) == table3.get_config("B1")
    assert presets.load_module("table3").ROWS == table3.ROWS


def test_the_multilingual_preset_is_the_demo_with_a_tag_for_each_target() -> None:
    values = presets.load(*presets.find("multilingual"))
    config = parsing.parse(values)
    assert languages.target_locales(config.data) == ("de", "fr", "es", "ja")
    assert tuple(languages.locales_by_tag(config.data)) == config.data.symbols
    assert values.model == demo.get_config().model


@pytest.mark.parametrize("preset", ["parsing_wsj", "parsing_wsj:semi", "parsing_craft"])
def test_parsers_of_the_papers_size_have_none_of_our_options(preset: str) -> None:
    values = presets.load(*presets.find(preset))
    for key in table4.OPTIONS:
        assert not values[key], key
    options = presets.load(*presets.find("parsing_craft:options"))
    assert all(options[key] for key in table4.OPTIONS)


@pytest.mark.parametrize("size", ["base", "big", "small"])
def test_raw_text_is_own_text_with_every_rule_of_cleaning(size: str) -> None:
    own = own_text.get_config(size)
    raw = presets.load(*presets.find(f"raw_text:{size}"))
    off = own.data.to_dict()
    changed = {key for key, value in raw.data.items() if value != off[key]}
    assert changed == {key for key in off if key.startswith("clean_")}
    raw.data = own.data
    assert raw == own


def test_no_other_preset_cleans() -> None:
    for name in set(presets.names()) - {"raw_text"}:
        data = presets.load_module(name).get_config().data
        assert not any(data[key] for key in data if key.startswith("clean_"))


def test_a_file_without_variants_refuses_one() -> None:
    with pytest.raises(ValueError, match=r"demo.py has no variants: leave out :big"):
        presets.load(*presets.find("demo:big"))


def test_a_file_of_the_user_imports_presets_and_its_neighbours(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "parent.py").write_text("SEED = 17\n")
    (tmp_path / "mine.py").write_text(
        "from configs import base_ende, parent\n"
        "def get_config():\n"
        "    config = base_ende.get_config()\n"
        "    config.seed = parent.SEED\n"
        "    return config\n"
    )
    config = presets.load(tmp_path / "mine.py")
    assert config.seed == 17
    assert config.model == base_ende.get_config().model
    # Afterwards the name means what it meant.
    assert sys.modules["configs.base_ende"] is base_ende
    assert "configs.parent" not in sys.modules


def test_an_error_in_a_file_is_the_users_to_see(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine.py").write_text("import configs.nothing\n")
    with pytest.raises(ModuleNotFoundError, match=r"configs.nothing"):
        presets.load(tmp_path / "mine.py")
    assert sys.modules["configs.base_ende"] is base_ende


@pytest.mark.parametrize("result", ["None", "{}"])
def test_a_configuration_of_another_type_is_refused(
    tmp_path: pathlib.Path, result: str
) -> None:
    (tmp_path / "mine.py").write_text(f"def get_config():\n    return {result}\n")
    with pytest.raises(ValueError, match=r"get_config of mine.py must return an ml_c"):
        presets.load(tmp_path / "mine.py")
