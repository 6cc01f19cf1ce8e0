"""Make the page of a run: what its models do with each of some lines."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from vaswani_jax import __version__
from vaswani_jax.core import languages, locales
from vaswani_jax.inference import arguments, line_warnings, trees
from vaswani_jax.inference.results import AttendedPair
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import contents, search_tree, words

MAX_SENTENCES = 50
MAX_TOKENS = 128
# The most that a page of several models has: each has all weights of its own.
MAX_MODELS = 12
MAX_SENTENCES_OF_MODELS = 2


def make_page(
    translators: Translator | Iterable[Translator],
    lines: Sequence[str],
    *,
    targets: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
    max_tokens: int = MAX_TOKENS,
) -> contents.Page:
    """Return what a model does with lines: its translations and their attention.

    An empty line is a sentence of end marks alone. Warns of characters that the
    vocabulary lacks, and of plain text for a parser (logger `vaswani_jax`).

    >>> translator = vaswani_jax.load("runs/demo")  # doctest: +SKIP
    >>> page = make_page(translator, ["3 hours ago"])  # doctest: +SKIP
    >>> page.sentences[0].views[0].text  # doctest: +SKIP
    'vor 3 Stunden'

    Args:
        translators: A model or an ensemble; or several of one run, as its checkpoints,
            each of which is used before the next is asked for.
        lines: At most 50 source lines, and 2 for several translators.
        targets: A translation of each line, to show instead of the best found.
        names: The names of the translators; by default those of their checkpoints.
        title: The heading of the page.
        max_tokens: The most subwords that either side of a sentence may have, the end
            mark included.

    Raises:
        TypeError: `lines` or `targets` is one string, or not all are strings.
        ValueError: There are no lines or too many, or a line or its translation has too
            many subwords; or as `Translator.attention`.
    """
    lines = arguments.check_lines(lines, "lines")
    if targets is not None:
        targets = arguments.check_lines(targets, "targets")
        arguments.check_equal_numbers(lines=lines, targets=targets)
    if isinstance(translators, Translator):
        translators = [translators]
    pages: list[contents.Page] = []
    if not any(line.strip() for line in lines):
        raise ValueError("a page needs a line with text, got none")
    for number, translator in enumerate(translators):
        check_size(len(lines), num_models=number + 1)
        if not pages:
            # Before `_warn`, which reads trees without the numbers of their lines.
            if targets is not None and translator.vocabulary.is_trees:
                trees.check_trees(lines, targets, first_line=1)
            _warn(translator, lines, targets)
        name = translator.checkpoint_name if names is None else names[number]
        model = contents.Model(name, _step(translator))
        views = _views(translator, lines, targets, max_tokens=max_tokens)
        pages.append(_page(translator, lines, model=model, views=views))
    if not pages:
        raise ValueError("a page needs a translator, got none")
    return dataclasses.replace(_join(pages), title=title)


def check_size(num_lines: int, *, num_models: int) -> None:
    """Refuse more lines or models than a page has room for.

    Raises:
        ValueError: Has the rule.
    """
    if num_lines > MAX_SENTENCES:
        raise ValueError(
            f"a page has at most {MAX_SENTENCES} sentences, got {num_lines:,}"
        )
    if num_models > MAX_MODELS:
        raise ValueError(
            f"a page has at most {MAX_MODELS} checkpoints, got {num_models}"
        )
    if num_models > 1 and num_lines > MAX_SENTENCES_OF_MODELS:
        raise ValueError(
            f"a page of several checkpoints has at most {MAX_SENTENCES_OF_MODELS} "
            f"sentences, got {num_lines:,}"
        )


def spread(steps: Sequence[int], count: int) -> list[int]:
    """Return at most `count` steps, evenly spread, the first and the last included.

    >>> spread([10, 20, 30, 40, 50], 3), spread([10, 20], 3)
    ([10, 30, 50], [10, 20])
    """
    if len(steps) <= count:
        return list(steps)
    last = len(steps) - 1
    return [steps[round(n * last / (count - 1))] for n in range(count)]


def _views(
    translator: Translator,
    lines: Sequence[str],
    targets: Sequence[str] | None,
    *,
    max_tokens: int,
) -> list[contents.View]:
    vocabulary = translator.vocabulary
    _check_lengths("source", vocabulary.encode(lines), max_tokens)
    if targets is not None:
        _check_lengths("target", vocabulary.encode(targets, target=True), max_tokens)
    pairs = translator.attend(lines, targets)
    # An end mark counts, whether the search has reached it or not.
    outputs = [pair.ids[:-1] for pair in pairs]
    _check_lengths("translation", outputs, max_tokens)
    searches: Sequence[contents.Search | None] = [None] * len(pairs)
    if targets is None:
        searches = search_tree.search_trees(translator, lines)
    return [
        contents.View(
            text=pair.text,
            attention=pair.attention,
            target_words=words.of_target(
                line, pair.ids, vocabulary=vocabulary, data=translator.config.data
            ),
            log_probs=pair.log_probs,
            search=search if search and _has_found(search, pair) else None,
        )
        for line, pair, search in zip(lines, pairs, searches, strict=True)
    ]


def _has_found(search: contents.Search, pair: AttendedPair) -> bool:
    """Return whether a recorded search has found a translation.

    It may find another one whose score differs in the last digits only.
    """
    return search.finished[0].tokens == pair.attention.target_out


def _check_lengths(side: str, ids: Sequence[Sequence[int]], max_tokens: int) -> None:
    for number, tokens in enumerate(ids, start=1):
        if len(tokens) >= max_tokens:
            raise ValueError(
                f"{side}, line {number}: {len(tokens) + 1:,} tokens are more than "
                f"max_tokens={max_tokens}"
            )


def _page(
    translator: Translator,
    lines: Sequence[str],
    *,
    model: contents.Model,
    views: Sequence[contents.View],
) -> contents.Page:
    """Return the page of one model."""
    vocabulary, data = translator.vocabulary, translator.config.data
    is_one_language = len(languages.target_locales(data)) == 1
    target = data.target_locale if is_one_language and not vocabulary.is_trees else ""
    sources = vocabulary.encode(lines)
    return contents.Page(
        title="",
        facts=_facts(translator, model),
        command="",
        source_language=locales.web_tag(data.source_locale),
        target_language=locales.web_tag(target),
        models=(model,),
        sentences=tuple(
            contents.Sentence(
                line=number,
                text=line,
                source_words=words.of_source(
                    line, ids, vocabulary=vocabulary, data=data
                ),
                views=(view,),
            )
            for number, (line, ids, view) in enumerate(
                zip(lines, sources, views, strict=True), start=1
            )
        ),
        heads=None,
    )


def _join(pages: Sequence[contents.Page]) -> contents.Page:
    """Return one page of the models of several, with the facts of the last.

    Raises:
        ValueError: The models read the lines as other subwords, or differ in depth or
            heads.
    """
    page = pages[-1]
    models = tuple(model for entry in pages for model in entry.models)
    facts = dict(page.facts)
    if len(pages) > 1:
        if len({str(_shapes(entry)) for entry in pages}) > 1:
            raise ValueError(
                "the models of a page must have one vocabulary and equal numbers of "
                "layers and heads"
            )
        facts["checkpoint"] = ", ".join(model.name for model in models)
    return dataclasses.replace(
        page,
        facts=facts,
        models=models,
        sentences=tuple(
            dataclasses.replace(
                sentences[0],
                views=tuple(view for sentence in sentences for view in sentence.views),
            )
            for sentences in zip(*(entry.sentences for entry in pages), strict=True)
        ),
    )


def _shapes(page: contents.Page) -> list[Any]:
    """Return what all models of a page have in common, sentence by sentence."""
    return [
        (view.attention.source, *(weights.shape[:2] for weights in _weights(view)))
        for sentence in page.sentences
        for view in sentence.views
    ]


def _weights(view: contents.View) -> list[Float[np.ndarray, "L H Q K"]]:
    return [getattr(view.attention, kind) for kind in contents.KINDS]


def _facts(translator: Translator, model: contents.Model) -> dict[str, str]:
    settings, vocabulary = translator.config, translator.vocabulary
    sizes, search, data = translator.members[0].model, settings.search, settings.data
    facts = {
        "checkpoint": model.name,
        "updates": "" if model.step is None else f"{model.step:,}",
        "languages": f"{data.source_locale} to {data.target_locale}",
        "model": (
            f"{sizes.encoder_layers} encoder and {sizes.decoder_layers} decoder "
            f"layers, {sizes.num_heads} heads, d_model {sizes.d_model}, d_ff "
            f"{sizes.d_ff}"
        ),
        "parameters": f"{translator.num_parameters:,}",
        "vocabulary": vocabulary.describe(),
        "search": (
            f"beam size {search.beam_size}, length penalty {search.length_penalty}"
        ),
        "program": f"vaswani-jax {__version__}",
    }
    if vocabulary.is_trees:
        facts["languages"] = f"{data.source_locale} to trees"
    if len(translator.members) > 1:
        facts["model"] = f"{len(translator.members)} models of {facts['model']}"
    return {label: fact for label, fact in facts.items() if fact}


def _step(translator: Translator) -> int | None:
    """Return the updates that all models have had; None if they differ or are 0."""
    steps = {member.checkpoint.step for member in translator.members}
    return (steps.pop() or None) if len(steps) == 1 else None


def _warn(
    translator: Translator, lines: Sequence[str], targets: Sequence[str] | None
) -> None:
    warnings = line_warnings.LineWarnings(translator.vocabulary, translator.config)
    warnings.count(lines, targets=targets or [])
    warnings.log()
