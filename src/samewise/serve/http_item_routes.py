"""Routes of items, searches and feedback."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool

from samewise.exceptions import InvalidInputError
from samewise.serve.collection import Acknowledged
from samewise.serve.collection_stores import Settings
from samewise.serve.feedback_resolving import NotFoundError, Said
from samewise.serve.http_answers import (
    Collections,
    CountAnswer,
    DeletedAnswer,
    DescriptionAnswer,
    FeedbackAnswer,
    ItemAnswer,
    MadeAnswer,
    SearchAnswer,
    answers,
)
from samewise.serve.http_bodies import read_feedback, read_items
from samewise.serve.http_context import (
    ARROWS,
    NDJSON,
    NPY,
    Here,
    Json,
    Opened,
    Reader,
    allowed,
    audited,
    bodies,
    content_type,
    context_of,
)
from samewise.serve.http_guarding import TooMuchError
from samewise.serve.http_models import CollectionBody, IdsBody, Name, SearchBody
from samewise.serve.searching import Question

routes = APIRouter(prefix="/collections")


@routes.get("", response_model=None, responses=answers(Collections))
def list_collections(here: Here, caller: Reader) -> dict[str, Any]:
    """The collections, with numbers about each."""
    return {name: each.facts() for name, each in sorted(here.service.collections.items())}


@routes.put(
    "/{collection}",
    dependencies=[audited("make")],
    response_model=None,
    responses=answers(MadeAnswer, 400, 409),
)
def make_collection(here: Here, collection: str, body: CollectionBody) -> dict[str, Any]:
    """Make a collection; the same settings again change nothing."""
    return {"new": here.service.make(collection, Settings(**body.model_dump()))}


@routes.delete(
    "/{collection}",
    dependencies=[audited("delete")],
    response_model=None,
    responses=answers(DeletedAnswer, 404),
)
def delete_collection(here: Here, collection: str) -> dict[str, Any]:
    """Delete a collection: its items, all that was said about them, and what was learned."""
    here.service.delete(collection)
    return {"deleted": True}


@routes.get("/{collection}", response_model=None, responses=answers(DescriptionAnswer, 404))
def describe_collection(opened: Opened, caller: Reader) -> dict[str, Any]:
    """Settings of a collection, and numbers about it."""
    return {"settings": asdict(opened.settings), **opened.facts()}


@routes.put(
    "/{collection}/items",
    dependencies=[audited("put items")],
    response_model=None,
    responses=answers(CountAnswer, 404, 409, 415),
    openapi_extra=bodies("ItemsBody", NDJSON, NPY, *ARROWS),
)
async def put_items(
    here: Here,
    opened: Opened,
    request: Request,
    prefix: Annotated[str, Query(max_length=200)] = "",
    first: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> dict[str, Any]:
    """Add or replace items. Those of an array are named by `prefix` and a number from `first`."""
    body = await request.body()

    def put() -> dict[str, Any]:
        kind = content_type(request)
        items, vectors = read_items(body, kind, here.limits, prefix, first)
        return {"count": len(items), "seq": opened.put(items, vectors)}

    return await run_in_threadpool(put)


@routes.delete(
    "/{collection}/items",
    dependencies=[audited("delete items")],
    response_model=None,
    responses=answers(CountAnswer, 400, 404),
)
def delete_items(here: Here, opened: Opened, body: IdsBody) -> dict[str, Any]:
    """Remove items; those that are not there are not counted."""
    if len(body.ids) > here.limits.items:
        raise TooMuchError(f"At most {here.limits.items} items in a request. Got {len(body.ids)}.")
    n_found, seq = opened.delete(body.ids)
    return {"count": n_found, "seq": seq}


@routes.get(
    "/{collection}/items/{id:path}", response_model=None, responses=answers(ItemAnswer, 404)
)
def get_item(opened: Opened, caller: Reader, id: Name) -> dict[str, Any]:
    """The payload of an item."""
    payload = opened.stores.items.get(id)
    if payload is None:
        raise NotFoundError(f"There is no item {id!r}.")
    return {"id": id, "payload": payload}


@routes.post(
    "/{collection}/search", response_model=None, responses=answers(SearchAnswer, 400, 404, 409)
)
def search(request: Request, collection: str, body: SearchBody) -> Json:
    """The nearest items to a vector or a text. The first search starts the collection."""
    here, _ = context_of(request), allowed(request, "read")
    opened = here.service.get(collection)
    if body.k > here.limits.k:
        raise TooMuchError(f"At most {here.limits.k} results. Got k={body.k}.")
    if (body.vector is None) == (body.text is None):
        raise InvalidInputError("A search needs either a 'vector' or a 'text'.")
    question = Question(body.k, body.which, body.filters, body.explore, body.user, body.min_seq)
    return Json(opened.search(question, body.vector, body.text))


@routes.post(
    "/{collection}/feedback",
    response_model=None,
    responses=answers(FeedbackAnswer, 404, 409, 415),
    openapi_extra=bodies("FeedbackBody", NDJSON),
)
async def feedback(request: Request, collection: str) -> Json:
    """Take feedback: all events are committed before the answer, or none is taken."""
    # Without dependencies: to look each up costs as much as to learn from an event.
    here, caller = context_of(request), allowed(request, "feedback")
    opened, body = here.service.get(collection), await request.body()

    def take() -> Future[list[Acknowledged]]:
        events = read_feedback(body, content_type(request), here.limits, caller.weight)
        # An event of weight 5 counts as five, so that weights do not get around the rate.
        here.rates.take(caller.name, sum(max(1.0, event.weight) for event in events))
        return opened.submit([Said(**event.model_dump()) for event in events])

    # No thread waits for the commit, so that any number of requests can be in it.
    done = await asyncio.wrap_future(await run_in_threadpool(take))
    return Json(
        {
            "seq": max(one.seq for one in done),
            "new": sum(one.new for one in done),
            "events": [one.seq for one in done],
        }
    )
