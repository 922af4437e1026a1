"""Routes of the page: its files, and what it shows beside the other routes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from samewise.exceptions import InvalidInputError
from samewise.serve.collection import Collection
from samewise.serve.feedback_resolving import NotFoundError
from samewise.serve.http_answers import answers
from samewise.serve.http_context import Here, Opened, Reader, Teacher
from samewise.serve.http_models import Name, StrictBody, Text, Vector
from samewise.serve.item_views import compared, picked
from samewise.serve.searching import Question
from samewise.serve.teaching_views import hard_queries
from samewise.serve.undoing import event_to_undo, lessons_again, undo

routes = APIRouter()
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
HEADERS = {
    # Nothing from elsewhere, nothing inline, and no text is ever taken for HTML.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_PAUSE, _SILENCE = 0.5, 15.0
"""Seconds between two looks at what is watched, and of silence until a sign of life."""


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by name, with their types."""
    found = {}
    for each in files("samewise.serve").joinpath("page").iterdir():
        suffix = each.name[each.name.rfind(".") :]
        if suffix in TYPES:
            found[each.name] = each.read_bytes(), TYPES[suffix]
    return found


_FILES = page_files()
OPEN = ("/", *(f"/page/{name}" for name in _FILES))
"""These need no token: they are the same for everybody."""


@routes.get("/", include_in_schema=False)
def page() -> Response:
    """The page."""
    return page_file("index.html")


@routes.get("/page/{name}", include_in_schema=False)
def page_file(name: str) -> Response:
    """A file of the page."""
    if name not in _FILES:
        raise NotFoundError(f"The page has no file {name!r}.")
    content, kind = _FILES[name]
    return Response(content, headers={**HEADERS, "Content-Type": kind})


@routes.get("/whoami")
def whoami(caller: Reader) -> dict[str, str]:
    """What the token is good for."""
    return {"name": caller.name, "scope": caller.scope}


class CompareBody(StrictBody):
    """A query, of which the answers under the start and under another form are compared."""

    text: Text | None = None
    item: Name | None = None
    vector: Vector | None = None
    k: Annotated[int, Field(ge=1, le=50)] = 10
    which: Literal["served", "live"] = "served"
    explore: Annotated[int, Field(ge=0, le=50)] | None = None
    user: Name | None = None
    min_seq: Annotated[int, Field(ge=0, le=2**53)] = 0


@routes.post("/collections/{collection}/compare")
def compare(opened: Opened, caller: Reader, body: CompareBody) -> dict[str, Any]:
    """The answers under the start and under another form, side by side."""
    if sum(given is not None for given in (body.text, body.item, body.vector)) != 1:
        raise InvalidInputError("A comparison needs one of 'text', 'item' and 'vector'.")
    opened.follow(body.min_seq)
    query = _query(opened, body)
    k = body.k + (body.item is not None)
    question = Question(k, body.which, {}, body.explore, body.user)
    return compared(opened, question, query, body.text, body.item)


def _query(opened: Collection, body: CompareBody) -> Any:
    if body.item is None:
        return opened.query_vector(body.vector, body.text)
    found = opened.stores.items.rows_of([body.item])
    if body.item not in found:
        raise NotFoundError(f"There is no item {body.item!r}.")
    return opened.stores.vectors(np.array([found[body.item]]))[0]


@routes.get("/collections/{collection}/pick")
def pick(
    opened: Opened, caller: Reader, n: Annotated[int, Query(ge=1, le=50)] = 8
) -> dict[str, Any]:
    """Some items by chance."""
    return {"items": picked(opened, n)}


@routes.get("/collections/{collection}/map")
def item_map(
    here: Here,
    opened: Opened,
    caller: Reader,
    which: Literal["served", "live"] = "served",
    n: Annotated[int, Query(ge=3, le=2000)] = 800,
) -> dict[str, Any]:
    """Where a sample of items lies, as queries under the start and under another form."""
    return here.maps.layout(opened, which, n)


@routes.get("/collections/{collection}/hard")
def hard(opened: Opened, caller: Reader) -> dict[str, Any]:
    """The judged lists in which what was served agreed least with the user."""
    return {"queries": hard_queries(opened)}


@routes.get("/collections/{collection}/teachers")
def teachers(here: Here, opened: Opened, caller: Reader) -> dict[str, Any]:
    """Who taught how much."""
    return here.teachers.table(opened)


@routes.delete("/collections/{collection}/events/{event:path}")
def undo_event(
    here: Here, opened: Opened, caller: Teacher, collection: str, event: Name
) -> dict[str, Any]:
    """Take back one event: the model is built again without it.

    Who knows the id gave the event; an admin may take back any, others those of the last hour.
    """
    found = event_to_undo(opened, event, caller.may("admin"))
    # What is learned again counts as if it were sent.
    here.rates.take(caller.name, min(lessons_again(opened, found.seq), int(here.limits.rate)))
    here.audit.add(caller.name, "undo", collection, "allowed")
    return {"seq": undo(opened, found)}


@routes.get(
    "/collections/{collection}/watch",
    response_class=Response,
    responses=answers("text/event-stream", 404, 409),
)
async def watch(
    opened: Opened, caller: Reader, request: Request, follow: bool = True
) -> StreamingResponse:
    """How learning goes, as server-sent events: one at once, then whenever something changes."""
    stream = _watched(opened, request, follow)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _watched(opened: Collection, request: Request, follow: bool) -> AsyncIterator[bytes]:
    seen, silent = None, 0.0
    while not await request.is_disconnected():
        # Events of a minute pass by without any record.
        now = (opened.learning.seq, opened.learning.failed, int(time.time() // 60))
        if now != seen:
            data = orjson.dumps(await run_in_threadpool(watched_state, opened))
            seen, silent = now, 0.0
            yield b"event: state\ndata: %s\n\n" % data
        elif silent >= _SILENCE:
            silent = 0.0
            yield b": still here\n\n"
        if not follow:
            return
        await asyncio.sleep(_PAUSE)
        silent += _PAUSE


def watched_state(opened: Collection) -> dict[str, Any]:
    """All that the page shows of how learning goes; it never starts a collection."""
    learning, state = opened.learning, {**opened.facts(), "settings": asdict(opened.settings)}
    if learning.adapter is None:
        return state
    with learning.turns.reading():
        adapter, curve = learning.adapter, learning.curve
        state["curve"] = curve.table()
        state["marks"] = list(curve.marks)
        state["per_minute"] = curve.per_minute(state["time"])
        guard = adapter._fitted.guard
        if guard is not None:
            report, gains = guard.report(), guard.gains
            state["versions"] = [{"version": v.number, "event": v.event} for v in adapter.versions_]
    if guard is not None:
        found = asdict(report)
        found["expected_events"] = {
            place: value if math.isfinite(value) else None
            for place, value in found["expected_events"].items()
        }
        found.pop("history")
        state["guard"] = {**found, "gain": gains}
    return state
