"""Events in PostgreSQL: the same log, the same model, the same promises."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("psycopg")

from samewise.exceptions import InvalidInputError
from samewise.serve.backing_up import back_up
from samewise.serve.checking import check_folder
from samewise.serve.collection import Collection
from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.event_store import UnreachableError
from samewise.serve.feedback_resolving import Said
from samewise.serve.postgres_events import PostgresEvents
from samewise.serve.searching import Question
from samewise.serve.service import Service
from tests.adapt.conftest import World
from tests.serve.conftest import fill, said
from tests.serve.postgres import Server
from tests.serve.test_workers import Program, counted, wait_for


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def events(server, request):
    events = PostgresEvents(server.url, request.node.name)
    yield events
    events.close()


def model(collection, path):
    collection.export_adapter(path)
    return path.read_bytes()


def teach(collection, world, n, first=0, user=None):
    done = collection.feedback([Said(**said(world, f"e{first + i}", user)) for i in range(n)])
    assert collection.learning.wait(done[-1].seq, 60)


def test_records_are_numbered_and_an_id_counts_once(events):
    odd = "a\0'; DROP TABLE samewise_log; --\u202e"
    with events.transaction():
        assert events.append("feedback", {"a": odd}, np.ones(3, np.float32), odd, odd) == (1, True)
        assert events.append("feedback", {"a": 2}, None, "v", "e2") == (2, True)
        assert events.append("feedback", {"a": 3}, None, "u", odd) == (1, False)
        assert events.append("promote", {"version": None}) == (3, True)
        assert events.last() == 0
    assert events.last() == 3
    first, second, third = events.read(0)
    assert (first.seq, first.body, first.user) == (1, {"a": odd}, odd)
    np.testing.assert_array_equal(first.query, np.ones(3))
    assert (second.query, third.kind) == (None, "promote")
    assert [r.seq for r in events.read(0, 1)] == [1]
    assert events.newest("promote", 2) is None and events.newest("promote", 3).seq == 3
    assert [r.seq for r in events.all_of("promote")] == [3]
    assert [r.seq for r in events.newest_of("v", 0, 3, 1)] == [2]
    assert events.newest_of("v", 2, 3, 1) == events.newest_of("v", 0, 1, 1) == []
    assert events.find(odd).seq == 1 and events.find("nothing") is None
    with events.transaction():
        assert events.forget(odd) == (1, 1)
        assert events.forget("nobody") == (0, 0)
        events.remove(3)
        events.remove(2)
    # Only feedback is removed, and its id stays known.
    assert [r.seq for r in events.read(0)] == [3]
    with events.transaction():
        assert events.append("feedback", {}, None, None, "e2") == (2, False)
        assert events.drop_before(4) == 1


def test_what_was_taken_back_leaves_no_gap(events):
    with pytest.raises(RuntimeError), events.transaction():
        events.append("put", {})
        raise RuntimeError
    with events.transaction():
        events.append("put", {"first": True})
        seq = events.position
        with pytest.raises(RuntimeError), events.part():
            events.append("feedback", {}, None, None, "e")
            raise RuntimeError
        events.position = seq
        with events.part():
            assert events.append("feedback", {}, None, None, "e") == (2, True)
    assert [r.seq for r in events.read(0)] == [1, 2]


def test_a_collection_is_written_by_one_service(events, server, monkeypatch):
    from samewise.serve import postgres_events

    monkeypatch.setattr(postgres_events, "PATIENCE", 0.2)
    with pytest.raises(InvalidInputError, match="Another service writes"):
        PostgresEvents(server.url, events._collection)


def test_an_address_where_nothing_is():
    with pytest.raises(UnreachableError, match="cannot be used") as error:
        PostgresEvents("postgresql://me:secret@127.0.0.1:9/x", "c")
    assert "secret" not in str(error.value)


def test_a_service_is_the_same_to_the_bit_as_with_sqlite(server, tmp_path):
    """Feedback, promotions, forgetting, a text encoder that starts again: wherever the log is."""
    found = []
    for name, url in (("here", None), ("there", server.url)):
        world = World()
        service = Service(tmp_path / name, None, 10, url)
        service.make("c", Settings())
        collection = service.get("c")
        fill(collection, world)
        teach(collection, world, 25)
        collection.decide("promote")
        teach(collection, world, 8, 25, "ann")
        assert collection.forget("ann")[0] == 8
        assert not collection.feedback([Said(**said(world, "e3"))])[0].new
        seq = collection.stores.events.last()
        before = model(collection, tmp_path / "m")
        service.make("t", Settings(encoder="text"))
        texts = service.get("t")
        words = "red blue green deep old new".split()
        texts.put(
            [NewItem(f"i{i}", {"text": f"{words[i % 6]} {words[i % 5]} n{i}"}) for i in range(30)]
        )
        texts.search(Question(k=3), text="red")
        texts.put([NewItem("late", {"text": "a word of its own"})])
        texts.start(again=True)
        answers = [r["id"] for r in texts.search(Question(k=3), text="word of")["results"]]
        service.close()
        service = Service(tmp_path / name, None, 10, url)
        collection = service.get("c")
        assert model(collection, tmp_path / "m") == before
        again = service.get("t").search(Question(k=3), text="word of")["results"]
        assert [r["id"] for r in again] == answers and answers[0] == "late"
        assert service.get("t").compact()["records"] > 0
        service.close()
        counts, problems = check_folder(tmp_path / name, url)
        assert not problems
        found.append((seq, before, answers, counts))
    assert found[0] == found[1]
    with pytest.raises(InvalidInputError, match="give --events"):
        Service(tmp_path / "there")
    service = Service(tmp_path / "there", None, 10, server.url)
    # A copy of the running service has the log in its own files.
    with pytest.raises(InvalidInputError, match="give --events"):
        back_up(tmp_path / "there", tmp_path / "copy")
    assert back_up(tmp_path / "there", tmp_path / "copy", url=server.url) == found[0][3]
    copy = Service(tmp_path / "copy")
    assert model(copy.get("c"), tmp_path / "m") == found[0][1]
    assert not copy.get("c").feedback([Said(**said(World(), "e3"))])[0].new
    copy.close()
    id = service.get("c").stores.database.setting("events")
    service.delete("c")
    service.close()
    left = PostgresEvents(server.url, id)
    assert left.last() == 0
    left.close()


def test_a_crash_of_the_database(server, tmp_path):
    """It is killed amid commits: what was acknowledged is there, and the service goes on."""
    world = World()
    folder = tmp_path / "c"
    folder.mkdir()
    collection = Collection(folder, Settings(), snapshot_every=20, url=server.url)
    fill(collection, world)
    collection.start()
    acknowledged, refused, ends = {}, [], threading.Event()

    def work():
        n = 0
        while not ends.is_set():
            n += 1
            try:
                (done,) = collection.feedback([Said(**said(world, f"e{n}"))])
                acknowledged[f"e{n}"] = done.seq
                if n % 10 == 0:
                    collection.put([NewItem(f"new {n}", {})], world.items[:1])
            except UnreachableError as error:
                refused.append(error)
                time.sleep(0.05)

    thread = threading.Thread(target=work)

    def wait_for_more(answers, n):
        n += len(answers)
        while len(answers) < n:
            assert thread.is_alive(), "The thread that works ended by another error."
            time.sleep(0.005)

    thread.start()
    try:
        for trial in range(2):
            wait_for_more(acknowledged, 20 + 30 * trial)
            server.stop()
            # Searches need no log.
            assert collection.search(Question(k=3), world.items[0].tolist())["results"]
            wait_for_more(refused, 1)
            server.start()
        wait_for_more(acknowledged, 20)
    finally:
        ends.set()
        thread.join()
    log = {r.body["event"]: r.seq for r in collection.events(0, 1000) if r.kind == "feedback"}
    assert refused and acknowledged.items() <= log.items()
    last = collection.stores.events.last()
    assert collection.learning.wait(last, 60)
    before = model(collection, tmp_path / "m")
    collection.close()
    again = Collection(folder, url=server.url)
    assert model(again, tmp_path / "m") == before
    again.close()


def test_a_start_that_only_the_items_know(server, tmp_path, monkeypatch):
    """The log could not be committed after the items had moved: the start is added to it."""
    folder = tmp_path / "t"
    folder.mkdir()
    collection = Collection(folder, Settings(encoder="text"), url=server.url)
    collection.put([NewItem(f"i{i}", {"text": f"red {i % 7} blue {i % 3}x"}) for i in range(30)])
    collection.search(Question(), text="red")
    collection.put([NewItem("late", {"text": "a word of its own"})])
    events = collection.stores.events
    commit, n_failed = events._writer.commit, []

    class Broken:
        def __getattr__(self, name):
            return getattr(real, name)

        def commit(self):
            if not n_failed:
                n_failed.append(1)
                real.rollback()
                raise events._psycopg.OperationalError("gone")
            commit()

    real, events._writer = events._writer, Broken()
    n_starts = len(events.all_of("start"))
    with pytest.raises(UnreachableError, match="gone"):
        collection.start(again=True)
    assert len(events.all_of("start")) == n_starts
    collection.put([NewItem("more", {"text": "another word"})])
    assert len(events.all_of("start")) == n_starts + 1
    assert collection.learning.wait(events.last(), 60)
    found = collection.search(Question(k=1), text="word of its own")["results"]
    assert found[0]["id"] == "late"
    collection.close()
    again = Collection(folder, url=server.url)
    found = again.search(Question(k=1), text="word of its own")["results"]
    assert found[0]["id"] == "late"
    again.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="process numbers are found in /proc")
def test_readers_follow_a_log_in_postgres(server, tmp_path):
    world = World()
    serving = Program(tmp_path / "data", "--events", server.url)
    try:
        with serving.client() as client:
            client.make(personal=5)
            client.put([f"i{i}" for i in range(400)], world.items)
            client.start()
            events = [said(world, f"e{i}", "ann") for i in range(20)]
            query, seq = events[-1]["query"], client.feedback(events)["seq"]
            wait_for(lambda: len(serving.readers()) == 2)

            def answered(user=None):
                found = client.search(query, which="live", min_seq=seq, user=user)
                return [(one["id"], one["score"]) for one in found["results"]]

            before = answered("ann")
            assert before != answered()
            wait_for(lambda: answered() and counted(client) >= 5)
            assert answered("ann") == before
            server.stop()
            # Answered with what was learned by then.
            assert len(client.search(query, k=3)["results"]) == 3
            server.start()
            seq = client.feedback({**said(world, "again", "ann"), "query": query})["seq"]
            n = counted(client)
            wait_for(lambda: answered("ann") != before and counted(client) > n + 5)
    finally:
        serving.end()
    assert serving.process.returncode == 0
