"""Errors of JSON say where it is wrong; see tests/data/test_columns.py for lines."""

import pytest

from vaswani_jax.data import json_objects


def test_the_object_of_a_file_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{\n "a": [1, "ä"]\n}\n')
    assert json_objects.read(path) == json_objects.parse('{"a": [1, "ä"]}')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ", line 1: no JSON (Expecting value at column 1)"),
        (b'{"a":\n 1,}', ", line 2: no JSON (Expecting property name"),
        (b'{\n"a": "\xff"}', ", line 2: not UTF-8 (byte 0xff"),
        (b"[" * 200_000, ": JSON nested too deep"),
        (b'{"a": %s}' % (b"9" * 5000), ": a number of over 4,300 digits"),
        (b"[]\n", " must be a JSON object, got '[]'"),
    ],
)
def test_a_file_without_an_object_is_named_with_line_and_rule(
    tmp_path, content, message
):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        json_objects.read(path)
    assert str(caught.value).startswith(f"{path}{message}")
