"""A ~ is the user's home in every setting that is a path, and in Python's arguments."""

import json
import pathlib

import pytest

from vaswani_jax import api
from vaswani_jax.core import config, parsing, paths, presets, remote

# Texts that are no paths; a new setting is one of them or expands its ~.
NO_PATHS = {
    *("data.source_locale", "data.target_locale", "data.user_symbols"),
    # Places below data.text_directory.
    *("data.train_trees", "data.valid_trees", "data.test_trees", "data.silver_trees"),
}
# Texts with a syntax of their own; a file of corpora has a test below.
PARSED = {"data.corpora", "data.stages"}
LOCALES = {"data.source_locale": "en", "data.target_locale": "de"}


@pytest.fixture(autouse=True)
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_every_setting_that_is_a_path_begins_at_home(home: pathlib.Path) -> None:
    texts = {
        key: setting
        for key, setting in config.SETTINGS.items()
        if setting.type is str and not setting.choices and not setting.values
    }
    assert {key for key, setting in texts.items() if setting.canonical} == PARSED
    read = {key: texts[key].parse("~/a/b") for key in texts.keys() - PARSED}
    expanded = {key for key, value in read.items() if value == str(home / "a" / "b")}
    assert set(read) - expanded == NO_PATHS
    assert "data.text_directory" in expanded


def test_a_file_of_corpora_and_its_paths_begin_at_home(home: pathlib.Path) -> None:
    fields = {"name": "news", "source": "~/news.en", "target": "news.de"}
    lines = [f'{key} = "{value}"' for key, value in fields.items()]
    (home / "corpora.toml").write_text("\n".join(["[[corpora]]", *lines]))
    text = config.SETTINGS["data.corpora"].parse("~/corpora.toml")
    assert json.loads(text) == [{**fields, "source": str(home / "news.en")}]


def test_relative_names_and_urls_stay(home: pathlib.Path) -> None:
    for name in ("a/~b", "./~", "s3://bucket/~", "", "-", "a~"):
        assert paths.expand_home(name) == name


def test_the_home_of_no_user_is_refused() -> None:
    message = "~nobody_here/a: ~nobody_here is the home directory of no user here"
    with pytest.raises(ValueError, match=message):
        paths.expand_home("~nobody_here/a")
    with pytest.raises(ValueError, match=f"config.data.test_source: {message}"):
        api.load_config("own_text", {**LOCALES, "data.test_source": "~nobody_here/a"})


def test_a_run_and_a_file_are_found_at_home(home: pathlib.Path) -> None:
    demo = api.load_config("demo", {"seed": 5})
    (home / "run").mkdir()
    (home / "run" / "config.json").write_text(
        parsing.override_values(config.to_dict(demo), {}).to_json()
    )
    assert api.load_config("~/run").seed == 5
    assert remote.open_workdir("~/run").path == home / "run"
    preset = presets.directory() / "demo.py"
    (home / "mine.py").write_text(preset.read_text())
    assert api.load_config("~/mine.py") == api.load_config("demo")
