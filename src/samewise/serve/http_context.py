"""What the routes share: the service, limits, counters; and who may call them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request
from fastapi.responses import JSONResponse

from samewise.serve.audit_log import AuditLog
from samewise.serve.collection import Collection
from samewise.serve.http_guarding import Caller, Rates, RequestLimits, Tokens
from samewise.serve.item_views import ItemMaps
from samewise.serve.metrics_text import Metrics
from samewise.serve.service import Service
from samewise.serve.teaching_views import Teachers


@dataclass(eq=False)
class Context:
    """The parts of a running service.

    Attributes
    ----------
    service : Service
    tokens : Tokens
    limits : RequestLimits
    audit : AuditLog
    """

    service: Service
    tokens: Tokens
    limits: RequestLimits
    audit: AuditLog
    metrics: Metrics = field(default_factory=Metrics)
    maps: ItemMaps = field(default_factory=ItemMaps)
    teachers: Teachers = field(default_factory=Teachers)

    def __post_init__(self) -> None:
        self.rates = Rates(self.limits.rate)


class ForbiddenError(Exception):
    """The token is not good for this."""


def context_of(request: Request) -> Context:
    """The parts of the running service."""
    found: Context = request.app.state.context
    return found


def caller_of(request: Request) -> Caller:
    """Who sent the request; the gate has looked at the token."""
    found: Caller = request.scope["caller"]
    return found


def allowed(request: Request, scope: str) -> Caller:
    """The caller, if the token is good for this."""
    caller = caller_of(request)
    if not caller.may(scope):
        raise ForbiddenError(f"This needs a token with the scope {scope!r}.")
    return caller


# Dependencies are coroutines where they do not wait: others cost a turn of a thread each.
async def _context(request: Request) -> Context:
    return context_of(request)


async def _collection(request: Request, collection: str) -> Collection:
    return context_of(request).service.get(collection)


def needs(scope: str) -> Any:
    """A dependency of routes: the caller, if the token is good for this."""

    async def check(request: Request) -> Caller:
        return allowed(request, scope)

    return Depends(check)


def audited(action: str, scope: str = "admin") -> Any:
    """A dependency of routes: as `needs`, and the action is written to the audit log."""

    def check(request: Request) -> Caller:
        name = str(request.path_params.get("collection", ""))
        try:
            caller = allowed(request, scope)
        except ForbiddenError:
            context_of(request).audit.add(caller_of(request).name, action, name, "refused")
            raise
        context_of(request).audit.add(caller.name, action, name, "allowed")
        return caller

    return Depends(check)


Here = Annotated[Context, Depends(_context)]
Opened = Annotated[Collection, Depends(_collection)]
Reader = Annotated[Caller, needs("read")]
Teacher = Annotated[Caller, needs("feedback")]
Admin = Annotated[Caller, needs("admin")]
NPY = "application/x-npy"
NDJSON = "application/x-ndjson"
ARROWS = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")
FILE = "application/octet-stream"


def content_type(request: Request) -> str:
    """The type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def bodies(model: str, *others: str) -> dict[str, Any]:
    """For the OpenAPI text: a body of that model as JSON, or of other types."""
    content: dict[str, Any] = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{model}"}}
    }
    for other in others:
        content[other] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


class Json(JSONResponse):
    """JSON, with null for what is infinite or not a number."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer."""
        return orjson.dumps(content)
