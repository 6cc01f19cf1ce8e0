"""Translate with an exported model, and compare with our own translations."""

import logging
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.checkpoints import bundle
from vaswani_jax.core import parsing, types
from vaswani_jax.core.config import SETTINGS, Config, DataConfig, SearchConfig
from vaswani_jax.data.prepared import PreparedData
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.evaluation import by_language
from vaswani_jax.exchange import stablehlo
from vaswani_jax.inference import beam_search, padding
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator

logger = logging.getLogger(__name__)

Engine = Callable[[Sequence[str]], list[str]]
BATCH_LINES = 16
# Beam search without what later runs could add: other engines lack that or define it
# otherwise. Each has a length penalty.
COMMON_SEARCH = {
    setting.name: setting.legacy
    for setting in SETTINGS.values()
    if setting.section == "search" and setting.legacy is not None
    if setting.name != "length_penalty_form"
}


def compare(
    translator: Translator,
    data: PreparedData,
    *,
    directory: pathlib.Path,
    form: str,
    quantization: str | None,
    lines: int | None,
) -> str:
    """Translate validation lines, or those of the test set, by an export and by us.

    Logs which lines and settings are not compared. Text that cannot be read is a
    warning: the export is complete without a comparison.

    Args:
        translator: The origin.
        data: Has a validation set, a test set or none: an imported model has none.
        directory: The export.
        form: Its format.
        quantization: Of CTranslate2's file; None tries float32 and int8.
        lines: How many to translate; with 0 the text is not read; None for all.

    Returns:
        A `format_agreement`; "" if there is nothing to compare.
    """
    if lines == 0:
        return ""
    splits = [split for split in ("valid", "test") if split in data.counts]
    if not splits:
        model = "this run" if data.counts else "an imported model"
        logger.info(
            f"note: {model} has no validation set and no test set: nothing is compared"
        )
        return ""
    vocabulary, search = translator.vocabulary, translator.config.search
    try:
        source, references = (side[:lines] for side in data.text(splits[0]))
    except (OSError, ValueError) as error:
        logger.warning(f"nothing is compared: {error}")
        return ""
    short = find_short_lines(source, vocabulary, search=search)
    if long := len(source) - len(short):
        logger.info(
            f"note: {long:,} of {len(source):,} lines have over "
            f"config.search.max_source_tokens={search.max_source_tokens} "
            "tokens: not compared"
        )
    source, references = ([side[n] for n in short] for side in (source, references))
    if not source:
        return ""
    if form == "bundle":
        engines = {"as configured": bundle_engine(directory, translator.config)}
        outputs = {name: translator.translate(source) for name in engines}
    else:
        outputs, engines = _search_in_common(
            translator,
            source,
            directory=directory,
            form=form,
            quantization=quantization,
        )
    outputs_by_engine = {name: engine(source) for name, engine in engines.items()}
    return format_agreement(
        outputs,
        outputs_by_engine,
        source=source,
        references=references,
        data=translator.config.data,
    )


def _search_in_common(
    translator: Translator,
    source: Sequence[str],
    *,
    directory: pathlib.Path,
    form: str,
    quantization: str | None,
) -> tuple[dict[str, list[str]], dict[str, Engine]]:
    """Return our translations and the engines, by the names of common searches."""
    search = translator.config.search
    common = {f"search.{key}": value for key, value in COMMON_SEARCH.items()}
    settings = parsing.override(translator.config, common)
    if settings.search != search:
        logger.info(
            "note: compared without your settings of lengths, repetition and sampling"
        )
    # Each engine has its own length penalty; without one all searches are the same.
    changes: dict[str, dict[str, Any]] = {
        "as configured": {**COMMON_SEARCH},
        "alpha 0": {**COMMON_SEARCH, "length_penalty": 0.0},
    }
    outputs = {
        name: translator.translate(source, **search_settings)
        for name, search_settings in changes.items()
    }
    engines = make_engines(
        directory,
        translator.vocabulary,
        form=form,
        settings=settings,
        quantization=quantization,
    )
    return outputs, engines


def bundle_engine(path: pathlib.Path, settings: Config) -> Engine:
    """Return the engine that translates with the model in a bundle."""
    member = Member(settings.model, bundle.read_checkpoint(path))
    vocabulary = bundle.read_vocabulary(path)
    return Translator(settings, vocabulary, members=[member]).translate


def find_short_lines(
    lines: Sequence[str], vocabulary: Vocabulary, *, search: SearchConfig
) -> list[int]:
    """Return the indices of the lines that our search takes in one piece.

    Other engines have no positions for longer ones.
    """
    longest = search.max_source_tokens - 1  # the end mark
    encoded = vocabulary.encode(lines)
    return [index for index, ids in enumerate(encoded) if len(ids) <= longest]


def format_agreement(
    outputs: Mapping[str, Sequence[str]],
    exported: Mapping[str, Sequence[str]],
    *,
    source: Sequence[str],
    references: Sequence[str],
    data: DataConfig,
) -> str:
    """Return a line an engine: BLEU, and in how many lines it agrees.

    Args:
        outputs: Ours, by the name of the search.
        exported: Another engine's, by a name that begins with that of the same search;
            one that begins with no such name is compared with the first of ours.
        source: The lines that were translated.
        references: A line each.
        data: The form of the text, hence the BLEU.
    """

    def score(lines: Sequence[str]) -> str:
        first = by_language.score_outputs(source, lines, references, data=data)[0]
        return f"{first.name} {first.value:.2f}"

    rows = [f"vaswani_jax, {name}: {score(lines)}" for name, lines in outputs.items()]
    for name, lines in exported.items():
        same = next(filter(name.startswith, outputs), next(iter(outputs)))
        equal = sum(a == b for a, b in zip(lines, outputs[same], strict=True))
        rows.append(
            f"exported, {name}: {score(lines)}; {equal:,} of {len(lines):,} lines "
            f"({equal / len(lines):.1%}) as vaswani_jax, {same}"
        )
    return "\n".join(rows)


def make_engines(
    directory: pathlib.Path,
    vocabulary: Vocabulary,
    *,
    form: str,
    settings: Config,
    quantization: str | None,
) -> dict[str, Engine]:
    """Load an export, by the search that its engine makes.

    An engine with another length penalty searches without one, or with its own.
    """
    search = settings.search
    plain = parsing.override(settings, {"search.length_penalty": 0.0}).search
    if form == "stablehlo":
        return {"as configured": stablehlo_engine(directory, vocabulary, search=search)}
    if form == "marian":
        return {"alpha 0": marian_engine(directory, plain)}
    return {
        f"{name}, {compute_type}": ctranslate2_engine(
            directory, vocabulary, search=engine_search, compute_type=compute_type
        )
        for compute_type in ([quantization] if quantization else ["float32", "int8"])
        for name, engine_search in (("alpha 0", plain), ("its own penalty", search))
    }


def ctranslate2_engine(
    directory: pathlib.Path,
    vocabulary: Vocabulary,
    *,
    search: SearchConfig,
    compute_type: str,
) -> Engine:
    """Load CTranslate2 on what `ctranslate.save` has written."""
    import ctranslate2

    translator = ctranslate2.Translator(str(directory), compute_type=compute_type)

    def translate(batch: list[list[int]]) -> list[list[int]]:
        translations = translator.translate_batch(
            [[vocabulary.source.subword(token) for token in ids] for ids in batch],
            beam_size=search.beam_size,
            length_penalty=search.length_penalty,
            min_decoding_length=0,
            max_decoding_length=max(map(len, batch)) + 1 + search.max_extra_tokens,
        )
        return [
            [vocabulary.target.subword_id(name) for name in translation.hypotheses[0]]
            for translation in translations
        ]

    return lambda lines: _translate_by_length(
        lines, vocabulary=vocabulary, translate=translate
    )


def marian_engine(directory: pathlib.Path, search: SearchConfig) -> Engine:
    """Load transformers' MarianMTModel and MarianTokenizer."""
    import torch
    import transformers

    tokenizer: Any = transformers.MarianTokenizer.from_pretrained(str(directory))
    network: Any = transformers.MarianMTModel.from_pretrained(str(directory)).eval()

    def translate(line: str) -> str:
        if not line.strip():
            return ""
        inputs = tokenizer([line], return_tensors="pt")
        longest = inputs["input_ids"].shape[1] + search.max_extra_tokens
        with torch.no_grad():
            outputs = network.generate(
                **inputs,
                num_beams=search.beam_size,
                length_penalty=search.length_penalty,
                early_stopping="never",
                max_length=longest + 1,  # it counts the begin mark
                # Override generation_config.json: our search has no such settings.
                do_sample=False,
                min_length=0,
                no_repeat_ngram_size=0,
            )
        return str(tokenizer.decode(outputs[0], skip_special_tokens=True))

    return lambda lines: [translate(line) for line in lines]


def stablehlo_engine(
    directory: pathlib.Path, vocabulary: Vocabulary, *, search: SearchConfig
) -> Engine:
    """Run our search over the programs that `stablehlo.save` has written."""
    programs = stablehlo.load(directory)

    @jax.jit
    def search_batch(source: jax.Array) -> jax.Array:
        B, S = source.shape
        T = S + search.max_extra_tokens
        memory = programs.encode(source)

        def step(tokens: Any, beams: Any, position: Any) -> tuple[Any, Any]:
            return programs.decode_step(tokens, position, memory, beams)

        def reorder(beams: list[Any], origin: Any) -> list[Any]:
            ancestors = jnp.take_along_axis(beams[-1], origin[:, :, None], axis=1)
            return [*beams[:-1], ancestors]

        lengths = jnp.sum(source != types.PAD_ID, axis=1)
        options = beam_search.SearchOptions(
            beam_size=search.beam_size,
            alpha=search.length_penalty,
            penalty_form=search.length_penalty_form,
            buffer_lengths=(T,),
            max_length=T,
        )
        return beam_search.beam_search(
            beam_search.Stepper(step, reorder),
            stablehlo.empty_beams(programs.record, B=B, W=search.beam_size, T=T),
            max_lengths=jnp.where(lengths > 0, lengths + search.max_extra_tokens, 0),
            options=options,
        ).tokens[:, 0]

    def translate(batch: list[list[int]]) -> list[list[int]]:
        longest = max(map(len, batch)) + 1
        # Learned positions end where no line is longer.
        width = min(padding.padded_length(longest), search.max_source_tokens)
        marked = [[*ids, types.EOS_ID] for ids in batch]
        source = padding.pad(marked, rows=BATCH_LINES, length=max(width, longest))
        return np.asarray(search_batch(jnp.asarray(source)))[: len(batch)].tolist()

    return lambda lines: _translate_by_length(
        lines, vocabulary=vocabulary, translate=translate
    )


def _translate_by_length(
    lines: Sequence[str],
    *,
    vocabulary: Vocabulary,
    translate: Callable[[list[list[int]]], list[list[int]]],
) -> list[str]:
    """Translate lines in batches of similar lengths; an empty line stays empty."""
    encoded = vocabulary.encode(lines)
    order = sorted(
        (index for index, ids in enumerate(encoded) if ids),
        key=lambda index: len(encoded[index]),
    )
    outputs = [""] * len(lines)
    for start in range(0, len(order), BATCH_LINES):
        indices = order[start : start + BATCH_LINES]
        translations = translate([encoded[index] for index in indices])
        for index, ids in zip(indices, translations, strict=True):
            outputs[index] = vocabulary.decode(ids)
    return outputs
