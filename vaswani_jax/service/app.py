"""The application of `vaswani serve`: its routes behind the guard."""

import asyncio
import contextlib
import dataclasses
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import fastapi
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from vaswani_jax import __version__
from vaswani_jax.service import (
    guard,
    libretranslate,
    refusals,
    routes_state,
    routes_v1,
)
from vaswani_jax.service.keys import Keys
from vaswani_jax.service.metrics import Metrics
from vaswani_jax.service.models import Models
from vaswani_jax.service.refusals import Refusal

logger = logging.getLogger(__name__)
# JSON may spell a character of the text, and one of the glossary, as a pair of
# surrogates: two escapes of six bytes. A pair of the glossary has eight bytes besides.
BYTES_OF_CHARACTER = 32
OTHER_BYTES = 65536


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The settings of an application.

    Attributes:
        hosts: The host names that it answers to; none for any.
        root_path: The path at which a proxy shows it, "" for the root.
        cors_origins: The origins whose pages may use it.
        keys: Who may use the models.
        log_texts: Whether texts are logged.
        reload_seconds: How often the models' files are looked at; 0 for never.
    """

    hosts: Sequence[str] = ()
    root_path: str = ""
    cors_origins: Sequence[str] = ()
    keys: Keys = dataclasses.field(default_factory=lambda: Keys([]))
    log_texts: bool = False
    reload_seconds: float = 0.0


class Service:
    """An ASGI application that answers with models.

    Attributes:
        state: Whether it is ready to answer.
        models: The models that answer.
        api: The application without its guard.
        metrics: The figures that it counts.
    """

    def __init__(
        self,
        models: Models,
        options: Options | None = None,
        *,
        on_ready: Callable[[], None] = lambda: None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        """Put the parts together; the models start when the server does.

        Args:
            models: The models that answer.
            options: The settings.
            on_ready: Called when all programs are compiled.
            on_failure: Called with the error if compiling fails.

        Raises:
            ValueError: The root path is, or begins, that of a route.
        """
        options = options or Options()
        self.models = models
        self.state = guard.State()
        self._options = options
        self._on_ready = on_ready
        self._on_failure = on_failure
        self._refreshing = asyncio.Lock()
        self._reloads_when_ready = False
        self.metrics = Metrics(models.figures)
        self.api = self._make_api()
        if options.keys.are_needed:
            _describe_key(self.api.openapi())
        limits = models.limits
        rules = guard.Rules(
            hosts=options.hosts,
            root_path=options.root_path,
            keys=options.keys,
            body_bytes=BYTES_OF_CHARACTER * limits.characters + OTHER_BYTES,
            routes=frozenset(self.api.openapi()["paths"]),
            seconds=limits.seconds,
        )
        self._app: guard.Application = guard.Guard(
            self._answer, rules=rules, state=self.state, metrics=self.metrics
        )
        if options.cors_origins:
            self._app = CORSMiddleware(
                self._app,
                allow_origins=options.cors_origins,
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type"],
                expose_headers=["Retry-After", "WWW-Authenticate"],
            )

    async def __call__(
        self, scope: guard.Scope, receive: guard.Receive, send: guard.Send
    ) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    async def refresh(self, *, has_urls: bool) -> None:
        """Load the models whose files have changed, if the server is ready.

        Args:
            has_urls: As for `Models.refresh`.
        """
        async with self._refreshing:
            if self.state.status == "ready":
                await self.models.refresh(has_urls=has_urls)

    async def reload(self) -> None:
        """Load the changed models, and those at URLs, at once or when it is ready."""
        if self.state.status == "starting":
            self._reloads_when_ready = True
            return
        await self.refresh(has_urls=True)

    async def drain(self, *, seconds: float) -> None:
        """Refuse further requests, and wait for those that were accepted.

        Args:
            seconds: The longest wait.
        """
        self.state.status = "draining"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.state.in_progress:
                    await asyncio.sleep(0.02)

    async def _answer(
        self, scope: guard.Scope, receive: guard.Receive, send: guard.Send
    ) -> None:
        """Answer a request that keeps the rules, with the models of its begin."""
        is_request = scope["type"] == "http"
        if is_request and not guard.path_of(scope):
            # The links of the page are relative to the root path with a slash.
            root = f"{self._options.root_path}/"
            await RedirectResponse(root, status_code=308)(scope, receive, send)
            return
        with contextlib.ExitStack() as stack:
            if is_request and guard.needs_models(guard.path_of(scope)):
                stack.enter_context(self.models.request())
            await self.api(scope, receive, send)

    def _make_api(self) -> fastapi.FastAPI:
        options = self._options
        api = fastapi.FastAPI(
            title="vaswani serve",
            description="Translate with the models of this server.",
            version=__version__,
            docs_url=None,
            redoc_url=None,
            # A redirect would name http, also behind a proxy with TLS.
            redirect_slashes=False,
            lifespan=self._live,
        )
        routers = (
            routes_v1.make_router(self.models, log_texts=options.log_texts),
            libretranslate.make_router(
                self.models, keys=options.keys, log_texts=options.log_texts
            ),
            routes_state.make_router(
                self.models, state=self.state, figures=self.metrics
            ),
        )
        for router in routers:
            _check_root_path(options.root_path, [*api.routes, *router.routes])
            api.include_router(router)
        api.add_exception_handler(Refusal, _refuse)
        api.add_exception_handler(Exception, _fail)
        api.add_exception_handler(HTTPException, _refuse_http)
        api.add_exception_handler(RequestValidationError, _refuse_fields)
        return api

    @contextlib.asynccontextmanager
    async def _live(self, api: fastapi.FastAPI) -> AsyncIterator[None]:
        """Prepare the models while the server starts, and end them after it."""
        del api
        tasks = [asyncio.create_task(self._start())]
        if self._options.reload_seconds:
            tasks.append(asyncio.create_task(self._watch()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.models.drain()

    async def _start(self) -> None:
        try:
            await self.models.start()
        except Exception as error:
            if self._on_failure is None:
                raise
            self._on_failure(error)
            return
        if self.state.status == "starting":
            self.state.status = "ready"
            self._on_ready()
            if self._reloads_when_ready:
                await self.reload()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._options.reload_seconds)
            await self.refresh(has_urls=False)


def _describe_key(description: dict[str, Any]) -> None:
    """Add to an OpenAPI description which operations need a key in a header."""
    scheme = {"type": "http", "scheme": "bearer"}
    description["components"]["securitySchemes"] = {"key": scheme}
    for path, methods in description["paths"].items():
        for operation in methods.values():
            if guard.needs_header(path):
                operation["security"] = [{"key": []}]


def _check_root_path(root_path: str, routes: Sequence[BaseRoute]) -> None:
    """Refuse a root path below which a request could mean two routes.

    A proxy may pass on a path with the root path or without: `/translate` would be the
    route, or the page of a server that is shown there.
    """
    for route in routes:
        path = getattr(route, "path", "")
        if root_path and f"{path}/".startswith(f"{root_path}/"):
            raise ValueError(
                f"--root_path={root_path} hides the route {path}: choose another path, "
                "such as /mt"
            )


async def _refuse(request: fastapi.Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    status, content = refusal.status, refusals.content(refusal)
    if not guard.path_of(request.scope).startswith("/v1/"):
        status, content = refusals.as_libretranslate(refusal)
    return Response(
        json.dumps(content),
        status_code=status,
        headers=refusal.headers,
        media_type="application/json",
    )


async def _fail(request: fastapi.Request, error: Exception) -> Response:
    del error  # The guard logs it.
    return await _refuse(request, Refusal(500, "the server failed"))


async def _refuse_http(request: fastapi.Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = Refusal(error.status_code, str(error.detail), headers=error.headers)
    return await _refuse(request, refusal)


async def _refuse_fields(request: fastapi.Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # For a union pydantic gives one reason for each of its types.
    fields: dict[str, list[str]] = {}
    for entry in error.errors():
        names = [str(part)[:100] for part in entry["loc"][1:2]]
        fields.setdefault("".join(names), []).append(str(entry["msg"]))
    field, reasons = next(iter(fields.items()))
    message = "; ".join(dict.fromkeys(reasons))
    if field:
        message = f"{field}: {message}"
    return await _refuse(request, Refusal(422, message, field=field or None))
