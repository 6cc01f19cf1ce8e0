"""The routes beside the models: health, metrics, the page and the reference."""

import hashlib
import importlib.resources

import fastapi
from fastapi.responses import HTMLResponse, JSONResponse, Response

from vaswani_jax.service import messages, metrics, reference
from vaswani_jax.service.guard import State
from vaswani_jax.service.models import Models

TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# The page loads its own files, and asks this server alone.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


def make_router(
    models: Models, *, state: State, figures: metrics.Metrics
) -> fastapi.APIRouter:
    """Return the routes.

    Args:
        models: The models that answer.
        state: The state of the server.
        figures: The figures of the server.
    """
    router = fastapi.APIRouter()

    @router.get(
        "/health",
        response_model=messages.HealthAnswer,
        responses={503: {"model": messages.HealthAnswer}},
        summary="Show the state of the server",
    )
    async def health() -> Response:
        """Return status 200 if the server is ready, 503 while it starts or ends."""
        content = {
            "status": state.status,
            "models": [served.name for served in models.all],
        }
        return JSONResponse(content, 200 if state.status == "ready" else 503)

    @router.get("/metrics", response_class=Response, summary="Figures for Prometheus")
    async def show_metrics() -> Response:
        """Return all figures in Prometheus's text format."""
        return Response(figures.text(), media_type=metrics.CONTENT_TYPE)

    @router.get("/docs", include_in_schema=False)
    async def docs(request: fastapi.Request) -> Response:
        """Return the reference of all routes, made from /openapi.json."""
        text = reference.render(request.app.openapi())
        return HTMLResponse(text, headers={"Content-Security-Policy": reference.POLICY})

    for name, content in read_files().items():
        _add_file(router, name, content)
    return router


def read_files() -> dict[str, bytes]:
    """Return the files of the page by their names."""
    folder = importlib.resources.files("vaswani_jax.service") / "web"
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.rpartition(".")[2] in TYPES
    }


def _add_file(router: fastapi.APIRouter, name: str, content: bytes) -> None:
    """Add the route of one file; a request can name no other."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": POLICY,
        "ETag": tag,
    }

    async def show(request: fastapi.Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        media_type = TYPES[name.rpartition(".")[2]]
        return Response(content, media_type=media_type, headers=headers)

    path = "/" if name == "index.html" else f"/{name}"
    router.add_api_route(
        path, show, methods=["GET", "HEAD"], include_in_schema=False, name=name
    )
