"""What readers bring to the writer: impressions, and requests that were answered, for the metrics.

An answer waits until the writer has its impression, so that feedback about it, which may come by
way of another reader, is understood. What waits while a letter is on its way goes with the next.
"""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import orjson

from samewise.serve.impressions import Impression
from samewise.serve.metrics_text import Metrics
from samewise.serve.service import Service

MOST_TOGETHER = 256
_LOG = logging.getLogger("samewise.serve")


@dataclass(eq=False)
class _Entry:
    what: list[Any]
    arrived: threading.Event = field(default_factory=threading.Event)


class ReaderMail:
    """Brings impressions and counts to the writer.

    Parameters
    ----------
    http : httpx.Client
        To the writer.
    path : str
        Where the writer takes them.
    """

    def __init__(self, http: httpx.Client, path: str) -> None:
        self._http, self._path = http, path
        self._waiting: queue.Queue[_Entry] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="samewise-mail", daemon=True)
        self._thread.start()

    def keep(self, collection: str, impression: Impression) -> None:
        """Bring an impression; it is there when this returns, unless the writer is gone."""
        i = impression
        what = [collection, i.id, i.query.tolist(), i.rows, i.ids, i.candidate, i.user, i.text]
        entry = _Entry(["impression", *what])
        self._waiting.put(entry)
        entry.arrived.wait()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Bring the count of a request."""
        self._waiting.put(_Entry(["request", method, route, status, seconds]))

    def _run(self) -> None:
        while True:
            entries = [self._waiting.get()]
            while len(entries) < MOST_TOGETHER and not self._waiting.empty():
                entries.append(self._waiting.get())
            try:
                letter = orjson.dumps([entry.what for entry in entries])
                self._http.post(self._path, content=letter).raise_for_status()
            except Exception as error:
                # As when the writer is killed before it has written them: they are gone.
                _LOG.warning("%d impressions and counts did not arrive: %s", len(entries), error)
            for entry in entries:
                entry.arrived.set()


def take_mail(service: Service, metrics: Metrics, letter: bytes) -> None:
    """What the writer does with a letter."""
    for kind, *rest in orjson.loads(letter):
        if kind == "request":
            metrics.observe(*rest)
            continue
        collection, id, query, *shown = rest
        if collection in service.collections:
            impression = Impression(id, np.array(query, dtype=np.float32), *shown)
            service.get(collection).stores.keep(impression)


class Mailbox:
    """The writer's application, with a path for the letters of readers before it.

    Parameters
    ----------
    app : ASGI application
    path : str
        Known to the readers alone.
    """

    def __init__(self, app: Any, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        context = self._app.state.context
        take_mail(context.service, context.metrics, b"".join(parts))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
