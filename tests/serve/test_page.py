"""The page: its files and their headers, comparisons, maps, undoing, what it watches."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest

import samewise
from samewise.serve.collection_stores import Settings
from samewise.serve.feedback_resolving import Said
from samewise.serve.http_guarding import Tokens
from samewise.serve.http_page_routes import OPEN, page_files
from samewise.serve.item_views import title_of
from samewise.serve.learning_curve import COLUMNS, PORTIONS, RECENT, LearningCurve
from tests.serve.conftest import fill, said

READ, FEEDBACK, ADMIN = "r" * 16, "f" * 16, "a" * 16


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def watched(http, **more):
    text = http.get("/collections/c/watch?follow=false", **more).text
    assert text.startswith("event: state\ndata: ") and text.endswith("\n\n")
    return json.loads(text.partition("data: ")[2])


def learned(http, seq):
    """Wait until it was learned from: the first list of all takes as long as compiling does."""
    end = time.monotonic() + 120
    while http.get("/collections/c").json()["seq"] < seq:
        assert time.monotonic() < end
        time.sleep(0.02)


# Files


def test_the_page_needs_no_token_and_everything_else_does(serve):
    _, http = serve([f"read:{READ}"])
    for path in OPEN:
        answer = http.get(path)
        assert answer.status_code == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'"):
            assert part in policy
        assert "frame-ancestors 'none'" in policy and "trusted-types 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/page/", "/page/none.js", "/page/../http_app.py", "/page/%2e%2e/http_app.py"):
        assert http.get(path).status_code == 401
        assert http.get(path, headers=bearer(READ)).status_code == 404
    assert http.get("/whoami").status_code == 401
    assert http.get("/whoami", headers=bearer(READ)).json()["scope"] == "read"


def test_the_files_fetch_nothing_from_elsewhere_and_set_no_html():
    own = {name: content.decode() for name, (content, _) in page_files().items()}
    assert {"index.html", "main.js", "page.css", "uplot.min.js", "uplot-license.txt"} <= set(own)
    # The namespace of SVG is a name, and the library names its home in a comment.
    named = {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}
    for name, text in own.items():
        assert set(re.findall(r"https?://[\w./-]+", text)) <= named, name
        for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert sink not in text, (name, sink)
    page = own["index.html"]
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", page)
    for address in re.findall(r'(?:src|href)="(/page/[^"]+)"', page):
        assert address in OPEN
    for name, text in own.items():
        for address in re.findall(r'from "(/page/[^"]+)"', text):
            assert address in OPEN, (name, address)


# Who may what


def test_read_only_lets_nobody_change_anything(serve, world):
    _, http = serve(read_only=True)
    assert http.get("/whoami").json() == {"name": "local", "scope": "read"}
    assert http.put("/collections/c", json={}).status_code == 403
    assert http.get("/collections").json() == {}
    capped = Tokens([f"admin:{ADMIN}"], read_only=True)
    assert capped.caller(f"Bearer {ADMIN}").scope == "read"
    assert capped.caller("Bearer other") is None


# Side by side


def test_a_comparison_says_where_each_item_was(books, world):
    for i in range(8):
        books.post("/collections/c/feedback", json={"events": [said(world, f"e{i}")]})
    seq = books.get("/collections/c").json()["committed"]
    learned(books, seq)
    body = {"item": "i3", "k": 5, "which": "live", "min_seq": seq}
    found = books.post("/collections/c/compare", json=body).json()
    vector = {"vector": world.items[3].tolist(), "k": 101}
    path = "/collections/c/search"
    start = books.post(path, json={**vector, "which": "start"}).json()["results"]
    live = books.post(path, json={**vector, "which": "live"}).json()["results"]
    start, live = ([r["id"] for r in each if r["id"] != "i3"] for each in (start, live))
    assert [r["id"] for r in found["results"]] == live[:5]
    assert [r["id"] for r in found["start"]] == start[:5]
    for result in found["results"]:
        place = start.index(result["id"])
        assert result["other_place"] == (place if place < 99 else None)
        own = world.items[3] @ world.items[int(result["id"][1:])]
        assert result["other_score"] == pytest.approx(own, abs=1e-5)
    for entry in found["start"]:
        assert entry["other_place"] == live.index(entry["id"])
    # Its impression can be taught.
    ids = [r["id"] for r in found["results"]]
    event = {"type": "judged", "impression": found["impression"], "liked": ids[:1]}
    event["disliked"] = ids[1:]
    assert books.post("/collections/c/feedback", json={"events": [event]}).json()["new"] == 1


@pytest.mark.parametrize("body", [{}, {"text": "a", "item": "i1"}, {"item": "i1", "k": 51}])
def test_a_comparison_is_of_one_query(books, body):
    assert books.post("/collections/c/compare", json=body).status_code == 422


def test_a_comparison_with_an_unknown_item_is_refused(books):
    assert books.post("/collections/c/compare", json={"item": "none"}).status_code == 404


def test_titles():
    assert title_of("a", {"title": "T", "text": "x"}, "text") == "T"
    assert title_of("a", {"title": " ", "body": "x" * 999}, "body") == "x" * 300
    assert title_of("a", {"title": 3, "text": None}, "text") == "a"


# The map


def test_the_map_has_the_leading_plane_and_moves_with_learning(books, world):
    first = books.get("/collections/c/map?which=live&n=60").json()
    assert len(first["ids"]) == len(first["start"]) == len(first["now"]) == 60
    start = np.array(first["start"])
    np.testing.assert_allclose(first["now"], start, atol=2e-4)
    rows = np.array([int(id[1:]) for id in first["ids"]])
    X = world.items[rows].astype(np.float64)
    X -= X.mean(axis=0)
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    plane = U[:, :2] * s[:2]
    plane /= np.sqrt((plane**2).sum(axis=1).mean())
    # The same plane, up to mirroring: inner products are equal.
    np.testing.assert_allclose(start @ start.T, plane @ plane.T, atol=2e-3)
    for i in range(20):
        done = books.post("/collections/c/feedback", json={"events": [said(world, f"e{i}")]})
    learned(books, done.json()["seq"])
    then = books.get("/collections/c/map?which=live&n=60").json()
    assert then["seq"] > first["seq"] and then["start"] == first["start"]
    assert np.abs(np.array(then["now"]) - start).max() > 0.01


def test_a_map_of_next_to_nothing_is_empty(serve):
    _, http = serve()
    http.put("/collections/c", json={"encoder": "text"})
    assert http.get("/collections/c/map").json()["ids"] == []
    assert http.get("/collections/c/pick").json() == {"items": []}
    assert not watched(http)["started"]
    texts = ["a red fox", "the blue sea", "a fox by the sea", "the green tree", "a red tree"]
    items = [{"id": str(i), "payload": {"text": text}} for i, text in enumerate(texts)]
    http.put("/collections/c/items", json={"items": items})
    picked = http.get("/collections/c/pick").json()["items"]
    assert sorted(one["title"] for one in picked) == sorted(texts)
    assert watched(http)["started"]


# Undoing


def test_an_event_that_is_undone_was_never_said(books, world):
    events = [said(world, f"e{i}", "ann") for i in range(12)]
    learned(books, books.post("/collections/c/feedback", json={"events": events}).json()["seq"])
    state = watched(books)
    for name in ("e4", "e11"):
        seq = books.delete(f"/collections/c/events/{name}").json()["seq"]
    learned(books, seq)
    assert books.delete("/collections/c/events/e4").status_code == 404
    assert books.delete("/collections/c/events/none").status_code == 404
    left = watched(books)
    assert (state["events"], left["events"]) == (12, 10)
    assert left["curve"]["events"][-1] == 10
    # Another collection that never heard of them ends in the same answers.
    books.put("/collections/d", json={})
    items = [{"id": f"i{i}", "vector": v} for i, v in enumerate(world.items.tolist())]
    books.put("/collections/d/items", json={"items": items})
    rest = [event for event in events if event["event"] not in ("e4", "e11")]
    seq = books.post("/collections/d/feedback", json={"events": rest}).json()["seq"]
    asked = {"vector": events[4]["query"], "k": 20, "which": "live"}
    one = books.post("/collections/c/search", json=asked).json()["results"]
    two = books.post("/collections/d/search", json={**asked, "min_seq": seq}).json()["results"]
    assert [(r["id"], r["score"]) for r in one] == [(r["id"], r["score"]) for r in two]
    # Sent again, it is known already.
    again = books.post("/collections/c/feedback", json={"events": [events[4]]}).json()
    assert again["new"] == 0 and watched(books)["events"] == 10


def test_only_an_admin_undoes_what_is_old(serve, world, monkeypatch):
    _, http = serve([f"feedback:{FEEDBACK}", f"admin:{ADMIN}"])
    http.put("/collections/c", json={}, headers=bearer(ADMIN))
    items = [{"id": f"i{i}", "vector": v} for i, v in enumerate(world.items.tolist())]
    http.put("/collections/c/items", json={"items": items}, headers=bearer(ADMIN))
    body = {"events": [said(world, "one"), said(world, "two")]}
    http.post("/collections/c/feedback", json=body, headers=bearer(FEEDBACK))
    monkeypatch.setattr("samewise.serve.undoing.TEACHERS_MAY", 0.0)
    path = "/collections/c/events/"
    refused = http.delete(f"{path}one", headers=bearer(FEEDBACK))
    assert refused.status_code == 422 and "ask an admin" in refused.json()["error"]
    assert http.delete(f"{path}one", headers=bearer(ADMIN)).status_code == 200
    monkeypatch.undo()
    assert http.delete(f"{path}two", headers=bearer(FEEDBACK)).status_code == 200


# What is watched


def test_the_curve_has_what_each_list_said_before_it_was_learned_from(make_collection, world):
    collection = make_collection()
    fill(collection, world)
    twin = make_twin(collection)
    lists = [said(world, f"e{i}") for i in range(30)]
    wanted = []
    for body in lists:
        wanted.append(agreements(twin, world, body))
        rows = [int(id[1:]) for id in body["shown"]]
        y = [
            1 if id in body["liked"] else -1 if id in body["disliked"] else 0
            for id in body["shown"]
        ]
        twin.feedback(np.float32(body["query"]), world.items[rows].astype(np.float32), y)
    done = collection.feedback([Said(**body) for body in lists])
    assert collection.learning.wait(done[-1].seq, 120)
    recent = collection.learning.curve.recent()
    assert len(recent) == 30
    np.testing.assert_allclose(recent[:, 1:], wanted, atol=1e-6)
    table = collection.learning.curve.table()
    assert table["events"] == list(range(1, 31)) and table["lists"] == [1] * 30
    np.testing.assert_allclose(table["auc_live"], recent[:, 3], atol=1e-5)
    np.testing.assert_allclose(np.exp(table["wealth_rest"][-1]), twin.guard_.wealth["rest"], 1e-4)
    np.testing.assert_allclose(np.exp(table["needed_first"][-1]), twin.guard_.needed["first"], 1e-4)


def make_twin(collection):
    from samewise import LiveAdapter

    rows = collection._given_rows()
    return LiveAdapter(log=False, random_state=0).fit(rows)


def agreements(adapter, world, body):
    """AUC under start, served and live, by counting pairs."""
    found = []
    for form in (adapter.start, adapter.served, adapter.live):
        q = form.embed_query(np.float32(body["query"]))
        scores = {
            id: float(world.items[int(id[1:])].astype(np.float32) @ q) for id in body["shown"]
        }
        pairs = [(scores[a], scores[b]) for a in body["liked"] for b in body["disliked"]]
        found.append(np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]))
    return found


def test_the_curve_is_the_same_after_a_start_again(make_collection, world):
    first = make_collection(snapshot_every=7)
    fill(first, world)
    lists = [Said(**said(world, f"e{i}", f"u{i % 3}")) for i in range(25)]
    done = first.feedback(lists)
    assert first.learning.wait(done[-1].seq, 120)
    first.decide("promote")
    first.decide("rollback")
    before = first.learning.curve.state()
    assert [mark["why"] for mark in first.learning.curve.marks] == ["by hand"] * 4
    first.close()
    second = make_collection(snapshot_every=7)
    after = second.learning.curve.state()
    assert before.values == after.values
    for name, array in before.arrays.items():
        np.testing.assert_array_equal(array, after.arrays[name])


def test_the_curve_halves_when_it_is_full():
    curve = LearningCurve()
    n = 4 * PORTIONS
    for i in range(n):
        if curve._n and curve._table[curve._n - 1, 0] < curve._size:
            row = curve._table[curve._n - 1]
        else:
            if curve._n == PORTIONS:
                curve._halve()
            row = curve._table[curve._n]
            curve._n += 1
        row[:2] += 1
        row[2] += i
        row[8] = i + 1
    table = curve.table()
    assert sum(table["lists"]) == n and len(table["lists"]) <= PORTIONS
    assert table["events"][-1] == n and len(table) == len(COLUMNS) and RECENT > 0
    # The mean of the numbers of a portion's lists is in its middle.
    ends = np.cumsum(table["lists"])
    np.testing.assert_allclose(table["auc_start"], ends - (np.array(table["lists"]) + 1) / 2)


def test_who_taught_and_what_was_hard(books, world):
    def backward(event):
        return {**event, "liked": event["disliked"], "disliked": event["liked"]}

    right = [said(world, f"a{i}", "ann") for i in range(6)]
    wrong = [backward(said(world, f"b{i}", "bob")) for i in range(3)]
    thumb = {"type": "thumb", "query": right[0]["query"], "item": "i7", "up": True, "event": "t"}
    done = books.post("/collections/c/feedback", json={"events": [*right, *wrong, thumb]}).json()
    learned(books, done["seq"])
    users = {one["user"]: one for one in books.get("/collections/c/teachers").json()["users"]}
    assert {user: one["events"] for user, one in users.items()} == {"ann": 6, "bob": 3, None: 1}
    assert users["ann"]["kinds"] == {"judged lists": 6} and users[None]["kinds"] == {"thumbs": 1}
    assert users["ann"]["agreement"] > 0 > users["bob"]["agreement"]
    hard = books.get("/collections/c/hard").json()["queries"]
    served = [one["auc"]["served"] for one in hard]
    assert served == sorted(served) and served[-1] < 0.5
    assert {one["user"] for one in hard if one["auc"]["start"] < 0.3} <= {"bob", "ann"}
    assert any(one["user"] == "bob" for one in hard)
    assert all(one["liked"] and one["asked"].startswith("like: ") for one in hard)
    books.delete("/collections/c/events?user=bob")
    users = {one["user"]: one for one in books.get("/collections/c/teachers").json()["users"]}
    assert set(users) == {"ann", None}
    assert all(one["user"] != "bob" for one in books.get("/collections/c/hard").json()["queries"])


def test_the_text_of_a_query_is_kept_for_people(serve):
    _, http = serve()
    http.put("/collections/c", json={"encoder": "text"})
    words = ["fox", "sea", "tree", "wolf", "lake", "bird"]
    texts = [f"a {a} and a {b}" for a in words for b in words if a != b]
    items = [{"id": str(i), "payload": {"text": text}} for i, text in enumerate(texts)]
    http.put("/collections/c/items", json={"items": items})
    found = http.post("/collections/c/compare", json={"text": "the fox", "k": 12}).json()
    ids = [r["id"] for r in found["results"]]
    event = {"type": "judged", "impression": found["impression"], "event": "e"}
    event |= {"liked": ids[-1:], "disliked": ids[:-1]}
    seq = http.post("/collections/c/feedback", json={"events": [event]}).json()["seq"]
    learned(http, seq)
    hard = http.get("/collections/c/hard").json()["queries"]
    assert [one["asked"] for one in hard] == ["the fox"]
    assert hard[0]["liked"] == [found["results"][-1]["title"]]


def test_watching_says_what_is_missing(books, world):
    assert not watched(books)["started"]
    done = books.post("/collections/c/feedback", json={"events": [said(world, "e")]}).json()
    learned(books, done["seq"])
    state = watched(books)
    assert state["started"] and state["events"] == 1 and state["settings"]["guard"] == 0.05
    assert set(state["guard"]) >= {"wealth", "needed", "expected_events", "fallback", "credible"}
    assert state["per_minute"][-1] + state["per_minute"][-2] == 1
    assert state["versions"] == [] and state["marks"] == []
    assert "NaN" not in json.dumps(state)


def test_remembered_lists_are_named_by_their_records(make_collection, world):
    first = make_collection(Settings(memory=6), snapshot_every=4)
    fill(first, world)
    done = first.feedback([Said(**said(world, f"e{i}", f"u{i % 3}")) for i in range(14)])
    assert first.learning.wait(done[-1].seq, 120)
    assert named(first) == [one.seq for one in done[-6:]]
    # After a start again, after a person was forgotten, and after a reset.
    first.close()
    second = make_collection(snapshot_every=4)
    assert named(second) == [one.seq for one in done[-6:]]
    second.forget("u1")
    left = [one.seq for i, one in enumerate(done) if i % 3 != 1]
    assert named(second) == left[-6:]
    second.decide("reset")
    (last,) = second.feedback([Said(**said(world, "new"))])
    assert second.learning.wait(last.seq, 120)
    assert named(second) == [last.seq]


def test_lists_that_were_learned_elsewhere_have_no_record(make_collection, world, tmp_path):
    collection = make_collection()
    fill(collection, world)
    collection.feedback([Said(**said(world, f"e{i}")) for i in range(3)])
    collection.import_adapter(make_taught(collection, tmp_path))
    (last,) = collection.feedback([Said(**said(world, "here"))])
    assert collection.learning.wait(last.seq, 120)
    assert named(collection) == [None, None, None, last.seq]


def make_taught(collection, tmp_path):
    """The adapter of the collection, out of a file."""
    collection.learning.wait(collection.stores.events.last(), 120)
    collection.export_adapter(tmp_path / "adapter.samewise")
    return samewise.load(tmp_path / "adapter.samewise")


def named(collection):
    """The records of what the live form remembers, the oldest first."""
    memory, curve = collection.learning.adapter._fitted.memory, collection.learning.curve
    first, end, _ = memory.window
    assert curve.record_of(end, memory) is None
    assert first == 0 or curve.record_of(first - 1, memory) is None
    return [curve.record_of(number, memory) for number in range(first, end)]
