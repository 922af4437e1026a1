"""What a curious user sends: odd names, deep bodies, feedback on what is gone."""

from __future__ import annotations

import json
import re
import threading
from urllib.parse import quote

import pytest

from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.group_commit import BusyError
from samewise.serve.service import Service
from tests.serve.conftest import fill, said

ODD = ["..", "../x", "/", "//a", " ", "?a=b#c", "%2e", "a\0b", "\u202eabc", "\U0001f600", "x" * 256]


def test_any_text_is_a_name(books, world):
    q = world.items[3].tolist()
    items = [{"id": id, "vector": q, "payload": {"id": id}} for id in ODD]
    assert books.put("/collections/c/items", json={"items": items}).json()["count"] == len(ODD)
    for id in ODD:
        # Clients take .. in a path for the folder above.
        name = quote(id, safe="").replace(".", "%2E")
        path = f"/collections/c/items/{name}"
        assert books.get(path).json() == {"id": id, "payload": {"id": id}}
    found = books.post("/collections/c/search", json={"vector": q, "k": len(ODD) + 1}).json()
    assert {result["id"] for result in found["results"]} == {*ODD, "i3"}
    event = {"type": "judged", "impression": found["impression"], "liked": ODD[:5]}
    event |= {"disliked": ODD[5:], "user": ODD[6], "event": ODD[7]}
    assert books.post("/collections/c/feedback", json={"events": [event]}).json()["new"] == 1
    log = json.loads(books.get("/collections/c/log").text)
    assert (log["liked"], log["user"], log["event"]) == (ODD[:5], ODD[6], ODD[7])
    asked = {"impression": found["impression"], "item": ODD[1]}
    assert books.get("/collections/c/explain", params=asked).json()["item"] == ODD[1]
    assert books.request("DELETE", "/collections/c/items", json={"ids": ODD}).json()["count"] == 11
    assert books.delete("/collections/c/events", params={"user": ODD[6]}).json()["count"] == 1


@pytest.mark.parametrize("id", ["", "x" * 257, "x" * 10**6, 5, None, "\ud800"])
def test_what_is_no_name_is_refused(books, world, id):
    items = {"items": [{"id": id, "vector": world.items[0].tolist()}]}
    answer = books.put("/collections/c/items", content=json.dumps(items))
    # What was sent is not repeated.
    assert answer.status_code in (415, 422) and len(answer.text) < 500
    for content in (json.dumps({"ids": [id]}), json.dumps({"vector": [1.0] * 12, "user": [id]})):
        verb, path = ("DELETE", "items") if "ids" in content else ("POST", "search")
        answer = books.request(
            verb,
            f"/collections/c/{path}",
            content=content,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 422 and len(answer.text) < 500


def test_deep_bodies_are_refused(books):
    """Parsers that call themselves for each bracket have an end."""
    for path, verb, opening in (
        ("search", "POST", b'{"filters":'),
        ("items", "PUT", b"["),
        ("items", "PUT", b'{"items":[{"id":"a","vector":[1,0,0,0,0,0,0,0,0,0,0,0],"payload":{"a":'),
    ):
        for depth in (400, 900, 100_000):
            content = opening + b"[" * depth
            if depth < 1000 and b"payload" in opening:
                content += b"]" * depth + b"}}]}"
            answer = books.request(
                verb,
                f"/collections/c/{path}",
                content=content,
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in (400, 422), (path, depth)


def test_errors_do_not_name_files(books):
    answer = books.put(
        "/collections/c/adapter",
        content=b"nonsense",
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.json()["error"].startswith("The body is not a samewise file")
    assert "/" not in answer.json()["error"]


def test_an_unforeseen_error_says_nothing(serve, monkeypatch):
    from samewise.serve import collection

    def fail(self):
        raise RuntimeError("the secret of the house")

    _, http = serve()
    http.put("/collections/c", json={})
    monkeypatch.setattr(collection.Collection, "facts", fail)
    answer = http.get("/collections/c")
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert answer.headers["content-type"] == "application/json"


def test_methods_are_named_and_made_up_ones_are_not_counted_apart(books):
    answer = books.request("PATCH", "/collections/c/items")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "DELETE, PUT")
    refused = [books.request(f"MADEUP{i}", "/collections/c/items") for i in range(5)]
    text = books.get("/metrics").text
    assert "MADEUP" not in text
    if {answer.status_code for answer in refused} == {405}:
        assert re.search(r'method="other",route=".*",status="405"\} 5', text)
    else:
        # httptools, where it is installed, reads no such methods at all.
        assert {answer.status_code for answer in refused} == {400}
        assert 'method="other"' not in text


def test_numbers_are_numbers(books):
    for body in ({"vector": [True] * 12}, {"vector": ["1"] * 12}, {"vector": [1] * 12, "k": True}):
        assert books.post("/collections/c/search", json=body).status_code == 422
    assert books.post("/collections/c/search", json={"vector": [1] * 12}).status_code == 200


def test_a_record_that_is_not_there_is_not_waited_for(books, world):
    asked = {"vector": world.items[0].tolist(), "min_seq": 10**9}
    answer = books.post("/collections/c/search", json=asked)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert answer.elapsed.total_seconds() < 4


def test_feedback_on_a_list_whose_items_were_replaced_or_deleted(books, world):
    q = world.items[3].tolist()
    found = books.post("/collections/c/search", json={"vector": q, "k": 4}).json()
    ids = [result["id"] for result in found["results"]]
    new = [{"id": id, "vector": (-world.items[3]).tolist()} for id in ids[:2]]
    books.put("/collections/c/items", json={"items": new})
    books.request("DELETE", "/collections/c/items", json={"ids": ids[2:]})
    event = {"type": "judged", "impression": found["impression"]}
    event |= {"liked": ids[:2], "disliked": ids[2:]}
    seq = books.post("/collections/c/feedback", json={"events": [event]}).json()["seq"]
    asked = {"vector": q, "k": 2, "which": "live", "min_seq": seq}
    assert books.post("/collections/c/search", json=asked).status_code == 200
    # What was shown was liked, and not what has its name now.
    parts = {}
    for id in (ids[0], ids[3]):
        why = {"impression": found["impression"], "item": id}
        parts[id] = books.get("/collections/c/explain", params=why).json()["scores"]
    gain = {id: p["live"]["score"] - p["start"]["score"] for id, p in parts.items()}
    assert gain[ids[0]] > gain[ids[3]]


# A collection that goes


def test_a_collection_is_deleted_with_all_it_knew(books, world, tmp_path):
    books.post("/collections/c/feedback", json={"events": [said(world, "e", "Maximiliane")]})
    assert books.delete("/collections/nothing").status_code == 404
    assert books.delete("/collections/c").json() == {"deleted": True}
    assert books.get("/collections/c").status_code == 404
    assert books.get("/collections").json() == {}
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == ["audit.jsonl", "lock"]
    # Its name is free, and nothing is left of what it held.
    assert books.put("/collections/c", json={"memory": 10}).json() == {"new": True}
    assert books.get("/collections/c").json()["committed"] == 0
    lines = (tmp_path / "data" / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["action"] for line in lines].count("delete") == 2


def test_who_is_amid_a_request_is_told(tmp_path, world):
    service = Service(tmp_path / "data")
    service.make("c", Settings())
    collection = service.get("c")
    fill(collection, world)
    service.delete("c")
    service.make("c", Settings())
    for work in (
        lambda: collection.put([NewItem("a", {})], world.items[:1]),
        lambda: collection.stores.items.get("i1"),
        lambda: collection.events(0, 10),
    ):
        with pytest.raises(BusyError, match="being closed"):
            work()
    # Also a thread that has read nothing before, whose connection would be to the new collection.
    refused = []

    def read():
        try:
            collection.stores.items.get("i1")
        except BusyError as error:
            refused.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert refused
    service.close()


def test_a_deletion_that_was_killed_is_finished(tmp_path, world):
    service = Service(tmp_path / "data")
    for name in "cd":
        service.make(name, Settings())
    service.close()
    (tmp_path / "data" / "c").rename(tmp_path / "data" / ".deleted-0123")
    again = Service(tmp_path / "data")
    assert list(again.collections) == ["d"]
    again.close()
    assert not (tmp_path / "data" / ".deleted-0123").exists()


def test_other_settings_are_a_conflict(books):
    answer = books.put("/collections/c", json={"encoder": "text"})
    assert (answer.status_code, "other settings" in answer.text) == (409, True)
