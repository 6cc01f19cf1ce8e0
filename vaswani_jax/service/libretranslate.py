"""Answer the requests of LibreTranslate's clients as LibreTranslate does.

/translate and /detect take JSON, or a form with the query; /languages and
/frontend/settings take nothing.
Errors have its form, {"error": "..."}.
"""

import itertools
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import fastapi
from fastapi.responses import JSONResponse, Response

from vaswani_jax.core import locales
from vaswani_jax.service import (
    jobs,
    language_names,
    markup,
    messages,
    refusals,
    translations,
)
from vaswani_jax.service.detection import Detection, detect
from vaswani_jax.service.guard import bearer
from vaswani_jax.service.keys import Keys
from vaswani_jax.service.limits import Limits
from vaswani_jax.service.models import Models
from vaswani_jax.service.refusals import Refusal

ERROR = {"type": "object", "properties": {"error": {"type": "string"}}}
FIELDS = ("q", "source", "target", "format", "alternatives", "api_key", "secret")
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": ERROR}}}
    for status, text in {
        400: "The request is wrong, or a limit is exceeded.",
        403: "The key is wrong.",
        408: "The request did not arrive in time.",
        415: "The body is neither JSON nor a form.",
        503: "The server is starting, ends, or has too much to do: see Retry-After.",
        504: "The request took too long.",
    }.items()
}
# For /openapi.json: FastAPI reads no schema from a function that parses its own body.
TRANSLATE_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["q", "source", "target"],
    "properties": {
        "q": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
            ]
        },
        "source": {"type": "string", "description": "A language, or auto."},
        "target": {"type": "string"},
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0},
        "api_key": {"type": "string"},
    },
    "example": {"q": "3 hours ago", "source": "en", "target": "de"},
}
DETECT_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["q"],
    "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}},
    "example": {"q": "3 hours ago"},
}


def make_router(models: Models, *, keys: Keys, log_texts: bool) -> fastapi.APIRouter:
    """Return the routes.

    Args:
        models: The models that answer.
        keys: The keys of those who may use the models.
        log_texts: Whether the texts of requests are logged.
    """
    router = fastapi.APIRouter(responses=ERRORS)
    limits = models.limits

    @router.post(
        "/translate",
        summary="Translate as LibreTranslate does",
        openapi_extra=_body(TRANSLATE_FORM),
    )
    async def translate(request: fastapi.Request) -> Response:
        """Return `translatedText`, a text or a list as `q` is."""
        fields = await _read(request, keys, limits)
        texts = _texts(fields, limits)
        num_alternatives = _number(fields.get("alternatives", 0))
        is_html = _is_html(fields)
        pieces = [markup.split(text) for text in texts] if is_html else []
        if is_html:
            texts = list(map(markup.lines_of, pieces))
            num_alternatives = 0  # LibreTranslate gives none for HTML.
        source = _text(fields, "source")
        deadline = jobs.deadline_of(request, limits)
        detection: Detection | None = None
        target = _text(fields, "target")
        if source == "auto":
            [detection, *_] = await _detect("\n".join(texts), models, deadline)
            source = detection.language
            if _is_target(detection, target, models):
                has_alternatives = bool(num_alternatives)
                return JSONResponse(
                    _unchanged(
                        fields["q"], detection, has_alternatives=has_alternatives
                    )
                )
        body = messages.TranslateRequest(
            text=texts,
            source=source,
            target=target,
            n_best=num_alternatives + 1,
        )
        try:
            job = jobs.make_job(body, models, deadline=deadline)
        except refusals.Refusal as refusal:
            if refusal.field != "n_best":
                raise
            served, _ = jobs.choose(body, models)
            model_limits = served.engine.limits
            most = min(model_limits.n_best, max(model_limits.beam_sizes)) - 1
            raise refusals.Refusal(
                refusal.status,
                f"alternatives must be at most {most}, got {num_alternatives}",
                field="alternatives",
            ) from None
        if log_texts:
            jobs.log(job)
        results = await refusals.answer_or_refuse(translations.translate(job))
        is_list = isinstance(fields["q"], list)
        best = [result.translations[0].text for result in results]
        if is_html:
            best = list(map(markup.join, pieces, best))
        answer: dict[str, Any] = {"translatedText": best}
        if detection:
            answer["detectedLanguage"] = [_detected(detection)] * len(texts)
        if num_alternatives:
            answer["alternatives"] = [
                [translation.text for translation in result.translations[1:]]
                for result in results
            ]
        if not is_list:
            answer = {name: values[0] for name, values in answer.items()}
        return JSONResponse(answer)

    @router.post(
        "/detect",
        summary="Detect a language as LibreTranslate does",
        openapi_extra=_body(DETECT_FORM),
    )
    async def detect_language(request: fastapi.Request) -> Response:
        """Return the likeliest languages of a text, the best first."""
        fields = await _read(request, keys, limits)
        [text, *_] = _texts(fields, limits)
        detections = await _detect(text, models, jobs.deadline_of(request, limits))
        return JSONResponse(list(map(_detected, detections)))

    @router.get("/languages", summary="List languages as LibreTranslate does")
    async def languages() -> Response:
        """Return the languages of texts, and what each can be translated to."""
        targets = models.targets_by_source()
        codes = dict.fromkeys([*targets, *itertools.chain(*targets.values())])
        return JSONResponse(
            [
                {
                    "code": code,
                    "name": language_names.name(code),
                    "targets": list(targets.get(code, [])),
                }
                for code in codes
            ]
        )

    @router.get("/frontend/settings", summary="Show settings as LibreTranslate does")
    async def settings() -> Response:
        """Return the settings that LibreTranslate's own page asks for."""
        direction = models.all[0].directions[0]
        return JSONResponse(
            {
                "apiKeys": keys.are_needed,
                "charLimit": limits.characters,
                "filesTranslation": False,
                "frontendTimeout": 500,
                "keyRequired": keys.are_needed,
                "language": {
                    side: {
                        "code": locales.web_tag(locale),
                        "name": language_names.name(locale),
                    }
                    for side, locale in (
                        ("source", direction.source),
                        ("target", direction.target),
                    )
                },
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    return router


def _is_target(detection: Detection, target: str, models: Models) -> bool:
    """Return whether a text is in the target language, and no model rewrites it.

    Two variants, as zh-Hans and zh-Hant, differ, and so do two regions; a language
    without one has them all.
    """
    # A model that was loaded again may have other languages.
    available = models.targets_by_source().get(detection.language, [])
    rank = language_names.rank(detection.language, target)
    tags = [locales.web_tag(locale) for locale in (detection.language, target)]
    regions = set(map(locales.region_code, tags)) - {""}
    have_variants = all("-" in tag for tag in tags)
    is_other_variant = len(regions) > 1 or (rank == 1 and have_variants)
    return (
        rank > 0
        and not is_other_variant
        and not any(language_names.rank(language, target) for language in available)
    )


def _unchanged(
    q: str | list[str], detection: Detection, *, has_alternatives: bool
) -> dict[str, Any]:
    """Return the answer for texts that are in the target language already."""
    is_list = isinstance(q, list)
    detected, alternatives = _detected(detection), list[str]()
    answer: dict[str, Any] = {
        "translatedText": q,
        "detectedLanguage": [detected] * len(q) if is_list else detected,
    }
    if has_alternatives:
        answer["alternatives"] = [alternatives] * len(q) if is_list else alternatives
    return answer


async def _detect(text: str, models: Models, deadline: float) -> Sequence[Detection]:
    """Return the likeliest languages of a text, or refuse it."""
    return await refusals.answer_or_refuse(detect(text, models, deadline=deadline))


def _detected(detection: Detection) -> dict[str, Any]:
    return {"confidence": detection.confidence, "language": detection.language}


def _body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the documentation of a body that is JSON or a form."""
    kinds = ("application/json", "application/x-www-form-urlencoded")
    content = {kind: {"schema": schema} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}


async def _read(request: fastapi.Request, keys: Keys, limits: Limits) -> dict[str, Any]:
    """Return the fields of a request that has a key: JSON, or a form with the query."""
    fields = await _fields(request, limits)
    _check_key(request, fields, keys)
    return fields


async def _fields(request: fastapi.Request, limits: Limits) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            fields = messages.read_json(body)
        except ValueError as error:
            raise Refusal(400, f"Invalid JSON format: {error}") from None
        if not isinstance(fields, dict):
            raise Refusal(400, "Invalid JSON format: it must be an object")
    elif kind in ("", "application/x-www-form-urlencoded"):
        try:
            pairs = urllib.parse.parse_qsl(
                body.decode(),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=2 * len(FIELDS) + limits.texts,
            )
        except ValueError as error:
            raise Refusal(400, f"Invalid request: {error}") from None
        query = request.query_params.multi_items()
        fields = {**_collect(query), **_collect(pairs)}
    else:
        raise Refusal(
            415,
            "the body must be application/json or application/x-www-form-urlencoded",
        )
    for name in fields:
        if name not in FIELDS:
            raise Refusal(400, f"Invalid request: unknown parameter {name[:100]!r}")
    return fields


def _collect(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields of a form, where only `q` may be repeated.

    Raises:
        Refusal: Another field is repeated.
    """
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    for name, field_values in values.items():
        if len(field_values) > 1 and name != "q":
            raise Refusal(400, f"Invalid request: {name[:100]!r} is repeated")
    return {
        name: field_values if len(field_values) > 1 else field_values[0]
        for name, field_values in values.items()
    }


def _check_key(request: fastapi.Request, fields: Mapping[str, Any], keys: Keys) -> None:
    key = fields.get("api_key")
    if not isinstance(key, str | None):
        raise Refusal(403, "Invalid API key")
    if not keys.are_needed:
        return
    key = bearer(dict(request.headers.raw)) or key
    if not key:
        raise Refusal(400, "this server needs an API key: send it as api_key")
    if not keys.accept(key):
        raise Refusal(403, "Invalid API key")


def _texts(fields: Mapping[str, Any], limits: Limits) -> list[str]:
    q = fields.get("q")
    texts: list[Any] = q if isinstance(q, list) else [q]
    if not q or not all(isinstance(text, str) for text in texts):
        raise Refusal(400, "Invalid request: missing q parameter")
    _check_unicode(texts)
    if len(texts) > limits.texts or sum(map(len, texts)) > limits.characters:
        raise Refusal(
            400,
            f"Invalid request: it exceeds the limit of {limits.texts:,} texts and "
            f"{limits.characters:,} characters",
        )
    return texts


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not value or not isinstance(value, str):
        raise Refusal(400, f"Invalid request: missing {name} parameter")
    _check_unicode([value])
    return value


def _check_unicode(texts: Sequence[str]) -> None:
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        raise Refusal(400, "Invalid request: half of a surrogate pair") from None


def _is_html(fields: Mapping[str, Any]) -> bool:
    """Return whether the format is html; it is text by default."""
    form = fields.get("format")
    if form not in (None, "", "text", "html"):
        raise Refusal(400, "format must be text or html")
    return form == "html"


def _number(value: Any) -> int:
    """Return the number of alternatives, which a form gives as a text."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    is_digits = isinstance(value, str) and value.isascii() and value.isdecimal()
    if not (is_number or is_digits) or len(str(value)) > 9:
        raise Refusal(400, "Invalid request: alternatives parameter is not a number")
    return max(0, int(value))
