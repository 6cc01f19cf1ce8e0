"""A safetensors file is read by others, and whatever damages it is found."""

import errno
import hashlib
import json
import os
import pathlib

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from vaswani_jax.core import tensor_file
from vaswani_jax.core.tensor_file import TensorFileError

NUMBERS = np.float32([[1.0, -2.5, 3.0e-8], [4.0, 5.0, np.inf]])
TEXT = np.frombuffer("Straße".encode(), np.uint8)
ARRAYS = {"a/numbers": NUMBERS, "b/text": TEXT, "a/none": np.zeros((0, 3), np.float32)}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "model.safetensors"
    tensor_file.write(path, ARRAYS, {"settings": {"größe": 1}})
    return path


def test_arrays_and_texts_are_what_was_written(path: pathlib.Path) -> None:
    file = tensor_file.open_file(path)
    assert file.value("settings") == {"größe": 1}
    arrays = file.read("a/")
    assert arrays.keys() == {"numbers", "none"}
    np.testing.assert_array_equal(arrays["numbers"], NUMBERS, strict=True)
    assert arrays["none"].shape == (0, 3)
    assert file.read("b/")["text"].tobytes().decode() == "Straße"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_published_reader_reads_the_same(path: pathlib.Path) -> None:
    arrays = safetensors.numpy.load_file(path)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)
    with safetensors.safe_open(path, framework="np") as file:
        digest, text = file.metadata()["vaswani_jax"].split(" ", 1)
    assert digest == hashlib.sha256(text.encode()).hexdigest()
    assert json.loads(text)["settings"] == {"größe": 1}


def test_the_same_content_makes_the_same_bytes(path: pathlib.Path) -> None:
    content = path.read_bytes()
    arrays = dict(reversed(ARRAYS.items()))
    tensor_file.write(path, arrays, {"settings": {"größe": 1}})
    assert path.read_bytes() == content


def test_an_array_is_written_whatever_its_strides(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.safetensors"
    arrays = {"a": NUMBERS.T, "b": NUMBERS[:, ::2], "c": np.float32(3).reshape(())}
    tensor_file.write(path, arrays, {})
    for name, array in tensor_file.open_file(path).read("").items():
        np.testing.assert_array_equal(array, arrays[name], strict=True)


def test_bfloat16_is_read_as_the_rounded_numbers(tmp_path: pathlib.Path) -> None:
    values = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
    rounded = values.astype(ml_dtypes.bfloat16)
    path = tmp_path / "half.safetensors"
    tensor_file.write(path, {"x": rounded}, {})
    [array] = tensor_file.open_file(path).read("x").values()
    np.testing.assert_array_equal(array, rounded.astype(np.float32), strict=True)
    [(name, entry)] = safetensors.deserialize(path.read_bytes())
    assert (name, entry["dtype"], entry["shape"]) == ("x", "BF16", [7, 5])
    assert bytes(entry["data"]) == rounded.tobytes()


def read_all(path: pathlib.Path) -> None:
    file = tensor_file.open_file(path)
    file.value("settings")
    file.read("")


def test_every_changed_byte_is_found(path: pathlib.Path) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    positions = {*range(20), *range(8, 8 + length, 31), *range(length, len(content), 3)}
    for position in sorted(positions):
        damaged = bytearray(content)
        damaged[position] ^= 0x01
        path.write_bytes(damaged)
        with pytest.raises(TensorFileError) as raised:
            read_all(path)
        assert str(raised.value).startswith(str(path))
        assert "\n" not in str(raised.value)
    path.write_bytes(content)
    read_all(path)


def test_a_file_that_is_cut_off_or_too_long_is_refused(path: pathlib.Path) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    for size in (0, 7, 8, 9, length // 2, 8 + length, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(TensorFileError, match=r"damaged|cut off"):
            read_all(path)
    path.write_bytes(content + b"x")
    with pytest.raises(
        TensorFileError, match=r"has [\d,]+ bytes: .* not fully covered"
    ):
        read_all(path)


def test_files_of_others_are_refused_by_what_they_are(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "other.safetensors"
    with pytest.raises(FileNotFoundError, match=f"^there is no file {path}$"):
        tensor_file.open_file(path)
    path.write_bytes(b"PK\x03\x04 a zip file, a picture, anything of this name")
    with pytest.raises(TensorFileError, match="no safetensors file, or is cut off"):
        tensor_file.open_file(path)
    safetensors.numpy.save_file({"a": NUMBERS}, path)
    with pytest.raises(TensorFileError, match="must have the text 'vaswani_jax', "):
        tensor_file.open_file(path)
    tensor_file.write(path, {"a": NUMBERS}, {"format_version": "2"})
    with pytest.raises(TensorFileError, match="format version '2', and must have '1'"):
        tensor_file.open_file(path)


def test_a_type_that_numpy_does_not_know_is_refused(path: pathlib.Path) -> None:
    content = path.read_bytes()
    assert content.count(b'"U8","shape":[7]') == 1
    length = int.from_bytes(content[:8], "little") + 5
    content = content.replace(b'"U8","shape":[7]', b'"F8_E4M3","shape":[7]')
    path.write_bytes(length.to_bytes(8, "little") + content[8:])
    with pytest.raises(TensorFileError, match="no attribute 'float8_e4m3fn'"):
        tensor_file.open_file(path).read("b/")


def test_the_old_file_stays_when_the_new_one_cannot_be_written(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    content = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        tensor_file.write(path, {"a": NUMBERS + 1}, {})
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_directory_of_this_ending_is_no_such_file(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "run.safetensors"
    assert tensor_file.is_tensor_file(directory)
    directory.mkdir()
    assert not tensor_file.is_tensor_file(directory)
