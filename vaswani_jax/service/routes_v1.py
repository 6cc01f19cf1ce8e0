"""The routes under /v1: translate, score, attention, models, languages, page."""

import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import fastapi
import numpy as np
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from jaxtyping import Float

from vaswani_jax.core import locales
from vaswani_jax.pages import build
from vaswani_jax.service import (
    background,
    jobs,
    language_names,
    messages,
    page_writer,
    refusals,
    translations,
)
from vaswani_jax.service.models import Direction, Models, ServedModel
from vaswani_jax.service.refusals import Refusal

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.ErrorAnswer, "description": text}
    for status, text in {
        400: "The body is not JSON.",
        401: "The server needs a key.",
        408: "The request did not arrive in time.",
        413: "The texts are longer or more than the server allows.",
        415: "The header Content-Type does not say that the body is JSON.",
        422: "A field is wrong, or the model cannot answer.",
        503: "The server is starting, ends, or has too much to do: see Retry-After.",
        504: "The request took too long.",
    }.items()
}
EVENTS = "text/event-stream"
# The types of bodies that FastAPI reads as JSON.
JSON_TYPE = re.compile(r"application/([^/]*\+)?json")


class _StrictRequest(fastapi.Request):
    async def json(self) -> Any:
        """Return the value of the body.

        Raises:
            HTTPException: It is not JSON with one meaning.
        """
        try:
            return messages.read_json(await self.body())
        except ValueError as error:
            raise fastapi.HTTPException(400, f"the body is not JSON: {error}") from None


class _StrictRoute(APIRoute):
    def get_route_handler(
        self,
    ) -> Callable[[fastapi.Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests whose JSON has one meaning."""
        handle = super().get_route_handler()

        async def handle_strictly(request: fastapi.Request) -> Response:
            if request.method == "POST":
                _check_type(request.headers.get("content-type", ""))
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


def _check_type(content_type: str) -> None:
    """Refuse a body that FastAPI would not read as JSON."""
    if not JSON_TYPE.fullmatch(content_type.partition(";")[0].strip().lower()):
        raise Refusal(
            415,
            f"the body must be JSON, got the type {content_type[:100]!r}: send the "
            "header Content-Type: application/json",
        )


def make_router(models: Models, *, log_texts: bool) -> fastapi.APIRouter:
    """Return the routes.

    Args:
        models: The models that answer.
        log_texts: Whether the texts of requests are logged.
    """
    router = fastapi.APIRouter(prefix="/v1", route_class=_StrictRoute, responses=ERRORS)
    limits = models.limits

    @router.post(
        "/translate",
        response_model=messages.TranslateAnswer,
        summary="Translate texts",
        responses={200: {"content": {EVENTS: {"schema": {"type": "string"}}}}},
    )
    async def translate(
        request: fastapi.Request, body: messages.TranslateRequest
    ) -> Response:
        """Translate one text or many, sentence by sentence.

        With `stream`, the answer is `text/event-stream`: an event `sentence` for each
        sentence in its order, then `done` with the whole answer, or `error`.
        """
        make_job = functools.partial(
            jobs.make_job, body, models, deadline=jobs.deadline_of(request, limits)
        )
        # A long glossary takes a moment to check: other requests have their turn.
        job = await background.run(make_job) if body.glossary else make_job()
        if log_texts:
            jobs.log(job)
        if body.stream:
            events = translations.stream(job)
            # A failure before the first sentence still has a status of its own.
            first = await refusals.answer_or_refuse(anext(events))
            return StreamingResponse(_events(job, first, events), media_type=EVENTS)
        results = await refusals.answer_or_refuse(translations.translate(job))
        return _json(_translated(job, results))

    @router.post(
        "/score", response_model=messages.ScoreAnswer, summary="Score translations"
    )
    async def score(request: fastapi.Request, body: messages.ScoreRequest) -> Response:
        """Return the probabilities of given translations, a line each."""
        served, direction = jobs.choose(body, models)
        sources, targets = jobs.as_list(body.text), jobs.as_list(body.translation)
        if len(sources) != len(targets):
            raise Refusal(
                422,
                f"{len(sources)} texts need as many translations, got {len(targets)}",
                field="translation",
            )
        jobs.check_size(sources, limits, extra_texts=targets)
        jobs.check_pairs(served, direction, sources, targets)
        lines = [direction.tag + source for source in sources]
        scores = await refusals.answer_or_refuse(
            served.engine.score(
                lines, targets, deadline=jobs.deadline_of(request, limits)
            )
        )
        results = [
            messages.Score(
                score=score.log_prob,
                tokens=[
                    messages.Token(text=token, log_prob=log_prob)
                    for token, log_prob in zip(
                        score.tokens, score.log_probs, strict=True
                    )
                ],
            )
            for score in scores
        ]
        return _json(
            messages.ScoreAnswer(**_answer(served, direction), results=results)
        )

    @router.post(
        "/attention",
        response_model=messages.AttentionAnswer,
        summary="Show all attention weights",
    )
    async def attention(
        request: fastapi.Request, body: messages.AttentionRequest
    ) -> Response:
        """Return the weights of all layers and heads for one sentence."""
        served, direction = jobs.choose(body, models)
        target = body.translation
        jobs.check_size([body.text], limits, extra_texts=[target or ""])
        line = direction.tag + body.text
        targets = None if target is None else [target]
        jobs.check_pairs(
            served, direction, [body.text], targets, limit=build.MAX_TOKENS
        )
        [pair] = await refusals.answer_or_refuse(
            served.engine.attend(
                [line],
                targets,
                deadline=jobs.deadline_of(request, limits),
            )
        )
        if len(pair.ids) > build.MAX_TOKENS:
            raise Refusal(
                422,
                f"text: its translation has {len(pair.ids) - 1:,} subwords, and at "
                f"most {build.MAX_TOKENS - 1:,} are allowed; send a shorter text",
                field="text",
            )
        weights = pair.attention
        return _json(
            messages.AttentionAnswer(
                **_answer(served, direction),
                text=body.text,
                translation=pair.text,
                source_tokens=list(weights.source),
                target_in=list(weights.target_in),
                target_out=list(weights.target_out),
                log_probs=list(pair.log_probs),
                encoder=_rounded(weights.encoder),
                decoder=_rounded(weights.decoder),
                memory=_rounded(weights.memory),
            )
        )

    @router.get(
        "/models", response_model=messages.ModelsAnswer, summary="List the models"
    )
    async def list_models() -> Response:
        """Return the models, the default first, and the limits of requests."""
        entries = [_model_entry(served) for served in models.all]
        fields = ("texts", "characters", "n_best", "length_penalties", "seconds")
        values = {field: getattr(limits, field) for field in fields}
        beams = [
            size
            for served_model in models.all
            for size in served_model.engine.limits.beam_sizes
        ]
        values["n_best"] = min(limits.n_best, max(beams))
        return _json(
            messages.ModelsAnswer(models=entries, limits=messages.LimitsEntry(**values))
        )

    @router.get(
        "/languages",
        response_model=messages.LanguagesAnswer,
        summary="List the languages",
    )
    async def list_languages() -> Response:
        """Return the languages of texts, and what each can be translated to."""
        entries = [
            messages.LanguageEntry(
                code=code, name=language_names.name(code), targets=list(targets)
            )
            for code, targets in models.targets_by_source().items()
        ]
        return _json(messages.LanguagesAnswer(languages=entries))

    writer = page_writer.PageWriter()

    @router.get(
        "/page",
        response_model=None,
        summary="Show one sentence as a page",
        responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
    )
    async def page(
        request: fastapi.Request,
        text: str,
        model: str | None = None,
        source: str | None = None,
        target: str | None = None,
        translation: str | None = None,
    ) -> Response:
        """Return the page of `vaswani page` for one sentence: its attention."""
        served, direction = models.choose(model=model, source=source, target=target)
        jobs.check_size([text], limits, extra_texts=[translation or ""])
        html = await refusals.answer_or_refuse(
            writer.write(
                served,
                direction.tag + text,
                target=translation,
                deadline=jobs.deadline_of(request, limits),
            )
        )
        return HTMLResponse(html.text, headers={"Content-Security-Policy": html.policy})

    return router


def _answer(served: ServedModel, direction: Direction) -> dict[str, str]:
    return {
        "model": served.name,
        "source": locales.web_tag(direction.source),
        "target": locales.web_tag(direction.target),
    }


def _translated(
    job: translations.TranslationJob, results: Sequence[messages.Result]
) -> messages.TranslateAnswer:
    return messages.TranslateAnswer(
        **_answer(job.served, job.direction), results=list(results)
    )


async def _events(
    job: translations.TranslationJob,
    first: translations.Event,
    later: AsyncIterator[translations.Event],
) -> AsyncIterator[bytes]:
    """Yield the events of a streamed answer."""
    event = first
    try:
        while isinstance(event, messages.SentenceEvent):
            yield _event("sentence", messages.to_json(event))
            event = await anext(later)
        yield _event("done", messages.to_json(_translated(job, event)))
    except refusals.ENGINE_ERRORS as error:
        yield _error_event(refusals.of_engine(error))
    except Exception:
        yield _error_event(Refusal(500, "the server failed"))
        raise  # The guard logs it.
    finally:
        await later.aclose()  # type: ignore[attr-defined]


def _error_event(refusal: Refusal) -> bytes:
    content = {"status": refusal.status, **refusals.content(refusal)}
    return _event("error", json.dumps(content).encode())


def _event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def _json(message: messages.Message) -> Response:
    return Response(messages.to_json(message), media_type="application/json")


def _model_entry(served: ServedModel) -> messages.ModelEntry:
    translator = served.engine.translator
    return messages.ModelEntry(
        name=served.name,
        directions=[
            messages.DirectionEntry(
                source=locales.web_tag(direction.source),
                target=locales.web_tag(direction.target),
            )
            for direction in served.directions
        ],
        checkpoint=translator.checkpoint_name,
        parameters=translator.num_parameters,
        beam_sizes=list(served.engine.limits.beam_sizes),
        length_penalty=served.settings.search.length_penalty,
    )


def _rounded(weights: Float[np.ndarray, "N H Q K"]) -> messages.Weights:
    return np.round(weights.astype(np.float64), 6).tolist()
