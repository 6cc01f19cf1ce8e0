"""Translate the texts of a request: sentences to the engine, texts to the client."""

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

from vaswani_jax.core import languages
from vaswani_jax.inference.results import Hypothesis
from vaswani_jax.service import alignments, messages, texts
from vaswani_jax.service.engine import Admission
from vaswani_jax.service.limits import Search
from vaswani_jax.service.models import Direction, ServedModel
from vaswani_jax.service.refusals import Refusal
from vaswani_jax.service.texts import Span

Event = messages.SentenceEvent | list[messages.Result]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationJob:
    """The texts of a request, and how to translate them.

    Attributes:
        served: The model.
        direction: The languages.
        texts: The texts.
        search: The search.
        prefixes: The beginning of each text's translation, "" for any.
        has_alignment: True if words are aligned.
        deadline: When it is too late, in seconds of `time.monotonic()`.
        glossary: The translations of terms; None for none.
    """

    served: ServedModel
    direction: Direction
    texts: Sequence[str]
    search: Search
    prefixes: Sequence[str]
    has_alignment: bool
    deadline: float
    glossary: Mapping[str, str] | None = None

    def separators(self, lines: Sequence[alignments.Line]) -> list[str]:
        """Return the text between each translation and the one before it.

        It follows from the target language of each line, which its code may name.
        """
        data = self.served.settings.data
        return [languages.piece_separator(line.text, data) for line in lines]

    def lines(self, text: str, spans: Sequence[Span]) -> list[alignments.Line]:
        """Return the line that the model translates for each sentence of a text.

        A language code before a sentence (`>>fra<<`) and the tags of corpora hold for
        those that follow, tags until the next code. A space separates them from the
        sentence, as in training.
        """
        lines, code, tags = [], "", ""
        for span in spans:
            sentence = text[span.begin : span.end]
            sentence_code, uncoded = languages.split_code(sentence)
            sentence_tags, _ = languages.split_corpus_tags(
                uncoded, self.served.settings.data
            )
            line_tags = self.direction.tag
            if sentence_code:
                code, tags = _add_space(sentence_code), _add_space(sentence_tags)
            elif sentence_tags:
                line_tags, tags = line_tags + code, _add_space(sentence_tags)
            else:
                line_tags += code + tags
            lines.append(alignments.Line(line_tags, sentence))
        return lines

    def prefixes_of(self, prefix: str, lines: Sequence[alignments.Line]) -> list[str]:
        """Return the prefix of each line: the first with text has that of the whole.

        A language code or tags may stand before it on lines of their own.
        """
        data = self.served.settings.data
        are_empty = (languages.is_empty(line.text, data) for line in lines)
        first = next((n for n, is_empty in enumerate(are_empty) if not is_empty), 0)
        return [prefix if n == first else "" for n in range(len(lines))]


def _add_space(tags: str) -> str:
    """Return tags with a space after them, unless there is one or there are none."""
    return f"{tags} " if tags and not tags[-1].isspace() else tags


async def translate(job: TranslationJob) -> list[messages.Result]:
    """Return the translations of all texts.

    Raises:
        OverloadedError, TooLateError, ValueError: As `Engine.translate`.
        Refusal: There are too many sentences.
    """
    spans = _split(job)
    lines_by_text = [
        job.lines(text, text_spans)
        for text, text_spans in zip(job.texts, spans, strict=True)
    ]
    lines = list(itertools.chain(*lines_by_text))
    prefixes = [
        line_prefix
        for prefix, text_lines in zip(job.prefixes, lines_by_text, strict=True)
        for line_prefix in job.prefixes_of(prefix, text_lines)
    ]
    hypotheses: list[list[Hypothesis]] = []
    pairs: Sequence[alignments.Pairs | None] = [None] * len(lines)
    with _admit(job, spans) as admission:
        if lines:
            hypotheses = await job.served.engine.translate(
                [line.text for line in lines],
                search=job.search,
                prefixes=prefixes if any(prefixes) else None,
                glossary=job.glossary,
                deadline=job.deadline,
                admission=admission,
            )
        if job.has_alignment:
            best = [n_best[0] for n_best in hypotheses]
            pairs = await alignments.align(
                job.served, lines, best, deadline=job.deadline, admission=admission
            )
    sentences = itertools.starmap(_Sentence, zip(lines, hypotheses, pairs, strict=True))
    results = []
    for text, text_spans in zip(job.texts, spans, strict=True):
        await asyncio.sleep(0)  # Other requests have their turn.
        text_sentences = list(itertools.islice(sentences, len(text_spans)))
        results.append(_result(text, text_spans, text_sentences, job=job))
    return results


async def stream(job: TranslationJob) -> AsyncIterator[Event]:
    """Yield each sentence when it and those before it are translated, then all results.

    Raises:
        OverloadedError, TooLateError, ValueError: As `Engine.translate`.
        Refusal: There are too many sentences.
    """
    spans = _split(job)
    with _admit(job, spans) as admission:
        async with contextlib.aclosing(_stream(job, spans, admission)) as events:
            async for event in events:
                yield event


async def _stream(
    job: TranslationJob, spans: Sequence[Sequence[Span]], admission: Admission
) -> AsyncGenerator[Event]:
    tasks: list[list[asyncio.Task[_Sentence]]] = []
    lines: list[list[alignments.Line]] = []
    turns = itertools.count()
    try:
        for text, prefix, text_spans in zip(
            job.texts, job.prefixes, spans, strict=True
        ):
            tasks.append([])
            lines.append(job.lines(text, text_spans))
            line_prefixes = job.prefixes_of(prefix, lines[-1])
            for line, line_prefix in zip(lines[-1], line_prefixes, strict=True):
                coroutine = _translate_sentence(
                    job,
                    line,
                    prefix=line_prefix,
                    admission=admission,
                    turn=next(turns),
                )
                tasks[-1].append(asyncio.create_task(coroutine))
                # It is cut into subwords, then other requests have their turn.
                await asyncio.sleep(0)
        results = []
        for index, (text, text_spans) in enumerate(zip(job.texts, spans, strict=True)):
            joining = texts.Joining(text)
            sentences: list[_Sentence] = []
            for span, task, separator in zip(
                text_spans, tasks[index], job.separators(lines[index]), strict=True
            ):
                sentence = await task
                # Other requests have their turn, also if all sentences are done.
                await asyncio.sleep(0)
                sentences.append(sentence)
                translation = sentence.n_best[0].text
                target = joining.add(span, translation, separator=separator)
                entry = _entry(span, target, sentence, job=job)
                yield messages.SentenceEvent(
                    **entry.model_dump(exclude_unset=True),
                    text_index=index,
                    source=text[span.begin : span.end],
                    target=translation,
                )
            await asyncio.sleep(0)
            results.append(_result(text, text_spans, sentences, job=job))
        yield results
    finally:
        for task in itertools.chain(*tasks):
            task.cancel()
            if task.done() and not task.cancelled():
                # Otherwise asyncio logs that the exception was never retrieved.
                task.exception()


def _admit(
    job: TranslationJob, spans: Sequence[Sequence[Span]]
) -> contextlib.AbstractContextManager[Admission]:
    """Keep room for all sentences of a request; see `Engine.admit`."""
    return job.served.engine.admit(sum(map(len, spans)))


def _split(job: TranslationJob) -> list[list[Span]]:
    """Return the sentences of each text.

    Raises:
        Refusal: They are more than an empty queue has room for.
    """
    spans = [texts.split(text, job.direction.source) for text in job.texts]
    most, number = job.served.engine.limits.queue, sum(map(len, spans))
    if number > most:
        raise Refusal(
            413,
            f"a request has at most {most:,} sentences, got {number:,}",
            field="text",
        )
    return spans


@dataclasses.dataclass(frozen=True)
class _Sentence:
    """A sentence that the model has translated.

    Attributes:
        line: What the model translated.
        n_best: Its translations, the best first.
        pairs: The aligned words of the best, if the request has alignments.
    """

    line: alignments.Line
    n_best: list[Hypothesis]
    pairs: alignments.Pairs | None


async def _translate_sentence(
    job: TranslationJob,
    line: alignments.Line,
    *,
    prefix: str,
    admission: Admission,
    turn: int,
) -> _Sentence:
    [n_best] = await job.served.engine.translate(
        [line.text],
        search=job.search,
        prefixes=[prefix] if prefix else None,
        glossary=job.glossary,
        deadline=job.deadline,
        admission=admission,
        turn=turn,
    )
    pairs = None
    if job.has_alignment:
        [pairs] = await alignments.align(
            job.served,
            [line],
            [n_best[0]],
            deadline=job.deadline,
            admission=admission,
            turn=turn,
        )
    return _Sentence(line, n_best, pairs)


def _result(
    text: str,
    spans: Sequence[Span],
    sentences: Sequence[_Sentence],
    *,
    job: TranslationJob,
) -> messages.Result:
    """Return a text's translations: the n-th joins each sentence's n-th, or last."""
    separators = job.separators([sentence.line for sentence in sentences])
    hypotheses = [sentence.n_best for sentence in sentences]
    translations: dict[str, messages.Translation] = {}
    best: texts.JoinedText | None = None
    for rank in range(max(map(len, hypotheses), default=1)):
        parts = [n_best[min(rank, len(n_best) - 1)] for n_best in hypotheses]
        translation = texts.join(
            text, spans, [part.text for part in parts], separators=separators
        )
        best = best or translation
        score = sum((part.score for part in parts), start=0.0)
        translations.setdefault(
            translation.text, messages.Translation(text=translation.text, score=score)
        )
    assert best is not None  # There is at least one rank.
    entries = [
        _entry(span, target, sentence, job=job)
        for span, target, sentence in zip(spans, best.spans, sentences, strict=True)
    ]
    return messages.Result(translations=list(translations.values()), sentences=entries)


def _entry(
    span: Span, target: Span, sentence: _Sentence, *, job: TranslationJob
) -> messages.Sentence:
    """Return the places of a sentence.

    Args:
        span: The sentence in its text.
        target: Its translation in that of the text.
        sentence: The sentence with its translations.
        job: The request.
    """
    best = sentence.n_best[0]
    entry = messages.Sentence(
        source_begin=span.begin,
        source_end=span.end,
        target_begin=target.begin,
        target_end=target.end,
        score=best.score,
    )
    if job.glossary is not None:
        entry = entry.model_copy(update={"missing_phrases": list(best.missing_phrases)})
    if best.is_cut:
        entry = entry.model_copy(update={"cut": True})
    if inherited_tags := sentence.line.tags.removeprefix(job.direction.tag):
        entry = entry.model_copy(update={"inherited_tags": inherited_tags})
    if not job.has_alignment:
        return entry
    shifted_pairs = alignments.shift(sentence.pairs, span.begin, target.begin)
    return entry.model_copy(update={"alignment": shifted_pairs})
