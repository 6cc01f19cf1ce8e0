"""Refuse a request, with a status and a reason that its client can read."""

from collections.abc import Awaitable, Mapping
from typing import TypeVar

from vaswani_jax.service.limits import OverloadedError, TooLateError

Value = TypeVar("Value")
# What an engine raises for a request that it does not answer.
ENGINE_ERRORS = (OverloadedError, TooLateError, ValueError)


class Refusal(Exception):  # noqa: N818 (an answer, not a failure)
    """An answer with a status of 4xx or 5xx.

    Attributes:
        status: The HTTP status.
        message: The fault and the rule.
        field: The field of the request that is wrong, or None.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Keep the answer's parts."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.headers = dict(headers or {})


def busy(seconds: float, message: str) -> Refusal:
    """Return a refusal of a request that may be sent again after some seconds."""
    return Refusal(503, message, headers={"Retry-After": str(max(1, round(seconds)))})


def of_engine(error: Exception) -> Refusal:
    """Return the refusal of a request that an engine did not answer.

    Args:
        error: One of `ENGINE_ERRORS`.
    """
    if isinstance(error, OverloadedError):
        return busy(error.retry_seconds, "the server has too much to do: try again")
    if isinstance(error, TooLateError):
        return Refusal(504, "the request took too long: send shorter texts")
    return Refusal(422, str(error))


async def answer_or_refuse(answer: Awaitable[Value]) -> Value:
    """Return the answer of an engine.

    Raises:
        Refusal: The engine raises an error.
    """
    try:
        return await answer
    except ENGINE_ERRORS as error:
        raise of_engine(error) from None


def content(refusal: Refusal) -> dict[str, object]:
    """Return the JSON of a refusal under /v1.

    >>> content(Refusal(422, "model: there is no 'a'", field="model"))
    {'error': {'message': "model: there is no 'a'", 'field': 'model'}}
    """
    return {"error": {"message": refusal.message, "field": refusal.field}}


def as_libretranslate(refusal: Refusal) -> tuple[int, dict[str, object]]:
    """Return the status and the JSON in which LibreTranslate's clients expect it.

    >>> as_libretranslate(Refusal(413, "the text is too long"))
    (400, {'error': 'the text is too long'})
    """
    status = 400 if refusal.status in (413, 422) else refusal.status
    return status, {"error": refusal.message}
