"""What a reader answers itself, and how it passes the rest on to the writer."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import httpx
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from samewise.serve import http_item_routes
from samewise.serve.collection_stores import is_collection
from samewise.serve.followed_collection import FollowedCollection
from samewise.serve.http_app import guard_app
from samewise.serve.http_context import Context
from samewise.serve.http_guarding import RequestLimits, Tokens
from samewise.serve.impressions import Impression
from samewise.serve.searched_collection import Encode
from samewise.serve.service import NAME, Service

_SEARCH = re.compile(r"/collections/([a-z0-9][a-z0-9_-]{0,62})/search")
_OWN_HEADERS = (b"connection", b"transfer-encoding", b"server", b"date")
"""Headers of an answer that each server sets itself."""
_LOG = logging.getLogger("samewise.serve")


class FollowedService:
    """The collections of a folder that another process writes; each is opened when it is needed.

    Parameters
    ----------
    folder : Path
    keep : callable
        Brings an impression of a collection to the process that writes.
    encode : callable, default=None
        Vectors of texts, for collections with ``encoder="callable"``.
    url : str, default=None
        Of the PostgreSQL database that has the logs of some collections.
    """

    def __init__(
        self,
        folder: Path,
        keep: Callable[[str, Impression], None],
        encode: Encode | None = None,
        url: str | None = None,
    ) -> None:
        self._folder, self._keep, self._encode, self._url = folder, keep, encode, url
        self._opening: set[str] = set()
        self.collections: dict[str, FollowedCollection] = {}

    def ready(self, name: str) -> bool:
        """Whether searches of a collection can be answered here; if not, it is opened meanwhile."""
        found = self.collections.get(name)
        if found is not None and found.there:
            return found.ready
        if name not in self._opening:
            self._opening.add(name)
            threading.Thread(target=self._open, args=(name,), daemon=True).start()
        return False

    def _open(self, name: str) -> None:
        try:
            broken = self.collections.pop(name, None)
            if broken is not None:
                broken.close()
            folder = self._folder / name
            if NAME.fullmatch(name) and is_collection(folder):
                keep = lambda impression: self._keep(name, impression)  # noqa: E731
                self.collections[name] = FollowedCollection(folder, keep, self._encode, self._url)
        except Exception:
            _LOG.exception("%s cannot be opened here", name)
        finally:
            self._opening.discard(name)

    def get(self, name: str) -> FollowedCollection:
        """A collection that is open."""
        return self.collections[name]

    def open_all(self) -> None:
        """Open what there is."""
        for path in sorted(self._folder.iterdir()):
            self.ready(path.name)

    def close(self) -> None:
        """Close all of them."""
        for collection in self.collections.values():
            collection.close()


class ReaderApp:
    """An ASGI application: searches are answered here, all else by the writer.

    Parameters
    ----------
    service : FollowedService
    tokens : Tokens
    writer : httpx.AsyncClient
    observe : callable
        Called with each search: method, route, status and seconds.
    """

    def __init__(
        self,
        service: FollowedService,
        tokens: Tokens,
        writer: httpx.AsyncClient,
        observe: Callable[[str, str, int, float], None],
    ) -> None:
        self._service, self._writer = service, writer
        here = cast(Service, service)
        # Readers do nothing that is written to the audit log.
        context = Context(here, tokens, RequestLimits(), cast(Any, None))
        context.metrics.also = observe
        self._app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        self._app.include_router(http_item_routes.routes)
        guard_app(self._app, context)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        match = _SEARCH.fullmatch(scope["path"])
        if match and scope["method"] == "POST" and self._service.ready(match[1]):
            await self._app(scope, receive, send)
            return
        try:
            await self._pass_on(scope, receive, send)
        except httpx.TransportError:
            text = {"error": "The process that writes does not answer; try again."}
            await JSONResponse(text, 503, {"Retry-After": "1"})(scope, receive, send)

    async def _pass_on(self, scope: Any, receive: Any, send: Any) -> None:
        names = {name.lower() for name, _ in scope["headers"]}
        has_body = names & {b"content-length", b"transfer-encoding"}
        query = scope["query_string"]
        request = self._writer.build_request(
            scope["method"],
            httpx.URL(
                "http://writer", raw_path=scope["raw_path"] + (b"?" + query if query else b"")
            ),
            headers=scope["headers"],
            content=_body(receive) if has_body else None,
        )
        answer = await self._writer.send(request, stream=True)
        try:
            tasks = [asyncio.ensure_future(_relay(answer, send))]
            tasks.append(asyncio.ensure_future(_until_gone(receive)))
            # Who listens to a stream of events may go before it ends.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await tasks[0]
            with suppress(asyncio.CancelledError):
                await tasks[1]
        finally:
            await answer.aclose()


async def _body(receive: Any) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _relay(answer: httpx.Response, send: Any) -> None:
    headers = [pair for pair in answer.headers.raw if pair[0].lower() not in _OWN_HEADERS]
    start = {"type": "http.response.start", "status": answer.status_code, "headers": headers}
    await send(start)
    async for part in answer.aiter_raw():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
