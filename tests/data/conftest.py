import logging
import random

import pytest

from tests.data import small_text


@pytest.fixture(autouse=True)
def _info_is_logged(caplog):
    caplog.set_level(logging.INFO, logger="vaswani_jax")


@pytest.fixture
def text(tmp_path):
    """A directory with a small parallel text, some of whose pairs are of no use."""
    directory = tmp_path / "text"
    directory.mkdir()
    generator = random.Random(1)
    for split, size in small_text.SIZES.items():
        for ending in ("en", "de"):
            lines = [small_text.random_line(generator, 6) for _ in range(size)]
            if split == "train":
                lines[3 if ending == "en" else 5] = ""
                lines[7] = " "
                lines[11 if ending == "en" else 13] = " ".join(small_text.WORDS * 9)
            else:
                lines[: len(small_text.STRANGE)] = small_text.STRANGE[: size - 2]
            small_text.write_lines(directory / f"{split}.{ending}", lines)
    return directory
