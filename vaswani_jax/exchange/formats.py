"""Write a trained model for other programs, in one of several formats."""

import dataclasses
import json
import pathlib

from vaswani_jax.core import config, extras
from vaswani_jax.exchange import (
    ctranslate,
    marian_export,
    special_tokens,
    stablehlo,
)
from vaswani_jax.inference.translator import Translator

# The packages of each format that a base installation lacks.
PACKAGES: dict[str, list[str]] = {
    "ctranslate2": ["ctranslate2"],
    "marian": ["torch", "transformers"],
    "stablehlo": [],
}


def require(form: str) -> None:
    """Refuse a format whose packages are not installed, before any work.

    Raises:
        ImportError: Names them and how to install them.
    """
    extras.require(PACKAGES[form], extra="export", purpose=f"--format={form} needs")


def check_model(settings: config.Config, form: str) -> None:
    """Refuse a model that other programs cannot run.

    Raises:
        ValueError: Names the format and the setting.
    """
    if settings.model.deterministic_attention:
        raise ValueError(
            f"--format={form} cannot export config.model.deterministic_attention=True: "
            "other programs do not have it"
        )
    if settings.data.source == "treebank":
        raise ValueError(
            f"--format={form} cannot export a parser (config.data.source=treebank): "
            "other programs do not build trees"
        )


def save(
    directory: pathlib.Path,
    translator: Translator,
    *,
    form: str,
    quantization: str | None = None,
) -> None:
    """Write a model and the SentencePiece files that segment its text.

    Args:
        directory: The new directory.
        translator: The model, no ensemble.
        form: "ctranslate2", "marian" or "stablehlo".
        quantization: Of CTranslate2's file, "int8" and the like; None for float32.

    Raises:
        ValueError: The format has no such model.
        ImportError: A package of the format is not installed.
    """
    check_model(translator.config, form)
    params, vocabulary = translator.params, translator.vocabulary
    settings = _with_position_table(translator.config)
    if form == "ctranslate2":
        ctranslate.save(
            directory,
            params=params,
            model=settings.model,
            spellings=special_tokens.name_subwords(vocabulary),
            quantization=quantization,
        )
    elif form == "marian":
        marian_export.save(
            directory, params=params, settings=settings, vocabulary=vocabulary
        )
    else:
        stablehlo.save(
            directory,
            params=params,
            model=settings.model,
            vocab_size=vocabulary.size,
        )
        # Its users hand over ids, which may be others than SentencePiece's.
        for side, subwords in (
            ("source", vocabulary.source),
            ("target", vocabulary.target),
        ):
            spellings = json.dumps(subwords.spellings, ensure_ascii=False, indent=0)
            (directory / f"{side}.json").write_text(spellings, encoding="utf-8")
    (directory / "source.spm").write_bytes(vocabulary.source.reading_model)
    (directory / "target.spm").write_bytes(vocabulary.target.model)


def _with_position_table(settings: config.Config) -> config.Config:
    """Return settings with room for every position that the search may reach.

    Sinusoids have no limit, but other engines keep a table of them.
    """
    search, model = settings.search, settings.model
    if model.position_limit is not None:
        return settings
    longest = max(search.min_tokens, search.max_target_tokens)
    model = dataclasses.replace(model, max_positions=max(model.max_positions, longest))
    return dataclasses.replace(settings, model=model)
