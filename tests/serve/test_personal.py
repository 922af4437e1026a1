"""A user's own lists on top of what all have taught."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.adapt import LiveAdapter
from samewise.adapt.own_memory import OwnMemory
from samewise.serve import personal_memories
from samewise.serve.collection_stores import Settings
from samewise.serve.feedback_resolving import Said
from samewise.serve.searching import Question
from tests.serve.conftest import fill, said

LISTS = 5


def test_it_adds_what_the_memory_of_an_adapter_adds(world):
    """An adapter that hears the same lists, without its linear part."""
    adapter = LiveAdapter(memory=8, guard=None, half_life=30.0, random_state=0).fit(world.items)
    course = adapter._fitted
    own = OwnMemory(course, 8)
    for n in range(30):
        q, shown, y = world.judged()
        weight = 1.0 + n % 3
        # Half of the queries are near ones, so that lists contradict one another.
        query = world.items[q if n % 2 else 3]
        own.hear(query, world.items[shown], y.astype(np.int64), weight)
        adapter.feedback(query, world.items[shown], y, weight=weight)
        for probe in (query, world.items[17]):
            rows = probe[None]
            remembered = course.embed(
                rows, np.zeros_like(rows), own._no_linear, course.memory.window
            )
            np.testing.assert_array_equal(own.added(probe), remembered[0])
    assert np.abs(own.added(world.items[3])).max() > 0.01


def right(world, id):
    """Whether an item is in one half of the space, near whose middle the query is."""
    away = (world.items - np.median(world.items, axis=0))[:, :4]
    return bool(away[int(id[1:]), np.abs(away[0]).argmin()] > 0)


def teach(collection, world, user, likes, n=LISTS, first=0):
    """Lists about item 0, in which a user likes the items of one half; the number of the last."""
    bodies = []
    for i in range(n):
        shown = [f"i{row}" for row in world.random.choice(np.arange(1, 400), 10, replace=False)]
        liked = [id for id in shown if right(world, id) == likes]
        body = {"type": "judged", "event": f"{user}{first + i}", "query": world.items[0].tolist()}
        disliked = [id for id in shown if id not in liked]
        bodies.append(Said(**body, shown=shown, liked=liked, disliked=disliked, user=user))
    seq = collection.feedback(bodies)[-1].seq
    assert collection.learning.wait(seq, 60)
    return seq


def answer(collection, world, user=None, which="served"):
    question = Question(20, which=which, user=user)
    return collection.search(question, world.items[0])["results"]


def share(world, results):
    return np.mean([right(world, one["id"]) for one in results])


@pytest.fixture
def taught(make_collection, world):
    collection = make_collection(Settings(personal=LISTS))
    fill(collection, world)
    teach(collection, world, "ann", True)
    teach(collection, world, "bob", False)
    return collection


def test_users_of_opposed_tastes_have_opposed_answers(taught, world):
    start = answer(taught, world, which="start")
    assert answer(taught, world) == start
    shares = [share(world, answer(taught, world, user)) for user in ("ann", "bob")]
    assert shares[0] >= 0.8 and shares[1] <= 0.2
    # The live form has learned from both, from bob last.
    shares = [share(world, answer(taught, world, user, "live")) for user in ("ann", "bob")]
    assert shares[0] > shares[1] + 0.3
    # Who said nothing, and the start, are as they were.
    assert answer(taught, world, "eve") == start
    assert answer(taught, world, "ann", "start") == start
    # Only the newest lists count: by now ann likes what bob likes.
    teach(taught, world, "ann", False, LISTS, first=LISTS)
    assert share(world, answer(taught, world, "ann")) <= 0.2


def test_it_is_off_by_default(make_collection, world):
    collection = make_collection(Settings())
    fill(collection, world)
    teach(collection, world, "ann", True)
    assert answer(collection, world, "ann") == answer(collection, world)
    assert len(collection.searching.personal) == 0


def test_a_restart_has_the_same_bits(taught, world, make_collection):
    # More than count, one at a time: what was derived on the way must not matter.
    for n in range(12):
        teach(taught, world, "ann", n % 3 > 0, 1, first=100 + n)
        before = answer(taught, world, "ann")
    taught.close()
    again = make_collection()
    assert answer(again, world, "ann") == before


def test_memory_is_bounded_and_what_left_comes_back(taught, world, monkeypatch):
    monkeypatch.setattr(personal_memories, "USERS", 2)
    first = answer(taught, world, "ann")
    for user in ("bob", "eve", "joe"):
        answer(taught, world, user)
        assert len(taught.searching.personal) <= 2
    assert answer(taught, world, "ann") == first


def test_forgotten_undone_and_reset(taught, world):
    start = answer(taught, world, which="start")
    assert answer(taught, world, "ann") != start and answer(taught, world, "bob") != start
    taught.forget("ann")
    assert answer(taught, world, "ann") == start
    # One event that is not the newest is taken back.
    before = answer(taught, world, "bob")
    found = taught.stores.events.find("bob0")
    taught.removed(lambda: (found.seq, taught.stores.events.remove(found.seq) or 1))
    without = answer(taught, world, "bob")
    assert without != before
    taught.decide("reset")
    assert answer(taught, world, "bob") == start
    teach(taught, world, "bob", False, first=50)
    assert share(world, answer(taught, world, "bob")) <= 0.2
    taught.start(again=True)
    assert answer(taught, world, "bob") == start


def test_over_http(serve, world):
    _, http = serve()
    http.put("/collections/c", json={"personal": LISTS}).raise_for_status()
    items = [{"id": f"i{i}", "vector": v} for i, v in enumerate(world.items.tolist())]
    http.put("/collections/c/items", json={"items": items}).raise_for_status()
    events = [
        {**said(world, f"e{n}", "ann"), "query": world.items[0].tolist()} for n in range(LISTS)
    ]
    seq = http.post("/collections/c/feedback", json={"events": events}).json()["seq"]
    body = {"vector": world.items[0].tolist(), "min_seq": seq, "user": "ann"}
    found = http.post("/collections/c/search", json=body).json()
    first = found["results"][0]
    asked = {"impression": found["impression"], "item": first["id"]}
    why = http.get("/collections/c/explain", params=asked).json()
    assert why["personal"] != 0.0
    served = why["scores"]["served"]["score"] + why["personal"]
    assert served == pytest.approx(first["score"], abs=1e-5)
    assert http.put("/collections/d", json={"personal": -1}).status_code == 422
    assert http.put("/collections/d", json={"personal": 1001}).status_code == 422
