"""Keys come from a file that others cannot write."""

import pytest

from vaswani_jax.service import keys

KEY = "0123456789abcdef"


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# of a friend\n\n{KEY}\n  other-key-of-a-friend  \n")
    file.chmod(0o600)
    return file


def test_only_the_keys_of_the_file_open(file):
    read = keys.read_keys(file)
    assert read.are_needed
    for key in (KEY, "other-key-of-a-friend"):
        assert read.accept(key)
    for key in (None, "", KEY[:-1], f"{KEY}x", KEY.upper(), "# of a friend", "\udc80"):
        assert not read.accept(key)
    assert KEY not in repr(vars(read))


def test_the_encoding_is_utf_8_with_or_without_a_mark(file):
    file.write_text(f"{KEY}\n", encoding="utf-8-sig")
    assert keys.read_keys(file).accept(KEY)
    file.write_text(f"{KEY}\n", encoding="utf-16")
    with pytest.raises(ValueError, match=r"--api_keys=.* is not in UTF-8"):
        keys.read_keys(file)


def test_without_keys_everyone_may_come():
    assert keys.Keys([]).accept(None)
    assert not keys.Keys([]).are_needed


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(file, mode):
    file.chmod(mode)
    with pytest.raises(ValueError, match="chmod 600"):
        keys.read_keys(file)


def test_a_file_that_others_may_read_is_warned_of(file, caplog):
    file.chmod(0o644)
    assert keys.read_keys(file).accept(KEY)
    assert "may be read by others" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "text", ["", "# none\n", "short", "with a space inside", "ü" * 16]
)
def test_a_file_without_good_keys_is_refused(file, text):
    file.write_text(text)
    with pytest.raises(ValueError, match="--api_keys=") as raised:
        keys.read_keys(file)
    assert not text or text not in str(raised.value)
