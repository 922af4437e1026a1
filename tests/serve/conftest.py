"""Collections of items in groups, and services that answer on loopback."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("fastapi")

import httpx
import uvicorn

from samewise.serve.collection import Collection
from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.http_app import make_app
from samewise.serve.http_guarding import RequestLimits, Tokens
from samewise.serve.service import Service
from tests.adapt.conftest import World


@pytest.fixture
def world():
    return World()


@pytest.fixture
def make_collection(tmp_path):
    """Collections of the same folder, one after the other."""
    opened = []
    folder = tmp_path / "collection"
    folder.mkdir()

    def make(settings=None, **more):
        if not (folder / "collection.sqlite").exists() and settings is None:
            settings = Settings()
        opened.append(Collection(folder, settings, **more))
        return opened[-1]

    yield make
    for collection in opened:
        collection.close()


def fill(collection, world):
    """Put the items of the world, named i0, i1, …"""
    items = [
        NewItem(f"i{i}", {"n": i, "group": int(g)}) for i, g in enumerate(world.groups.tolist())
    ]
    return collection.put(items, world.items)


def said(world, event, user=None):
    """A judged list of the world as a body of feedback."""
    q, shown, y = world.judged()
    names = np.array([f"i{row}" for row in shown])
    body = {
        "type": "judged",
        "event": event,
        "query": world.items[q].tolist(),
        "shown": names.tolist(),
        "liked": names[y > 0].tolist(),
        "disliked": names[y < 0].tolist(),
    }
    return body if user is None else {**body, "user": user}


@contextmanager
def running(app):
    """The application behind a real HTTP server, in a thread of this process."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    config = uvicorn.Config(
        app, "127.0.0.1", port, log_level="error", timeout_graceful_shutdown=1, ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def serve(tmp_path):
    """Start a service: its address and an HTTP client."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(tokens=(), limits=None, encode=None, folder=None, read_only=False):
            service = Service(folder or tmp_path / "data", encode)
            app = make_app(service, Tokens(tokens, read_only), limits or RequestLimits())
            url = stack.enter_context(running(app))
            http = stack.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=60))
            return url, http

        yield start


@pytest.fixture
def books(serve, world):
    """A service with a collection of the world's items, and its HTTP client."""
    _, http = serve()
    assert http.put("/collections/c", json={}).json() == {"new": True}
    items = [
        {"id": f"i{i}", "vector": v, "payload": {"n": i}}
        for i, v in enumerate(world.items.tolist())
    ]
    assert http.put("/collections/c/items", json={"items": items}).json()["count"] == len(items)
    return http
