"""Every verb over HTTP, and the clients."""

from __future__ import annotations

import asyncio
import io
import json
import threading

import httpx
import numpy as np
import pytest

import samewise
from samewise import AsyncClient, Client
from samewise.exceptions import InvalidInputError
from samewise.serve import ServiceError
from tests.serve.conftest import said


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_items_come_as_json_lines_or_an_array(serve, world):
    _, http = serve()
    http.put("/collections/c", json={})
    lines = "\n".join(
        json.dumps({"id": f"i{i}", "vector": v, "payload": {"n": i}})
        for i, v in enumerate(world.items[:50].tolist())
    )
    path = "/collections/c/items"
    ndjson, array = (
        {"Content-Type": kind} for kind in ("application/x-ndjson", "application/x-npy")
    )
    assert http.put(path, content=lines, headers=ndjson).json() == {"count": 50, "seq": 1}
    for dtype, first in ((np.float32, 50), (np.float64, 100)):
        rows = np.asfortranarray(world.items[first : first + 50], dtype=dtype)
        more = {"prefix": "i", "first": first}
        done = http.put(path, content=npy(rows), headers=array, params=more)
        assert done.json()["count"] == 50
    q = world.items[120]
    found = http.post("/collections/c/search", json={"vector": q.tolist(), "k": 5}).json()
    wanted = np.argsort(-(world.items[:150] @ q), kind="stable")[:5]
    assert [r["id"] for r in found["results"]] == [f"i{row}" for row in wanted]
    assert [r["position"] for r in found["results"]] == list(range(5))
    assert http.get("/collections/c/items/i7").json() == {"id": "i7", "payload": {"n": 7}}
    gone = http.request("DELETE", path, json={"ids": ["i7", "i8", "x"]})
    assert gone.json()["count"] == 2
    assert http.get("/collections/c/items/i7").status_code == 404
    assert http.get("/collections/c").json()["items"] == 148


def test_search_teach_and_look(books, world):
    q = world.items[3].tolist()
    found = books.post("/collections/c/search", json={"vector": q, "k": 6}).json()
    ids = [result["id"] for result in found["results"]]
    events = [
        {
            "type": "judged",
            "event": "one",
            "impression": found["impression"],
            "liked": ids[4:],
            "disliked": ids[:2],
            "user": "ann",
        },
        {"type": "click", "event": "two", "impression": found["impression"], "clicked": ids[2:3]},
    ]
    done = books.post("/collections/c/feedback", json={"events": events}).json()
    assert (done["new"], len(done["events"])) == (2, 2)
    again = books.post("/collections/c/feedback", json={"events": events}).json()
    assert again == {**done, "new": 0}
    live = {"vector": q, "k": 6, "which": "live", "min_seq": done["seq"]}
    moved = books.post("/collections/c/search", json=live).json()
    assert [r["id"] for r in moved["results"]] != ids
    gaps = []
    for item in (ids[4], ids[0]):
        asked = {"impression": found["impression"], "item": item}
        why = books.get("/collections/c/explain", params=asked).json()
        start, live = why["scores"]["start"], why["scores"]["live"]
        assert start["score"] == why["scores"]["served"]["score"]
        assert live["score"] == pytest.approx(start["score"] + live["linear"] + live["remembered"])
        gaps.append([live["score"] - start["score"], why["nearest_lists"][0]["pull"]])
        # Both events are remembered, and named by their records.
        assert sorted(one["seq"] for one in why["nearest_lists"]) == sorted(done["events"])
    # What was liked has risen against what was disliked, and its list pulls toward it.
    assert (np.array(gaps[0]) > gaps[1]).all()
    assert books.get("/collections/c/versions").json()["versions"] == []
    assert books.post("/collections/c/promote", json={}).json()["version"] == 1
    guard = books.get("/collections/c/guard").json()
    assert guard["served"] == {"rest": 1, "first": 1}
    assert guard["history"][-1]["why"] == "by hand"
    assert books.post("/collections/c/rollback").json()["version"] == 0
    assert books.post("/collections/c/rollback").status_code == 422
    kinds = [
        line.removeprefix("event: ")
        for line in books.get("/collections/c/events?follow=false&after=2").text.splitlines()
        if line.startswith("event: ")
    ]
    assert kinds == ["feedback", "feedback", "promote", "rollback", "rollback"]
    assert books.delete("/collections/c/events?user=ann").json()["count"] == 1
    log = books.get("/collections/c/log").text.splitlines()
    assert [json.loads(line)["event"] for line in log] == ["two"]
    assert books.post("/collections/c/reset").status_code == 200
    assert books.post("/collections/c/compact").json()["segments"] == 0
    assert books.post("/collections/c/start", json={"again": True}).status_code == 200


def test_filters(books, world):
    asked = {"vector": world.items[3].tolist(), "k": 300, "filters": {"n": {"gte": 390}}}
    found = books.post("/collections/c/search", json=asked).json()["results"]
    assert {result["payload"]["n"] for result in found} == set(range(390, 400))
    assert (
        books.post("/collections/c/search", json={**asked, "filters": {"n": {"like": 3}}})
        .json()["error"]
        .startswith("The filter on 'n' must be")
    )


def test_health_metrics_and_openapi(books, world):
    books.post("/collections/c/search", json={"vector": world.items[3].tolist()})
    assert books.get("/healthz").json() == {"status": "ok"}
    assert books.get("/readyz").json() == {"failed": []}
    text = books.get("/metrics").text
    assert 'samewise_items{collection="c"} 400' in text
    route = 'route="/collections/{collection}/search"'
    assert f'samewise_requests_total{{method="POST",{route},status="200"}} 1' in text
    assert f'samewise_request_seconds_bucket{{{route},le="+Inf"}} 1' in text
    openapi = books.get("/openapi.json").json()
    schemas = openapi["components"]["schemas"]
    assert schemas["FeedbackEvent"]["additionalProperties"] is False
    body = openapi["paths"]["/collections/{collection}/items"]["put"]["requestBody"]
    assert set(body["content"]) == {
        "application/json",
        "application/x-ndjson",
        "application/x-npy",
        "application/vnd.apache.arrow.stream",
        "application/vnd.apache.arrow.file",
    }
    assert list(books.get("/collections").json()) == ["c"]


def test_a_stream_of_events_follows_the_log(books, world):
    books.post("/collections/c/start", json={})
    seen, found = threading.Event(), []

    def follow():
        with books.stream("GET", "/collections/c/events", params={"after": 2}) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: ")))
                    seen.set()
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    books.post("/collections/c/feedback", json={"events": [said(world, "e", "bob")]})
    assert seen.wait(20)
    thread.join()
    assert found[0]["user"] == "bob"
    resumed = books.get(
        "/collections/c/events", params={"follow": "false"}, headers={"Last-Event-ID": "2"}
    )
    assert resumed.text.startswith("id: 3\nevent: feedback\n")


BAD = {
    "an unknown field": ("search", {"vector": [1.0] * 12, "kk": 3}, 422, "body.kk"),
    "neither vector nor text": ("search", {}, 422, "either a 'vector' or a 'text'"),
    "both": ("search", {"vector": [1.0] * 12, "text": "x"}, 422, "either a 'vector'"),
    "a text where vectors are given": ("search", {"text": "x"}, 422, "vectors, not texts"),
    "another width": ("search", {"vector": [1.0]}, 422, "12 features"),
    "k of 0": ("search", {"vector": [1.0] * 12, "k": 0}, 422, "body.k"),
    "k beyond the limit": ("search", {"vector": [1.0] * 12, "k": 1001}, 413, "At most 1000"),
    "which of none": ("search", {"vector": [1.0] * 12, "which": "best"}, 422, "body.which"),
    "too much exploring": (
        "search",
        {"vector": [1.0] * 12, "k": 5, "explore": 4},
        422,
        "explore must be",
    ),
    "an unknown kind": ("feedback", {"events": [{"type": "smile"}]}, 422, "events.0.type"),
    "no events": ("feedback", {"events": []}, 422, "events"),
    "a weight beyond the limit": (
        "feedback",
        {"events": [{"type": "click", "weight": 11, "impression": "x"}]},
        422,
        "weight of an event is 10",
    ),
    "a negative version": ("promote", {"version": -1}, 422, "body.version"),
    "an unknown version": ("promote", {"version": 7}, 422, "version must be one of"),
}


def places(answer):
    said = answer.json()
    return said["error"] + " ".join(".".join(p["where"]) for p in said.get("places", []))


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_requests(books, case):
    verb, body, status, message = BAD[case]
    answer = books.post(f"/collections/c/{verb}", json=body)
    assert answer.status_code == status
    assert message in places(answer)


def test_bad_bodies(books):
    path = "/collections/c/items"
    for content, kind, status, message in (
        (b"{", "application/json", 422, "not JSON"),
        (b'{"items": [{"id": "a", "vector": [NaN]}]}', "application/json", 422, "not JSON"),
        (b'{"items": [{"id": "a", "vector": [1e999]}]}', "application/json", 422, "not JSON"),
        (b"", "application/x-ndjson", 422, "no lines"),
        (b"x", "text/plain", 415, "Items are sent as"),
        (b"nonsense", "application/x-npy", 422, "not a .npy file"),
        (npy(np.array([object()])), "application/x-npy", 422, "float32 or float64"),
        (npy(np.ones((2, 12)))[:-1], "application/x-npy", 422, "another length"),
        (npy(np.ones((2, 9000))), "application/x-npy", 413, "at most 8192"),
        (npy(np.ones((2, 5))), "application/x-npy", 422, "12 features"),
    ):
        answer = books.put(path, content=content, headers={"Content-Type": kind})
        assert (answer.status_code, message in answer.text) == (status, True), answer.text
    mixed = {"items": [{"id": "a", "vector": [1.0] * 12}, {"id": "b"}]}
    assert "one length, or none" in books.put(path, json=mixed).text
    feedback = books.post(
        "/collections/c/feedback", content=b"x", headers={"Content-Type": "text/plain"}
    )
    assert feedback.status_code == 415
    adapter = books.put(
        "/collections/c/adapter",
        content=b"no file",
        headers={"Content-Type": "application/octet-stream"},
    )
    assert (adapter.status_code, "not a samewise file" in adapter.text) == (422, True)
    assert books.put("/collections/c/adapter", content=b"x").status_code == 415
    for path in ("/collections/nothing/guard", "/nothing", "/collections/c/items/nothing"):
        assert books.get(path).status_code == 404


# The client


class Awaited:
    """An AsyncClient whose methods are awaited at once, so that one test is for both clients."""

    def __init__(self, *given, **more):
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*given, **more)

    def __enter__(self):
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *error):
        self._runner.run(self._client.__aexit__(*error))
        self._runner.close()

    def events(self, **given):
        async def listed():
            return [record async for record in self._client.events(**given)]

        return self._runner.run(listed())

    def __getattr__(self, name):
        method = getattr(self._client, name)
        return lambda *given, **more: self._runner.run(method(*given, **more))


clients = pytest.mark.parametrize("kind", [Client, Awaited])


@clients
def test_the_client_has_the_same_verbs(serve, world, tmp_path, kind):
    url, _ = serve()
    with kind(url, "c") as client:
        assert client.make(memory=500)
        assert not client.make(memory=500)
        names = [f"i{i}" for i in range(len(world.items))]
        payloads = [{"group": int(group)} for group in world.groups]
        assert client.put(names, world.items, payloads) == 1
        assert client.start() == 2
        found = client.search(world.items[0], k=4, filters={"group": int(world.groups[0])})
        ids = [result["id"] for result in found["results"]]
        one = {"type": "judged", "impression": found["impression"], "liked": ids[:1]}
        done = client.feedback({**one, "disliked": ids[1:2], "user": "ann"})
        assert done["new"] == 1
        client.search(world.items[0], min_seq=done["seq"])
        assert client.describe()["events"] == 1
        assert client.explain(found["impression"], ids[0])["item"] == ids[0]
        content = client.adapter()
        (tmp_path / "a").write_bytes(content)
        assert samewise.load(tmp_path / "a").n_events_ == 1
        assert client.promote() == 1
        assert client.versions()["served"] == {"rest": 1, "first": 1}
        assert client.rollback() == 0
        assert client.guard()["served"] == {"rest": 0, "first": 0}
        kinds = [record["kind"] for record in client.events(after=2)]
        assert kinds == ["feedback", "promote", "rollback"]
        assert len(client.log()) == 1
        assert client.forget("ann") == 1
        assert client.put_adapter(content) > done["seq"]
        assert client.adapter() == content
        client.reset()
        undone = client.feedback({**one, "event": "a/b", "disliked": ids[1:2]})
        assert client.undo("a/b") > undone["seq"]
        assert client.log() == []
        with pytest.raises(ServiceError, match="no event 'a/b', or no longer"):
            client.undo("a/b")
        assert client.delete(["i0", "gone"]) == 1
        with pytest.raises(ServiceError, match="nothing to roll back to") as refused:
            client.rollback()
        assert refused.value.status == 422
        with pytest.raises(InvalidInputError, match="as many vectors as ids, 1"):
            client.put(["a"], np.ones((2, 12)))
    with kind(url, "nothing") as other, pytest.raises(ServiceError, match="no collection"):
        list(other.events())


@clients
def test_the_client_tries_again_and_teaches_once(serve, world, kind):
    """An answer that is lost on the way: the same events are sent again, with the same ids."""
    url, _ = serve()
    with kind(url, "c", retries=2) as client:
        client.make()
        client.put([f"i{i}" for i in range(400)], world.items)
        lost = []

        def lose(answer):
            if len(lost) < 2:
                lost.append(answer)
                raise httpx.ReadError("the connection broke")

        def read_and_lose(answer):
            answer.read()
            lose(answer)

        async def await_and_lose(answer):
            await answer.aread()
            lose(answer)

        if kind is Client:
            client._http.event_hooks["response"].append(read_and_lose)
        else:
            client._client._http.event_hooks["response"].append(await_and_lose)
        event = said(world, "x")
        del event["event"]
        done = client.feedback([event])
        assert len(lost) == 2
        assert done["new"] == 0 and lost[0].json()["new"] == 1
        lost.clear()
        # What is not safe to repeat is sent once.
        with pytest.raises(ServiceError, match="gave no answer"):
            client.promote()
        assert len(client.versions()["versions"]) == 1


def test_a_service_that_is_not_there():
    with Client("http://127.0.0.1:9", "c", retries=0) as client:
        with pytest.raises(ServiceError, match="gave no answer") as error:
            client.describe()
        assert error.value.status == 0
