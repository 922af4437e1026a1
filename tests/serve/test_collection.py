"""A collection without HTTP: replay to the bit, forgetting, versions, files, compaction."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest

import samewise
from samewise import LiveAdapter
from samewise.adapt import Judged
from samewise.adapt.event_memory import EventMemory
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.kernels.compile_clock import CLOCK
from samewise.serve.checking import check_folder
from samewise.serve.collection import Collection, NotReadyError
from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.feedback_resolving import NotFoundError, Said
from samewise.serve.group_commit import BusyError
from samewise.serve.learning import Learning
from samewise.serve.searching import Question
from samewise.serve.service import Service
from tests.serve.conftest import fill, said


def teach(collection, world, n, begin=0, user=None):
    events = [Said(**said(world, f"e{begin + i}", user)) for i in range(n)]
    acknowledged = collection.feedback(events)
    assert collection.learning.wait(acknowledged[-1].seq, 60)
    return acknowledged


def model(collection, path):
    collection.export_adapter(path)
    return path.read_bytes()


def test_the_first_update_compiles_nothing_after_warm_up(make_collection, world):
    samewise.warm_up()
    before = CLOCK.seconds
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 2)
    collection.search(Question(k=5), world.items[0].tolist())
    assert CLOCK.seconds == before


def test_a_start_again_is_the_same_to_the_bit(make_collection, world, tmp_path):
    first = make_collection(snapshot_every=15)
    fill(first, world)
    teach(first, world, 40)
    first.decide("promote")
    teach(first, world, 7, begin=40)
    wanted = model(first, tmp_path / "m")
    found = first.search(Question(k=5), world.items[0].tolist())
    seq = first.learning.seq
    first.close()
    assert len(first.stores.models.snapshots()) == 3
    for path in first.stores.models.snapshots().values():
        # With fewer and fewer snapshots, and at last from the start alone.
        second = make_collection()
        assert model(second, tmp_path / "m") == wanted
        assert second.learning.seq == seq
        again = second.search(Question(k=5), world.items[0].tolist())
        assert again["results"] == found["results"]
        second.close()
        path.unlink()
    last = make_collection()
    assert model(last, tmp_path / "m") == wanted


def test_an_adapter_that_hears_the_same_lists_is_the_same_to_the_bit(
    make_collection, world, make_world, tmp_path
):
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 60)
    other = make_world()
    adapter = LiveAdapter(items=other.items, log=False, random_state=0).fit(other.items)
    for _ in range(60):
        q, shown, y = other.judged()
        adapter.feedback(Judged(other.items[q], shown.tolist(), y))
    adapter.save(tmp_path / "alone")
    assert model(collection, tmp_path / "served") == (tmp_path / "alone").read_bytes()


@pytest.fixture
def make_world():
    from tests.adapt.conftest import World

    return World


def test_damaged_snapshots_are_passed_over(make_collection, world, tmp_path):
    first = make_collection(snapshot_every=10)
    fill(first, world)
    teach(first, world, 25)
    wanted = model(first, tmp_path / "m")
    first.close()
    newest = next(iter(first.stores.models.snapshots().values()))
    newest.write_bytes(newest.read_bytes()[:-5])
    assert model(make_collection(), tmp_path / "m") == wanted


def test_a_snapshot_of_records_that_are_lost_is_removed(make_collection, world, tmp_path):
    first = make_collection()
    fill(first, world)
    teach(first, world, 5)
    wanted = model(first, tmp_path / "m")
    first.close()
    path = next(iter(first.stores.models.snapshots().values()))
    ahead = path.with_name("model-0000000000009999.samewise")
    shutil.copy(path, ahead)
    assert model(make_collection(), tmp_path / "m") == wanted
    assert not ahead.exists()


def test_a_start_that_was_changed_is_refused(make_collection, world):
    first = make_collection()
    fill(first, world)
    first.start()
    first.close()
    (start,) = first.stores.models.folder.glob("start-*")
    start.write_bytes(start.read_bytes() + b"x")
    with pytest.raises(FileFormatError, match="is not the file that was written"):
        make_collection()


def test_forgetting_is_as_if_it_had_never_been_said(make_collection, world, tmp_path):
    collection = make_collection(snapshot_every=8)
    fill(collection, world)
    events = [said(world, f"e{i}", f"user {i % 3}") for i in range(30)]
    collection.feedback([Said(**event) for event in events])
    assert collection.forget("user 1")[0] == 10
    forgot = model(collection, tmp_path / "forgot")
    # Snapshots that knew the user are gone.
    assert min(collection.stores.models.snapshots()) >= 32
    # Sent again, the events are known and not learned from.
    assert not any(a.new for a in collection.feedback([Said(**event) for event in events]))
    assert model(collection, tmp_path / "forgot") == forgot
    assert collection.forget("nobody")[0] == 0
    collection.close()
    assert model(make_collection(), tmp_path / "again") == forgot
    folder = tmp_path / "other"
    folder.mkdir()
    other = Collection(folder, Settings())
    fill(other, world)
    other.feedback([Said(**event) for event in events if event["user"] != "user 1"])
    other.learning.wait(other.stores.events.last(), 60)
    assert model(other, tmp_path / "never") == forgot
    other.close()


def test_promotion_by_the_guard_rollback_and_reset(make_collection, world):
    collection = make_collection()
    fill(collection, world)
    while not collection.learning.adapter.versions_ if collection.learning.adapter else True:
        teach(collection, world, 50, begin=collection.stores.events.last())
        assert collection.learning.adapter.n_events_ < 3000
    q = world.items[5].tolist()
    with collection.adapter() as adapter:
        why = adapter.guard_.history[0]["why"]
    assert why == "promote"
    served, start = (
        collection.search(Question(which=which), q)["results"] for which in ("served", "start")
    )
    assert served != start
    collection.decide("promote", 0)
    assert collection.search(Question(), q)["results"] == start
    with pytest.raises(InvalidInputError, match="nothing to roll back to"):
        collection.decide("rollback")
    with pytest.raises(InvalidInputError, match="version must be one of"):
        collection.decide("promote", 99)
    collection.decide("promote")
    assert collection.decide("rollback")[1] >= 0
    collection.decide("reset")
    assert collection.learning.adapter.n_events_ == 0


def test_the_first_place_is_the_choice_of_its_own_version(make_collection, world):
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 200)
    with collection.adapter() as adapter:
        course = adapter._course
        course.serve(("first",), course.freeze(), "by hand")
    n_pinned = 0
    for q in world.items[:40]:
        with collection.adapter() as adapter:
            wanted = adapter.rank(q, world.items, 10)
        found = [int(r["id"][1:]) for r in collection.search(Question(), q.tolist())["results"]]
        assert found == wanted.tolist()
        n_pinned += found[0] != int(np.argmax(world.items @ q))
    assert n_pinned


def test_exploring_shows_a_candidate_and_samples(make_collection, world):
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 100)
    found = collection.search(Question(k=10, explore=3), world.items[7].tolist())
    why = [result["why"] for result in found["results"]]
    assert why == ["served"] * 6 + ["live"] + ["explored"] * 3
    impression = collection.stores.impressions.find(found["impression"])
    assert impression.candidate == 6
    assert len(set(impression.ids)) == 10
    before = collection.learning.adapter._random.get_state()[1].tolist()
    collection.search(Question(k=10, explore=3), world.items[7].tolist())
    assert collection.learning.adapter._random.get_state()[1].tolist() == before


def test_deleted_and_replaced_items_are_not_found_but_feedback_about_them_replays(
    make_collection, world, tmp_path
):
    collection = make_collection()
    fill(collection, world)
    q = world.items[3].tolist()
    found = collection.search(Question(k=4), q)
    ids = [result["id"] for result in found["results"]]
    assert collection.delete([ids[0], "never there"])[0] == 1
    collection.put([NewItem(ids[1], {"new": True})], -world.items[[3]])
    left = [result["id"] for result in collection.search(Question(k=3), q)["results"]]
    assert left[:2] == ids[2:]
    shown = Said("judged", impression=found["impression"], liked=ids[:1], disliked=ids[1:2])
    (done,) = collection.feedback([shown])
    collection.learning.wait(done.seq, 60)
    wanted = model(collection, tmp_path / "m")
    with pytest.raises(NotFoundError, match="no item"):
        collection.feedback([Said("ranked", query=q, ranked=ids[:2])])
    collection.close()
    again = make_collection()
    assert model(again, tmp_path / "m") == wanted
    assert again.stores.items.get(ids[1]) == {"new": True}
    assert again.stores.items.get(ids[0]) is None


def test_all_kinds_of_feedback_are_learned_from(make_collection, world, tmp_path):
    collection = make_collection()
    fill(collection, world)
    found = collection.search(Question(k=6), world.items[3].tolist())
    a, b, c = (result["id"] for result in found["results"][:3])
    shown = {"impression": found["impression"]}
    before = model(collection, tmp_path / "m")
    for one in (
        Said("click", clicked=[b], **shown),
        Said("thumb", item=a, up=False, **shown),
        Said("thumb", item="i77", up=True, **shown),
        Said("judged", liked=[a], disliked=[c], **shown),
        Said("same", item=a, **shown),
        Said("different", item=b, against=[c], **shown),
        Said("ranked", ranked=[c, b, a], **shown),
        Said("judged", query=world.items[3].tolist(), liked=[a], disliked=[b], candidate=b),
        Said("click", query=world.items[3].tolist(), shown=[a, b], clicked=[b]),
    ):
        (done,) = collection.feedback([one])
        collection.learning.wait(done.seq, 60)
        after = model(collection, tmp_path / "m")
        assert after != before, one.type
        before = after
    collection.close()
    assert model(make_collection(), tmp_path / "m") == before


WRONG = {
    "no list": ({"type": "click", "clicked": ["i1"]}, "one of 'impression', 'query' and 'text'"),
    "two lists": (
        {"type": "thumb", "item": "i1", "up": True, "query": [0.0] * 12, "impression": "x"},
        "one of 'impression'",
    ),
    "unknown impression": (
        {"type": "click", "clicked": [], "impression": "x"},
        "no impression 'x'",
    ),
    "unknown item": (
        {"type": "thumb", "item": "y", "up": True, "query": [0.1] * 12},
        "no item 'y'",
    ),
    "a field of another kind": (
        {"type": "thumb", "item": "i1", "up": True, "query": [0.1] * 12, "liked": ["i2"]},
        "has no 'liked'",
    ),
    "a thumb without up": ({"type": "thumb", "item": "i1", "query": [0.1] * 12}, "needs 'up'"),
    "same without item": ({"type": "same", "query": [0.1] * 12}, "needs an 'item'"),
    "another width": (
        {"type": "ranked", "ranked": ["i1", "i2"], "query": [0.1] * 3},
        "have the 12 features",
    ),
    "liked and disliked": (
        {"type": "judged", "liked": ["i1"], "disliked": ["i1"], "query": [0.1] * 12},
        "either liked or disliked",
    ),
    "an item twice": (
        {"type": "ranked", "ranked": ["i1", "i1"], "query": [0.1] * 12},
        "'i1' is there twice",
    ),
    "an item against itself": (
        {"type": "same", "item": "i1", "against": ["i2", "i1"], "query": [0.1] * 12},
        "'i1' cannot be set against itself",
    ),
    "set against an item twice": (
        {"type": "same", "item": "i1", "against": ["i2", "i2"], "query": [0.1] * 12},
        "'i2' is there twice",
    ),
    "clicks outside": (
        {"type": "click", "clicked": ["i3"], "shown": ["i1", "i2"], "query": [0.1] * 12},
        "'i3' is not in the list",
    ),
    "clicks in nothing": ({"type": "click", "clicked": [], "query": [0.1] * 12}, "Clicks need"),
    "too large": (
        {"type": "ranked", "ranked": ["i1", "i2"], "query": [1e30] * 12},
        "at most",
    ),
    "a text": ({"type": "ranked", "ranked": ["i1"], "text": "x"}, "vectors, not texts"),
    "shown twice": (
        {"type": "click", "clicked": [], "impression": "x", "shown": ["i1"]},
        "leave out 'shown'",
    ),
}


def test_what_is_refused_changes_nothing(make_collection, world, tmp_path):
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 3)
    before, last = model(collection, tmp_path / "m"), collection.stores.events.last()
    good = Said(**said(world, "good"))
    for name, (wrong, message) in WRONG.items():
        with pytest.raises(InvalidInputError, match=message) as refused:
            collection.feedback([good, Said(**wrong)])
        assert str(refused.value).startswith("Event 1: "), name
    assert collection.stores.events.last() == last
    assert model(collection, tmp_path / "m") == before
    for items, vectors, message in (
        ([NewItem("a", {})], np.ones((1, 5)), "have the 12 features"),
        ([NewItem("a", {})], None, "need vectors"),
        ([NewItem("a", {})] * 2, np.ones((2, 12)), "once in a batch"),
        ([NewItem("a", {})], np.full((1, 12), np.nan), "must be finite"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            collection.put(items, vectors)
    assert collection.stores.events.last() == last
    assert collection.facts()["items"] == 400


def test_a_collection_with_too_few_items_cannot_be_searched(make_collection):
    collection = make_collection()
    for _ in range(2):
        with pytest.raises(NotReadyError, match="at least two items"):
            collection.search(Question(), [1.0])
        if not collection.stores.events.last():
            collection.put([NewItem("a", {})], [[1.0]])


def test_reading_what_one_wrote(make_collection, world):
    collection = make_collection()
    fill(collection, world)
    q = world.items[9].tolist()
    (done,) = collection.feedback([Said(**said(world, "e"))])
    assert collection.search(Question(min_seq=done.seq), q)["seq"] >= done.seq
    with pytest.raises(BusyError, match="not learned from yet"):
        collection.search(Question(min_seq=10**6, patience=0.05), q)
    seq = collection.put([NewItem("new", {})], [q])
    found = collection.search(Question(k=2, min_seq=seq), q)
    assert "new" in [result["id"] for result in found["results"]]


TEXTS = {
    f"{kind}{i}": f"{words} {'alpha beta gamma delta'.split()[i % 4]} number{i}"
    for kind, words in {"fox": "red fox forest", "sea": "blue sea waves"}.items()
    for i in range(20)
}


def test_texts_are_searched_without_a_model(make_collection, tmp_path):
    collection = make_collection(Settings(encoder="text"))
    collection.put([NewItem(id, {"text": text}) for id, text in TEXTS.items()])
    found = collection.search(Question(k=5), text="waves of the sea")
    assert all(result["id"].startswith("sea") for result in found["results"])
    collection.put([NewItem("late", {"text": "the fox is red in the forest"})])
    later = collection.search(Question(k=30), text="red fox")["results"]
    assert "late" in [result["id"] for result in later]
    collection.feedback([Said("thumb", impression=found["impression"], item="sea3", up=True)])
    collection.learning.wait(collection.stores.events.last(), 60)
    wanted = model(collection, tmp_path / "m")
    for wrong, message in ((NewItem("x", {}), "needs a text in the field 'text'"),):
        with pytest.raises(InvalidInputError, match=message):
            collection.put([wrong])
    with pytest.raises(InvalidInputError, match="made of texts"):
        collection.put([NewItem("x", {"text": "a"})], [[1.0] * 256])
    collection.close()
    again = make_collection()
    assert model(again, tmp_path / "m") == wanted
    assert again.search(Question(k=30), text="red fox")["results"] == later
    # A new start: the word that only the late item has is known now.
    assert not again.query_vector(None, "the is").any()
    again.start(again=True)
    assert again.query_vector(None, "the is").any()
    assert again.learning.adapter.n_events_ == 0
    assert again.search(Question(k=1), text="the is")["results"][0]["id"] == "late"
    assert again.compact()["records"] > 0
    again.close()
    last = make_collection()
    assert last.search(Question(k=1), text="the is")["results"][0]["id"] == "late"


def test_a_function_makes_vectors(make_collection):
    def encode(texts):
        return [[len(text), text.count("a"), 1.0] for text in texts]

    collection = make_collection(Settings(encoder="callable"), encode=encode)
    words = [NewItem(f"w{i}", {"text": "a" * i + "b" * (i % 7)}) for i in range(1, 30)]
    collection.put(words)
    assert collection.search(Question(k=1), text="aaaa")["results"][0]["id"] == "w27"
    collection.close()
    with pytest.raises(InvalidInputError, match="start the service with --encoder"):
        make_collection().search(Question(), text="a")


def test_an_adapter_goes_out_and_in(make_collection, world, tmp_path):
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 20)
    before = model(collection, tmp_path / "m")
    collection.decide("reset")
    assert model(collection, tmp_path / "n") != before
    collection.import_adapter(samewise.load(tmp_path / "m"))
    assert model(collection, tmp_path / "n") == before
    with pytest.raises(InvalidInputError, match="A LiveAdapter was expected"):
        collection.import_adapter(samewise.Bilinear(np.eye(12)))
    narrow = LiveAdapter(random_state=0).fit(world.items[:, :5])
    with pytest.raises(InvalidInputError, match="vectors of 5 numbers"):
        collection.import_adapter(narrow)
    collection.close()
    assert model(make_collection(), tmp_path / "n") == before


def test_an_exported_log_teaches_another_collection_the_same(make_collection, world, tmp_path):
    collection = make_collection()
    fill(collection, world)
    teach(collection, world, 20)
    found = collection.search(Question(k=6), world.items[3].tolist())
    ids = [result["id"] for result in found["results"]]
    for more in (
        {"type": "click", "clicked": ids[2:3]},
        {"type": "ranked", "ranked": ids[:3]},
        {"type": "thumb", "item": ids[1], "up": True},
    ):
        collection.feedback([Said(impression=found["impression"], user="u", **more)])
    collection.learning.wait(collection.stores.events.last(), 60)
    log = list(collection.exported_log())
    assert len(log) == 23
    folder = tmp_path / "other"
    folder.mkdir()
    other = Collection(folder, Settings())
    fill(other, world)
    other.feedback([Said(**event) for event in log])
    other.learning.wait(other.stores.events.last(), 60)
    assert model(other, tmp_path / "a") == model(collection, tmp_path / "b")
    other.close()


def test_compaction_removes_segments_that_nobody_needs(tmp_path, world):
    from samewise.serve.collection_stores import CollectionStores

    folder = tmp_path / "c"
    folder.mkdir()
    # Segments of 100 rows.
    CollectionStores(folder, Settings(), segment_bytes=100 * 12 * 4).close()
    collection = Collection(folder)
    fill(collection, world)
    q = world.items[250].tolist()
    teach(collection, world, 1)
    collection.delete([f"i{i}" for i in range(200)])
    needed = {row // 100 for row in collection.stores.events.read(2)[0].body["rows"]} | {2, 3}
    before = collection.search(Question(k=5), q)["results"]
    assert collection.compact()["segments"] == 4 - len(needed)
    assert collection.search(Question(k=5), q)["results"] == before
    wanted = model(collection, tmp_path / "m")
    # Started again, the feedback is not needed any more.
    collection.start(again=True)
    assert collection.compact()["segments"] == len(needed) - 2
    collection.put([NewItem("new", {})], [q])
    collection.close()
    again = Collection(folder)
    found = again.search(Question(k=2), q)["results"]
    assert {result["id"] for result in found} == {"i250", "new"}
    assert model(again, tmp_path / "n") != wanted
    again.close()
    assert len(list((folder / "vectors").iterdir())) == 3


# A folder


def test_a_folder_is_used_by_one_service(tmp_path, world):
    service = Service(tmp_path / "data")
    assert service.make("c", Settings())
    assert not service.make("c", Settings())
    with pytest.raises(InvalidInputError, match="exists with other settings"):
        service.make("c", Settings(encoder="text"))
    with pytest.raises(InvalidInputError, match="used by another service"):
        Service(tmp_path / "data")
    with pytest.raises(InvalidInputError, match="used by a running service"):
        check_folder(tmp_path / "data")
    service.close()
    again = Service(tmp_path / "data")
    assert list(again.collections) == ["c"]
    again.close()


@pytest.mark.parametrize("name", ["", "A", "a/b", "../a", "a" * 64, "-a", "a b", "a\n"])
def test_names_of_collections_are_plain(tmp_path, name):
    service = Service(tmp_path / "data")
    with pytest.raises(InvalidInputError, match="The name of a collection"):
        service.make(name, Settings())
    service.close()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["lock"]


def test_a_check_finds_what_is_wrong(tmp_path, world):
    service = Service(tmp_path / "data", snapshot_every=10)
    service.make("c", Settings())
    collection = service.get("c")
    fill(collection, world)
    teach(collection, world, 25)
    service.close()
    counts, problems = check_folder(tmp_path / "data")
    assert not problems
    assert counts == {"c": {"records": 27, "items": 400, "blocks": 1, "snapshots": 3}}
    folder = tmp_path / "data" / "c"
    for path, change, message in (
        (folder / "vectors" / "vectors-000000.f32", 1000, "row 0 on are damaged"),
        (sorted((folder / "models").glob("model-*"))[-1], -3, "checksum"),
        (next((folder / "models").glob("start-*")), -3, "not the file that was written"),
    ):
        good = path.read_bytes()
        bad = bytearray(good)
        bad[change] ^= 8
        path.write_bytes(bad)
        _, problems = check_folder(tmp_path / "data")
        assert len(problems) == 1 and message in problems[0], problems
        path.write_bytes(good)
    # A model that the log does not lead to.
    other, newest = sorted((folder / "models").glob("model-*"))[-2:]
    newest.write_bytes(other.read_bytes())
    _, problems = check_folder(tmp_path / "data")
    assert problems == ["c: the log does not lead to the model of record 27."]
    (folder / "collection.sqlite").write_bytes(b"x" * 5000)
    _, problems = check_folder(tmp_path / "data")
    assert "is not a database of samewise" in problems[0]
    with pytest.raises(InvalidInputError, match="not a folder"):
        check_folder(tmp_path / "nothing")


def test_nobody_waits_for_a_snapshot(make_collection, world, monkeypatch):
    """While what is remembered is copied, queries are mapped."""
    collection = make_collection(snapshot_every=5)
    fill(collection, world)
    teach(collection, world, 4)
    copied, mapped = threading.Event(), threading.Event()
    copy = EventMemory.state

    def slow(memory):
        copied.set()
        assert mapped.wait(20)
        return copy(memory)

    monkeypatch.setattr(EventMemory, "state", slow)
    seq = collection.feedback([Said(**said(world, "last"))])[0].seq
    assert copied.wait(20)
    collection.search(Question(which="live"), world.items[0])
    mapped.set()
    assert collection.learning.wait(seq, 20)
    collection.learning.close()
    assert collection.learning.failed is None
    assert max(collection.stores.models.snapshots()) == seq


def test_nothing_is_learned_before_it_is_announced(make_collection, world):
    """Whoever finds a number learned finds the items up to it, which are taken before."""
    collection = make_collection()
    fill(collection, world)
    collection.start()
    stores = collection.stores
    follower = Learning(stores.events, stores.models, stores.vectors, writes=False)
    first, second = (a.seq for a in collection.feedback([Said(**said(world, e)) for e in "ab"]))
    follower.committed(first)
    assert follower.wait(first, 60) and not follower.wait(second, 0.5)
    follower.committed(second)
    assert follower.wait(second, 60)
    follower.close()


def test_what_is_compiled_before_the_first_request_is_all_that_is_needed(make_collection, world):
    from samewise.kernels.adapter_event import embed_rows, hear_list
    from samewise.serve.warming import compile_loops

    compile_loops()
    known = len(embed_rows.signatures), len(hear_list.signatures)
    collection = make_collection()
    fill(collection, world)
    collection.start()
    for i in range(3):
        event = Said(**said(world, f"e{i}"))
        seq = collection.feedback([event])[0].seq
        collection.search(Question(which="live", min_seq=seq), world.items[0])
    assert (len(embed_rows.signatures), len(hear_list.signatures)) == known
    assert min(known) >= 1
