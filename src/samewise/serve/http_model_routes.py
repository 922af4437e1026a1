"""Routes of the model: what is served and why, the log, files in and out."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson
from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse

from samewise.adapt import LiveAdapter
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container
from samewise.files.storable import made
from samewise.serve.collection import Collection
from samewise.serve.event_store import Record
from samewise.serve.explaining import nearest_lists, score_parts
from samewise.serve.feedback_resolving import NotFoundError
from samewise.serve.group_commit import BusyError
from samewise.serve.http_answers import (
    CompactAnswer,
    CountAnswer,
    ExplainAnswer,
    GuardAnswer,
    SeqAnswer,
    ServedAnswer,
    VersionsAnswer,
    answers,
)
from samewise.serve.http_bodies import WrongTypeError
from samewise.serve.http_context import (
    FILE,
    NDJSON,
    Opened,
    Reader,
    audited,
    content_type,
)
from samewise.serve.http_models import Name, StartBody, VersionBody

routes = APIRouter(prefix="/collections/{collection}")


_PAUSE = 0.25
"""Seconds between two looks at the log, for who follows it."""


@routes.post(
    "/start",
    dependencies=[audited("start")],
    response_model=None,
    responses=answers(SeqAnswer, 400, 404, 409),
)
def start(opened: Opened, body: StartBody) -> dict[str, Any]:
    """Fit encoder and adapter to the items as they are."""
    return {"seq": opened.start(body.again)}


@routes.get("/versions", response_model=None, responses=answers(VersionsAnswer, 404, 409))
def versions(opened: Opened, caller: Reader) -> dict[str, Any]:
    """The frozen copies of the live form that are kept, and which is served."""
    with opened.adapter() as adapter:
        kept = [{"version": v.number, "event": v.event} for v in adapter.versions_]
        served = adapter.guard_.served if adapter.guard is not None else None
    return {"versions": kept, "served": served}


@routes.get("/guard", response_model=None, responses=answers(GuardAnswer, 404, 409))
def guard(opened: Opened, caller: Reader) -> dict[str, Any]:
    """What the guard knows: wealth, what is needed for a promotion, and what was promoted."""
    with opened.adapter() as adapter:
        return asdict(adapter.guard_)


@routes.post(
    "/promote",
    dependencies=[audited("promote")],
    response_model=None,
    responses=answers(ServedAnswer, 400, 404, 409),
)
def promote(opened: Opened, body: VersionBody) -> dict[str, Any]:
    """Serve a version by hand."""
    seq, version = opened.decide("promote", body.version)
    return {"seq": seq, "version": version}


@routes.post(
    "/rollback",
    dependencies=[audited("roll back")],
    response_model=None,
    responses=answers(ServedAnswer, 404, 409),
)
def rollback(opened: Opened) -> dict[str, Any]:
    """Serve the version before the newest that is served."""
    seq, version = opened.decide("rollback")
    return {"seq": seq, "version": version}


@routes.post(
    "/reset",
    dependencies=[audited("reset")],
    response_model=None,
    responses=answers(SeqAnswer, 404, 409),
)
def reset(opened: Opened) -> dict[str, Any]:
    """Forget all that was learned; the log stays."""
    seq, _ = opened.decide("reset")
    return {"seq": seq}


@routes.post(
    "/compact",
    dependencies=[audited("compact")],
    response_model=None,
    responses=answers(CompactAnswer, 404),
)
def compact(opened: Opened) -> dict[str, int]:
    """Remove what no replay and no search can reach."""
    return opened.compact()


@routes.get("/explain", response_model=None, responses=answers(ExplainAnswer, 404, 409))
def explain(opened: Opened, caller: Reader, impression: Name, item: Name) -> dict[str, Any]:
    """Why an item is where it is for the query of an impression."""
    found = opened.stores.impressions.find(impression)
    if found is None:
        raise NotFoundError(f"There is no impression {impression!r}, or no longer.")
    rows = dict(zip(found.ids, found.rows, strict=True)) or {}
    row = rows.get(item, opened.stores.items.rows_of([item]).get(item))
    if row is None:
        raise NotFoundError(f"There is no item {item!r}.")
    vector = opened.stores.vectors(np.array([row]))[0]
    with opened.adapter() as adapter:
        parts = score_parts(adapter, found.query, vector)
        near = nearest_lists(adapter, opened.learning.curve, found.query, vector)
        course, seq = adapter._fitted, opened.learning.seq
    own = opened.searching.personal.added(found.user, found.query, course, seq)
    personal = float(own.astype(np.float64) @ vector)
    return {"item": item, "scores": parts, "personal": personal, "nearest_lists": near}


@routes.delete(
    "/events",
    dependencies=[audited("forget")],
    response_model=None,
    responses=answers(CountAnswer, 404),
)
def forget(opened: Opened, user: Name) -> dict[str, Any]:
    """Forget a person: events and impressions go, and the model is built again without them."""
    count, seq = opened.forget(user)
    return {"count": count, "seq": seq}


@routes.get(
    "/events",
    dependencies=[audited("read events")],
    response_class=Response,
    responses=answers("text/event-stream", 404),
)
async def events(
    opened: Opened,
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    follow: bool = True,
    last_event_id: Annotated[int | None, Header(ge=0, le=2**53)] = None,
) -> StreamingResponse:
    """The log as server-sent events, from a number on; `follow=false` ends with the newest."""
    begin = after if last_event_id is None else last_event_id
    stream = _followed(opened, request, begin, follow)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _followed(
    opened: Collection, request: Request, after: int, follow: bool
) -> AsyncIterator[bytes]:
    while not await request.is_disconnected():
        try:
            records = await run_in_threadpool(opened.events, after, 256)
        except BusyError:
            # It was closed meanwhile: whoever follows it comes again, and is refused.
            return
        for record in records:
            after = record.seq
            yield _sent(record)
        if not records:
            if not follow:
                return
            await asyncio.sleep(_PAUSE)


def _sent(record: Record) -> bytes:
    body = {"seq": record.seq, "time": record.time, "user": record.user, **record.body}
    # JSON has no line breaks of its own, so that a text cannot end an event.
    data = orjson.dumps(body)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (record.seq, record.kind.encode(), data)


@routes.get(
    "/log",
    dependencies=[audited("export log")],
    response_class=Response,
    responses=answers(NDJSON, 404),
)
def export_log(opened: Opened) -> StreamingResponse:
    """The feedback as lines of JSON, which POST feedback takes."""

    def lines() -> Iterator[bytes]:
        for said in opened.exported_log():
            yield orjson.dumps(said) + b"\n"

    return StreamingResponse(lines(), media_type=NDJSON)


@routes.get(
    "/adapter",
    dependencies=[audited("export adapter")],
    response_class=Response,
    responses=answers(FILE, 404, 409),
)
def export_adapter(opened: Opened) -> Response:
    """The adapter as a file that `samewise.load` reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adapter.samewise"
        opened.export_adapter(path)
        return Response(path.read_bytes(), media_type=FILE)


@routes.put(
    "/adapter",
    dependencies=[audited("import adapter")],
    response_model=None,
    responses=answers(SeqAnswer, 404, 409, 415),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {FILE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_adapter(opened: Opened, request: Request) -> dict[str, Any]:
    """Go on from an adapter that `LiveAdapter.save` wrote."""
    if content_type(request) != FILE:
        raise WrongTypeError(f"An adapter is sent as {FILE}.")
    body = await request.body()

    def take() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "adapter.samewise"
            path.write_bytes(body)
            try:
                adapter = made(container.read(path), LiveAdapter, wanted="LiveAdapter")
            except FileFormatError as error:
                # Its message names a file of this machine.
                about = str(error).replace(str(path), "The body")
                raise InvalidInputError(about) from error
        return {"seq": opened.import_adapter(adapter)}

    return await run_in_threadpool(take)
