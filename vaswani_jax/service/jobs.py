"""Make jobs of requests, and refuse those that exceed the limits."""

import itertools
import logging
import time
from collections.abc import Mapping, Sequence

import fastapi

from vaswani_jax.service import messages, translations
from vaswani_jax.service.limits import Limits, Search
from vaswani_jax.service.models import Direction, Models, ServedModel
from vaswani_jax.service.refusals import Refusal

logger = logging.getLogger(__name__)


def make_job(
    body: messages.TranslateRequest, models: Models, *, deadline: float
) -> translations.TranslationJob:
    """Return the job of a request.

    Raises:
        Refusal: A field is out of its range, or there is no such model.
    """
    served, direction = choose(body, models)
    limits = served.engine.limits
    texts = as_list(body.text)
    prefixes = [""] * len(texts) if body.prefix is None else as_list(body.prefix)
    if len(prefixes) != len(texts):
        raise Refusal(
            422,
            f"{len(texts)} texts need as many prefixes, got {len(prefixes)}",
            field="prefix",
        )
    check_size(texts, limits, extra_texts=prefixes)
    if any(prefixes):
        _check_prefixes(served, prefixes)
    return translations.TranslationJob(
        served=served,
        direction=direction,
        texts=texts,
        search=_search(body, served),
        prefixes=prefixes,
        glossary=_read_glossary(body, served),
        has_alignment=body.alignment,
        deadline=deadline,
    )


def log(job: translations.TranslationJob) -> None:
    """Log the texts of a job."""
    logger.info(f"{job.served.name}: {list(job.texts)}")


def choose(body: messages.Choice, models: Models) -> tuple[ServedModel, Direction]:
    """Return the model that a request asks for, and its languages.

    Raises:
        Refusal: There is no such model.
    """
    return models.choose(model=body.model, source=body.source, target=body.target)


def deadline_of(request: fastapi.Request, limits: Limits) -> float:
    """Return when a request is too late, in seconds of `time.monotonic()`."""
    arrival = getattr(request.state, "arrival", None)
    return (time.monotonic() if arrival is None else arrival) + limits.seconds


def as_list(value: str | list[str]) -> list[str]:
    """Return a list; one text becomes a list of one."""
    return [value] if isinstance(value, str) else value


def check_size(
    texts: Sequence[str], limits: Limits, *, extra_texts: Sequence[str]
) -> None:
    """Refuse more texts or characters than a request may have.

    Args:
        texts: The texts.
        limits: The limits of a request.
        extra_texts: Translations or prefixes, whose characters count, too.
    """
    if not texts:
        raise Refusal(
            422, "text must be a text or a list of at least one", field="text"
        )
    if len(texts) > limits.texts:
        raise Refusal(
            413,
            f"a request has at most {limits.texts:,} texts, got {len(texts):,}",
            field="text",
        )
    size = sum(map(len, [*texts, *extra_texts]))
    if size > limits.characters:
        raise Refusal(
            413,
            f"a request has at most {limits.characters:,} characters, got {size:,}",
            field="text",
        )


def check_pairs(
    served: ServedModel,
    direction: Direction,
    sources: Sequence[str],
    targets: Sequence[str] | None,
    *,
    limit: int | None = None,
) -> None:
    """Refuse texts of several lines, or with more subwords than the model takes.

    Args:
        served: The model.
        direction: Its languages.
        sources: The texts.
        targets: Their translations, if they are known.
        limit: A lower limit than the model's on subwords, the end mark included.
    """
    vocabulary, search = served.engine.translator.vocabulary, served.settings.search
    most = search.max_source_tokens
    _check_lines(sources, field="text")
    lines = [direction.tag + source for source in sources]
    # The end mark is a subword, too.
    _check_tokens(
        vocabulary.encode(lines), limit=min(most, limit or most) - 1, field="text"
    )
    if targets is not None:
        most = search.max_target_tokens
        _check_lines(targets, field="translation")
        try:
            target_ids = vocabulary.encode(targets, target=True)
        except ValueError as error:  # It is no tree.
            raise Refusal(422, str(error), field="translation") from None
        _check_tokens(
            target_ids, limit=min(most, limit or most) - 1, field="translation"
        )


def _search(body: messages.TranslateRequest, served: ServedModel) -> Search:
    limits, search = served.engine.limits, served.settings.search
    if body.beam_size not in (None, *limits.beam_sizes):
        sizes = " or ".join(map(str, limits.beam_sizes))
        raise Refusal(
            422, f"beam_size must be {sizes}, got {body.beam_size}", field="beam_size"
        )
    # The default is the first beam that has room for the requested translations.
    beam_size = body.beam_size or next(
        (size for size in limits.beam_sizes if size >= body.n_best),
        max(limits.beam_sizes),
    )
    max_n_best = min(limits.n_best, beam_size)
    if body.n_best > max_n_best:
        raise Refusal(
            422,
            f"n_best must be at most {max_n_best}, got {body.n_best}",
            field="n_best",
        )
    least, largest = limits.length_penalties
    penalty = body.length_penalty
    if penalty is not None and not least <= penalty <= largest:
        raise Refusal(
            422,
            f"length_penalty must be from {least:g} to {largest:g}, got {penalty:g}",
            field="length_penalty",
        )
    return Search(
        beam_size=beam_size,
        n_best=body.n_best,
        length_penalty=search.length_penalty if penalty is None else float(penalty),
    )


def _read_glossary(
    body: messages.TranslateRequest, served: ServedModel
) -> Mapping[str, str] | None:
    """Return the glossary of a request; None if it has none."""
    if not body.glossary:
        return body.glossary
    limits = served.engine.limits
    size = sum(map(len, itertools.chain(*body.glossary.items())))
    if size > limits.characters:
        raise Refusal(
            413,
            f"a glossary has at most {limits.characters:,} characters, got {size:,}",
            field="glossary",
        )
    try:
        finder = served.engine.translator.phrase_finder(None, glossary=body.glossary)
        finder.check_glossary()
    except ValueError as error:
        raise Refusal(422, str(error), field="glossary") from None
    return finder.glossary


def _check_prefixes(served: ServedModel, prefixes: Sequence[str]) -> None:
    """Refuse prefixes that the model cannot continue."""
    vocabulary = served.engine.translator.vocabulary
    if vocabulary.is_trees and any(map(str.strip, prefixes)):
        raise Refusal(422, "a parser takes no prefix", field="prefix")
    _check_lines(prefixes, field="prefix")
    _check_tokens(
        vocabulary.encode(prefixes, target=True),
        limit=served.settings.search.max_source_tokens,
        field="prefix",
    )


def _check_lines(lines: Sequence[str], *, field: str) -> None:
    for number, line in enumerate(lines, start=1):
        if (count := len(line.splitlines())) > 1:
            raise Refusal(
                422,
                f"{field}, number {number}: it has {count:,} lines, and one is "
                "allowed: send each by itself",
                field=field,
            )


def _check_tokens(encoded: Sequence[Sequence[int]], *, limit: int, field: str) -> None:
    for number, ids in enumerate(encoded, start=1):
        if len(ids) > limit:
            raise Refusal(
                422,
                f"{field}, number {number}: it has {len(ids):,} subwords, and at most "
                f"{limit:,} are allowed",
                field=field,
            )
