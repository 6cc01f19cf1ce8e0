"""Section 6.1: what other engines need, and how near their translations are to ours."""

import dataclasses
import importlib.util
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import config, extras, parallel, types
from vaswani_jax.data import prepared, vocabulary
from vaswani_jax.evaluation import bleu as bleu_
from vaswani_jax.exchange import stablehlo
from vaswani_jax.inference import beam_search, padding
from vaswani_jax.inference.line_translator import LineTranslator

# What each format needs that the package does not.
NEEDS = {
    "ctranslate2": ["ctranslate2"],
    "marian": ["safetensors", "torch", "transformers"],
    "stablehlo": ["flatbuffers"],
}


def require(form: str) -> None:
    """Refuse a format whose packages are not there, before any work.

    Raises:
        ImportError: Names them and how to install them.
    """
    missing = [name for name in NEEDS[form] if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"--format={form} needs {', '.join(missing)}: "
            f"{extras.how_to_install('export')}"
        )


def compare(
    settings: config.Config,
    params: Any,
    data: prepared.PreparedData,
    directory: pathlib.Path,
    *,
    form: str,
    quantization: str | None,
    lines: int | None,
    log: Callable[[str], None],
) -> str:
    """Translate validation lines with an export and with its origin: the `table`.

    Args:
        settings: Of the model.
        params: Its parameters, on the host.
        data: Where the lines are from; without any, "" is all.
        directory: The export.
        form: Its format.
        quantization: Of CTranslate2's file; None tries float32 and int8.
        lines: How many; None takes all.
        log: Takes what is not compared.
    """
    if "valid" not in data.counts:
        log("note: an imported model has no validation set: nothing compared")
        return ""
    source, references = (side[:lines] for side in data.text("valid"))
    complete = whole(source, data.vocabulary, settings.search)
    if missing := len(source) - len(complete):
        log(
            f"note: {missing:,} of {len(source):,} lines have over "
            f"config.search.max_source_tokens={settings.search.max_source_tokens} "
            "tokens: not compared"
        )
    source, references = ([side[n] for n in complete] for side in (source, references))
    if not source:
        return ""
    shared = parallel.replicate(params)
    # What other engines have otherwise or not at all is left out; they have another
    # length penalty, too, but without one all are the same.
    same = dataclasses.replace(
        settings.search, min_tokens=1, max_tokens=0, no_repeat_ngram=0, sampling=False
    )
    if same != settings.search:
        log("note: compared without lengths, repetition and sampling of yours")
    plain = dataclasses.replace(same, length_penalty=0.0)
    ours: dict[str, list[str]] = {}
    for name, search in (("as configured", same), ("alpha 0", plain)):
        own = dataclasses.replace(settings, search=search)
        translator = LineTranslator(own, data.vocabulary)
        ours[name] = translator.translate(shared, source)
    found = of_format(form, directory, data.vocabulary, same, quantization=quantization)
    theirs = {name: engine(source) for name, engine in found.items()}
    return table(settings.data, references, ours, theirs)


def table(
    data: config.DataConfig,
    references: Sequence[str],
    ours: Mapping[str, Sequence[str]],
    theirs: Mapping[str, Sequence[str]],
) -> str:
    """A line an engine: BLEU, and in how many lines it agrees.

    Args:
        data: The form of the text, hence the BLEU.
        references: A line each.
        ours: Our outputs by the name of the search.
        theirs: Another engine's by a name that begins with that of the same search;
            one that begins with no such name is compared with the first of ours.
    """

    def bleu(outputs: Sequence[str]) -> str:
        found = bleu_.score_split(data, outputs, references)[0]
        return f"{found.name} {found.value:.2f}"

    lines = [f"vaswani_jax, {name}: {bleu(own)}" for name, own in ours.items()]
    for name, outputs in theirs.items():
        same = next((key for key in ours if name.startswith(key)), next(iter(ours)))
        pairs = zip(outputs, ours[same], strict=True)
        equal = sum(a == b for a, b in pairs)
        lines.append(
            f"exported, {name}: {bleu(outputs)}; {equal:,} of {len(outputs):,} lines "
            f"({equal / len(outputs):.1%}) as vaswani_jax, {same}"
        )
    return "\n".join(lines)


Engine = Callable[[Sequence[str]], list[str]]
ROWS = 16


def of_format(
    form: str,
    directory: pathlib.Path,
    subwords: vocabulary.Vocabulary,
    search: config.SearchConfig,
    *,
    quantization: str | None,
) -> dict[str, Engine]:
    """What runs an export, by the search it makes: as configured, or alpha 0.

    Args:
        form: "ctranslate2", "marian" or "stablehlo".
        directory: The export.
        subwords: The vocabulary.
        search: What is configured; engines with another length penalty have none.
        quantization: Of CTranslate2's file; None tries float32 and int8.
    """
    plain = dataclasses.replace(search, length_penalty=0.0)
    if form == "stablehlo":
        return {"as configured": exported(directory, subwords, search)}
    if form == "marian":
        return {"alpha 0": marian(directory, subwords, plain)}
    return {
        f"{name}, {compute}": ctranslate2(
            directory, subwords, own, compute_type=compute
        )
        for compute in ([quantization] if quantization else ["float32", "int8"])
        for name, own in (("alpha 0", plain), ("its own penalty", search))
    }


def whole(
    lines: Sequence[str],
    subwords: vocabulary.Vocabulary,
    search: config.SearchConfig,
) -> list[int]:
    """Which lines our search takes in one piece; of others engines lack positions."""
    longest = search.max_source_tokens - 1  # the end mark
    ids = subwords.encode(lines)
    return [number for number, own in enumerate(ids) if len(own) <= longest]


def ctranslate2(
    directory: pathlib.Path,
    subwords: vocabulary.Vocabulary,
    search: config.SearchConfig,
    *,
    compute_type: str,
) -> Engine:
    """CTranslate2 on what `ctranslate.save` has written."""
    import ctranslate2 as engine

    loaded = engine.Translator(str(directory), compute_type=compute_type)

    def run(lines: Sequence[str]) -> list[str]:
        def found(batch: list[list[int]]) -> list[list[int]]:
            results = loaded.translate_batch(
                [[subwords.subword(token) for token in ids] for ids in batch],
                beam_size=search.beam_size,
                length_penalty=search.length_penalty,
                min_decoding_length=0,
                max_decoding_length=max(map(len, batch)) + 1 + search.max_extra_tokens,
            )
            return [
                [subwords.subword_id(name) for name in result.hypotheses[0]]
                for result in results
            ]

        return _by_length(lines, subwords, found)

    return run


def marian(
    directory: pathlib.Path,
    subwords: vocabulary.Vocabulary,
    search: config.SearchConfig,
) -> Engine:
    """transformers' MarianMTModel and MarianTokenizer on a directory of `marian`."""
    import torch
    import transformers

    tokenizer: Any = transformers.MarianTokenizer.from_pretrained(str(directory))
    network: Any = transformers.MarianMTModel.from_pretrained(str(directory)).eval()

    def run(lines: Sequence[str]) -> list[str]:
        outputs = []
        for line in lines:
            if not line.strip():
                outputs.append("")
                continue
            inputs = tokenizer([line], return_tensors="pt")
            longest = inputs["input_ids"].shape[1] + search.max_extra_tokens
            with torch.no_grad():
                found = network.generate(
                    **inputs,
                    num_beams=search.beam_size,
                    length_penalty=search.length_penalty,
                    early_stopping="never",
                    max_length=longest + 1,  # it counts the begin mark
                )
            outputs.append(tokenizer.decode(found[0], skip_special_tokens=True))
        return outputs

    return run


def exported(
    directory: pathlib.Path,
    subwords: vocabulary.Vocabulary,
    search: config.SearchConfig,
) -> Engine:
    """Our search over the programs that `stablehlo.save` has written."""
    programs = stablehlo.load(directory)

    @jax.jit
    def run_batch(source: jax.Array) -> jax.Array:
        B, S = source.shape
        T = S + search.max_extra_tokens
        memory = programs.encode(source)

        def step(tokens: Any, beams: Any, position: Any) -> tuple[Any, Any]:
            return programs.decode_step(tokens, position, memory, beams)

        def reorder(beams: list[Any], origin: Any) -> list[Any]:
            moved = jnp.take_along_axis(beams[-1], origin[:, :, None], axis=1)
            return [*beams[:-1], moved]

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
            jnp.where(lengths > 0, lengths + search.max_extra_tokens, 0),
            options,
        ).tokens[:, 0]

    def run(lines: Sequence[str]) -> list[str]:
        def found(batch: list[list[int]]) -> list[list[int]]:
            longest = max(map(len, batch)) + 1
            # Learned positions end where no line is longer.
            width = min(padding.padded_length(longest), search.max_source_tokens)
            marked = [[*ids, types.EOS_ID] for ids in batch]
            source = padding.pad(marked, rows=ROWS, length=max(width, longest))
            return np.asarray(run_batch(jnp.asarray(source)))[: len(batch)].tolist()

        return _by_length(lines, subwords, found)

    return run


def _by_length(
    lines: Sequence[str],
    subwords: vocabulary.Vocabulary,
    found: Callable[[list[list[int]]], list[list[int]]],
) -> list[str]:
    """The lines through batches of similar lengths; an empty one gives an empty one."""
    ids = subwords.encode(lines)
    order = sorted((n for n in range(len(ids)) if ids[n]), key=lambda n: len(ids[n]))
    outputs = [""] * len(lines)
    for start in range(0, len(order), ROWS):
        places = order[start : start + ROWS]
        results = found([ids[place] for place in places])
        for place, output in zip(places, results, strict=True):
            outputs[place] = subwords.decode(output)
    return outputs
