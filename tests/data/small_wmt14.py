"""Archives with WMT14's names and layout and a few lines each, and their settings."""

import gzip
import io
import pathlib
import tarfile
from collections.abc import Callable
from typing import Any

from tests import settings
from tests import wmt14 as archives
from vaswani_jax.core import config

LINES = 40
EXTRA = {"de": "ß", "fr": "é", "en": ""}
TRAINING = {"de": 3, "fr": 5}  # archives that train a pair


def line(name: str, language: str, number: int) -> str:
    return f"{name.partition('.')[0]} line {number} {EXTRA[language]}{language}"


def content(name: str, language: str) -> bytes:
    lines = [line(name, language, number) for number in range(LINES)]
    if name.endswith("sgm"):
        lines = [f'<seg id="{n + 1}">{text}</seg>' for n, text in enumerate(lines)]
        lines = ["<srcset>", "<doc>", *lines, "</doc>", "</srcset>"]
    text = ("\n".join(lines) + "\n").encode()
    return gzip.compress(text) if name.endswith("gz") else text


def archive(
    name: str, content: Callable[[str, str], bytes] = content
) -> io.BytesIO | None:
    if name not in archives.ARCHIVES:
        return None
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz" if name[-1] == "z" else "w") as tar:
        # What an archive must not have: ways out of where it is unpacked.
        for path in (
            "../../../escaped",
            "/tmp/escaped_from_an_archive",
            "a/../../../e",
        ):
            info = tarfile.TarInfo(path)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"evil"))
        info = tarfile.TarInfo("training/link")
        info.type, info.linkname = tarfile.SYMTYPE, "../../../.."
        tar.addfile(info)
        for language in ("de", "fr"):
            for path, side in archives.files(name, language):
                data = content(pathlib.Path(path).name, side)
                info = tarfile.TarInfo(path)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    packed.seek(0)
    return packed


def training_pairs(language: str) -> int:
    return TRAINING[language] * LINES


def settings_of(
    directory: pathlib.Path, language: str = "de", **overrides: Any
) -> config.Config:
    return settings.small_settings(
        **{
            "data.source": f"tfds:wmt14_translate/{language}-en",
            "data.source_locale": "en",
            "data.target_locale": language,
            "data.tfds_directory": str(directory),
            "data.vocab_size": 90,
            "data.max_length": 60,
            "data.source_tokens_per_batch": 256,
            "data.target_tokens_per_batch": 256,
            "model.max_positions": 64,
            **overrides,
        }
    )
