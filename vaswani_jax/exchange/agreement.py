"""Section 6.1: what other engines need, and how near their translations are to ours."""

import dataclasses
import importlib.util
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vaswani_jax.core import config, environment, parallel
from vaswani_jax.data import corpus
from vaswani_jax.exchange import engines
from vaswani_jax.inference import evaluators, translate

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
            f"{environment.how_to_install('export')}"
        )


def compare(
    settings: config.Config,
    params: Any,
    data: corpus.PreparedData,
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
    whole = engines.whole(source, data.vocabulary, settings.search)
    if missing := len(source) - len(whole):
        log(
            f"note: {missing:,} of {len(source):,} lines have over "
            f"config.search.max_source_tokens={settings.search.max_source_tokens} "
            "tokens: not compared"
        )
    source, references = ([side[n] for n in whole] for side in (source, references))
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
        translator = translate.Translator(own, data.vocabulary)
        ours[name] = translator.translate(shared, source, warn=log)
    found = engines.of_format(
        form, directory, data.vocabulary, same, quantization=quantization
    )
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
        found = evaluators.score(data, outputs, references)[0]
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
