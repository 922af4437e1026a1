"""The HTTP application: the gate before all routes, errors as JSON, health and metrics."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from samewise import __version__
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.serve import http_item_routes, http_model_routes, http_page_routes
from samewise.serve.audit_log import AuditLog
from samewise.serve.event_store import UnreachableError
from samewise.serve.feedback_resolving import NotFoundError
from samewise.serve.group_commit import BusyError
from samewise.serve.http_answers import ReadyAnswer, Refusal, StatusAnswer, answers
from samewise.serve.http_bodies import WrongTypeError
from samewise.serve.http_context import Context, ForbiddenError, Here, Json, Reader
from samewise.serve.http_guarding import (
    RequestLimits,
    Tokens,
    TooMuchError,
    TooOftenError,
    host_of,
    is_loopback,
)
from samewise.serve.http_models import FeedbackBody, ItemsBody
from samewise.serve.learning import StoppedError
from samewise.serve.searched_collection import NotReadyError
from samewise.serve.service import OtherSettingsError, Service

_METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH")
_OPEN = ("/healthz", "/readyz", *http_page_routes.OPEN)
"""Routes that need no token."""
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFoundError, 404),
    (NotReadyError, 409),
    (OtherSettingsError, 409),
    (WrongTypeError, 415),
    (TooMuchError, 413),
    (InvalidInputError, 422),
    (FileFormatError, 422),
    (ForbiddenError, 403),
    (TooOftenError, 429),
    (BusyError, 429),
    (StoppedError, 503),
    (UnreachableError, 503),
)


def make_app(
    service: Service,
    tokens: Tokens | None = None,
    limits: RequestLimits | None = None,
    before_close: Callable[[], None] = lambda: None,
) -> FastAPI:
    """The application of a service; when it ends, the service is closed.

    Parameters
    ----------
    service : Service
    tokens : Tokens, default=None
        Without any, only requests to a loopback name are answered, and these may do everything.
    limits : RequestLimits, default=None
    before_close : callable, default=lambda: None
        Called when the application ends, before the service is closed.
    """
    audit = AuditLog(service.folder / "audit.jsonl")
    known = Tokens() if tokens is None else tokens
    context = Context(service, known, limits or RequestLimits(), audit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        before_close()
        service.close()
        audit.close()

    # The pages that FastAPI offers load scripts from elsewhere; /openapi.json stays.
    app = FastAPI(
        title="samewise",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        default_response_class=Json,
        redirect_slashes=False,
    )
    app.include_router(http_item_routes.routes)
    app.include_router(http_model_routes.routes)
    app.include_router(http_page_routes.routes)
    for path, route, model in (
        ("/healthz", healthz, StatusAnswer),
        ("/readyz", readyz, ReadyAnswer),
    ):
        app.add_api_route(path, route, response_model=None, responses=answers(model))
    app.add_api_route("/metrics", metrics, response_class=Response, responses=answers("text/plain"))
    guard_app(app, context)
    _name_bodies(app)
    return app


def guard_app(app: FastAPI, context: Context) -> None:
    """Put the gate before the routes of an application, and errors as JSON behind them."""
    app.state.context = context
    for kind, status in _STATUS:
        app.add_exception_handler(kind, _answer(status))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unforeseen)
    app.add_middleware(Gate, context=context)


def _name_bodies(app: FastAPI) -> None:
    """Put the bodies that the routes read themselves into the OpenAPI text."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        text = plain()
        schemas = text.setdefault("components", {}).setdefault("schemas", {})
        for model in (ItemsBody, FeedbackBody, Refusal):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
        # Routes that name no refusals of their own may refuse as the others do.
        refusals = {str(s): about for s, about in answers("", 404, 409).items() if s != 200}
        for methods in text["paths"].values():
            for operation in methods.values():
                operation["responses"] = refusals | operation["responses"]
        return text

    app.openapi = openapi  # type: ignore[method-assign]


def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


def readyz(here: Here) -> JSONResponse:
    """Whether all collections learn."""
    failed = [name for name, c in here.service.collections.items() if c.learning.failed]
    return JSONResponse({"failed": failed}, 503 if failed else 200)


def metrics(here: Here, caller: Reader) -> PlainTextResponse:
    """Counters for Prometheus."""
    facts = {name: each.facts() for name, each in here.service.collections.items()}
    return PlainTextResponse(here.metrics.text(facts))


def _answer(status: int) -> Any:
    def answer(request: Request, error: Exception) -> JSONResponse:
        headers = {}
        if status in (429, 503):
            headers["Retry-After"] = str(getattr(error, "seconds", 1))
        return JSONResponse({"error": str(error)}, status, headers)

    return answer


def _invalid(request: Request, error: Any) -> JSONResponse:
    """Where a body does not fit; what was sent is not repeated."""
    places = [
        {"where": [str(part) for part in one["loc"]], "what": one["msg"]}
        for one in error.errors()[:20]
    ]
    return JSONResponse({"error": "The request does not fit.", "places": places}, 422)


def _http_error(request: Request, error: Any) -> JSONResponse:
    headers = error.headers
    if error.status_code == 405:
        # Of all routes of this path; Starlette names those of the first.
        scope = {**request.scope, "path_params": {}}
        fitting = [r for r in _routes(request.app) if r.matches(scope)[0] != Match.NONE]
        headers = {"Allow": ", ".join(sorted({m for r in fitting for m in r.methods}))}
    return JSONResponse({"error": str(error.detail)}, error.status_code, headers)


def _routes(router: Any) -> Iterator[Any]:
    """All routes; newer versions of FastAPI keep those of an included router together."""
    for route in router.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _routes(inner)
        elif getattr(route, "methods", None):
            yield route


def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    """What went wrong is in the log of the process, and not in the answer."""
    return JSONResponse({"error": "Something went wrong; the service's log has more."}, 500)


class Gate:
    """Looks at each request before any route does: host, token, size; and counts it.

    Parameters
    ----------
    app : ASGI application
    context : Context
    """

    def __init__(self, app: Any, context: Context) -> None:
        self._app, self._context = app, context

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        answered = _Answered(send)
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, answered)
        else:
            try:
                await self._app(scope, self._limited(receive), answered)
            except TooMuchError as error:
                if answered.status:
                    raise
                await JSONResponse({"error": str(error)}, 413)(scope, receive, answered)
        route = getattr(scope.get("route"), "path", "none")
        seconds = time.perf_counter() - began
        # Whoever makes up methods makes no new counters.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._context.metrics.observe(method, route, answered.status, seconds)

    def _refused(self, scope: Any) -> JSONResponse | None:
        """The answer to a request that no route may see."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        tokens = self._context.tokens
        if not tokens and not is_loopback(host_of(headers.get(b"host", ""))):
            # A page of another site could have its name point here (DNS rebinding).
            return JSONResponse({"error": "Without tokens, only loopback names are served."}, 421)
        origin = headers.get(b"origin")
        if not tokens and origin not in (None, f"http://{headers.get(b'host', '')}"):
            # The browser of whoever started the service may be on a page of another site.
            return JSONResponse({"error": "Without tokens, no other site may send requests."}, 403)
        caller = tokens.caller(headers.get(b"authorization"))
        if caller is None and scope["path"] not in _OPEN:
            needed = {"WWW-Authenticate": "Bearer"}
            return JSONResponse({"error": "A known token is needed."}, 401, needed)
        scope["caller"] = caller
        length = headers.get(b"content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._context.limits.body:
            return JSONResponse({"error": self._too_long()}, 413)
        return None

    def _too_long(self) -> str:
        return f"A body has {self._context.limits.body} bytes at most."

    def _limited(self, receive: Any) -> Any:
        """Count the bytes of a body that did not say how long it is."""
        n_bytes = 0

        async def limited() -> Any:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._context.limits.body:
                raise TooMuchError(self._too_long())
            return message

        return limited


class _Answered:
    """Remembers with which status a request was answered."""

    def __init__(self, send: Any) -> None:
        self._send, self.status = send, 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)
