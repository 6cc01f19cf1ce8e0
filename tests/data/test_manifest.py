"""Differences from the settings of prepared data are named, and damage is."""

import json

import pytest

from tests.data import small_text


@pytest.mark.parametrize(
    ("key", "value", "was"),
    [
        ("data.vocab_size", 41, 40),
        ("data.subword_model", "unigram", "bpe"),
        ("data.byte_fallback", True, False),
        ("data.target_locale", "fr", "de"),
    ],
)
def test_a_changed_setting_is_refused_with_both_values(text, key, value, was):
    small_text.prepare(text)
    assert f"config.{key} is {value!r}, was {was!r}" in small_text.refusal(
        text, **{key: value}
    )


def test_all_changed_settings_are_named_at_once(text):
    small_text.prepare(text)
    small_text.write_lines(text / "valid.de", ["other"] * small_text.SIZES["valid"])
    message = small_text.refusal(text, **{"data.vocab_size": 41, "data.max_length": 31})
    assert "vocab_size" in message
    assert "max_length" in message
    assert "'valid'" in message


def test_a_damaged_manifest_is_refused_and_rebuilt(text):
    path = small_text.prepare(text).directory / "manifest.json"
    path.write_text(path.read_text()[:-30])
    assert str(path) in small_text.refusal(text)
    assert small_text.prepare(text, rebuild=True).counts["train"]["kept"] == 115


@pytest.mark.parametrize("files", [5, ["train.source"], {"train.source": 5}])
def test_a_manifest_whose_digests_are_no_digests_is_refused(text, files):
    path = small_text.prepare(text).directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": files}))
    assert f"{path} is damaged" in small_text.refusal(text)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("train.source.uint16", lambda data: data.token_pairs("train")),
        ("train.target.offsets", lambda data: data.token_pairs("train")),
        ("test.target.txt", lambda data: data.text("test")),
    ],
)
@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_a_damaged_file_is_named_before_it_is_used(text, name, read, damage):
    data = small_text.prepare(text)
    file = data.directory / name
    if damage == "missing":
        file.unlink()
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=rf"{data.directory} is damaged: {name}"):
        read(data)
    read(small_text.prepare(text, rebuild=True))
