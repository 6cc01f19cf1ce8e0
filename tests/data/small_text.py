"""A small parallel text, some of whose pairs are of no use."""

import numpy as np
import pytest

from tests import settings
from vaswani_jax.data import prepared

WORDS = "ba ko ri tu sen mal do fi gra lo pe zu bako rituba senmal dofi".split()
# Lines whose text a careless reader or writer changes.
STRANGE = ["", "  two  spaces ", "tab\t", "a\u2028b\x0c\x85", "\u2581", "\0", "e\u0301"]
SIZES = {"train": 120, "valid": 9, "test": 6}


def random_line(generator, most):
    return " ".join(generator.choices(WORDS, k=generator.randint(1, most)))


def write_lines(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def read_lines(path):
    return path.read_bytes().decode().split("\n")[:-1]


def settings_of(text, **overrides):
    values = {
        "data.source": "text",
        "data.text_directory": str(text),
        "data.vocab_size": 40,
        "data.byte_fallback": False,
        "data.max_length": 30,
        "data.source_tokens_per_batch": 512,
        "data.target_tokens_per_batch": 512,
        "data.sentencepiece_sample_size": 1000,
    }
    for split in SIZES:
        values |= {f"data.{split}_source": f"{split}.en"}
        values |= {f"data.{split}_target": f"{split}.de"}
    return settings.small_settings(**(values | overrides))


def prepare(text, *, rebuild=False, required_fingerprint=lambda: None, **overrides):
    """The prepared data beside the text."""
    return prepared.open_or_prepare(
        settings_of(text, **overrides),
        text.with_name("data"),
        rebuild=rebuild,
        required_fingerprint=required_fingerprint,
    )


def forbidden(*args, **kwargs):
    raise AssertionError("called where the prepared data should serve")


def contents(directory):
    """Every file below a directory, with when it was written."""
    return {
        path.relative_to(directory): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


def sentences(file):
    """All sentences of a token file, as lists of ids."""
    lengths = file.lengths()
    ids, _ = file.rows(np.arange(len(file)), length=int(lengths.max()))
    return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]


def refusal(text, **overrides):
    """Return why prepared data is refused, after checking that it is not changed."""
    files_before = contents(text.with_name("data"))
    with pytest.raises(ValueError) as caught:
        prepare(text, **overrides)
    assert contents(text.with_name("data")) == files_before
    assert "--rebuild_data" in str(caught.value)
    return str(caught.value)
