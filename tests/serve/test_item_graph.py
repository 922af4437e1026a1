"""The graph over many items: what it finds and passes over, and that nobody waits for it."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("usearch")
pytest.importorskip("fastapi")

from samewise.serve import item_graph
from samewise.serve.checking import check_folder
from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.searching import Question
from samewise.serve.service import Service

WIDTH = 12


def drawn(n, seed):
    """Items in groups; another seed gives others of the same groups."""
    centers = np.random.RandomState(0).randn(40, WIDTH)
    random = np.random.RandomState(seed)
    rows = centers[random.randint(40, size=n)] + 0.5 * random.randn(n, WIDTH)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def put(collection, rows, first=0):
    items = [NewItem(f"i{first + i}", {"n": first + i}) for i in range(len(rows))]
    collection.put(items, rows)


def wait_for(what):
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def names(collection, query, k=10, **more):
    found = collection.search(Question(k=k, **more), query)
    return [result["id"] for result in found["results"]]


@pytest.fixture
def indexed(make_collection):
    """A collection of 3000 items with a graph, and the vectors by name."""
    collection = make_collection(Settings(index_from=1000))
    rows = drawn(3000, 1)
    put(collection, rows)
    wait_for(lambda: collection.graphs.graph is not None)
    return collection, {f"i{i}": row for i, row in enumerate(rows)}


def exact(vectors, query, k=10, wanted=lambda n: True):
    left = [name for name in vectors if wanted(int(name[1:]))]
    scores = np.array([vectors[name] for name in left]) @ query
    return [left[i] for i in np.argsort(-scores, kind="stable")[:k]]


def test_queries_that_are_no_items_find_what_exact_search_finds(indexed):
    collection, vectors = indexed
    hits = [len(set(names(collection, q)) & set(exact(vectors, q))) for q in drawn(100, 2)]
    assert np.mean(hits) >= 9.9
    assert collection.facts()["indexed"] == 3000


def test_deleted_replaced_and_new_items(indexed):
    collection, vectors = indexed
    query = drawn(1, 3)[0]
    best = exact(vectors, query, 5)
    collection.delete(best[:2])
    # Replaced by its opposite, and a new item that is the query itself.
    collection.put([NewItem(best[2], {}), NewItem("i9999", {})], np.stack([-query, query]))
    found = names(collection, query)
    for name in best[:2]:
        del vectors[name]
    vectors |= {best[2]: -query, "i9999": query}
    assert found == exact(vectors, query)
    assert found[0] == "i9999" and collection.graphs.graph.n_rows == 3000


@pytest.mark.parametrize("one_of", [3, 700])
def test_filters_find_as_many_as_exact_search(indexed, one_of):
    collection, vectors = indexed
    query = drawn(1, 4)[0]
    right = list(range(0, 3000, one_of))
    found = names(collection, query, k=4, filters={"n": {"in": right}})
    assert found == exact(vectors, query, 4, lambda n: n % one_of == 0)


def test_more_than_the_graph_has_is_searched_exactly(indexed):
    collection, vectors = indexed
    query = drawn(1, 5)[0]
    collection.delete([f"i{n}" for n in range(2950)])
    left = {name: vectors[name] for name in vectors if int(name[1:]) >= 2950}
    assert names(collection, query, k=60) == exact(left, query, 60)


def test_a_graph_is_kept_extended_and_built_anew(indexed, make_collection):
    collection, _ = indexed
    (path,) = (collection.stores.folder / "graph").iterdir()
    collection.close()
    again = make_collection()
    wait_for(lambda: again.graphs.graph is not None)
    assert [path] == list((collection.stores.folder / "graph").iterdir())
    put(again, drawn(1200, 6), 3000)
    wait_for(lambda: again.graphs.graph.n_rows == 4200)
    assert len(again.graphs.graph) == 4200
    again.delete([f"i{n}" for n in range(2500)])
    put(again, drawn(1200, 7), 5000)
    wait_for(lambda: again.graphs.graph.n_rows == 5400)
    # Less than half of the old one was alive.
    assert len(again.graphs.graph) == 2900
    assert not path.exists()


def test_a_damaged_file_is_built_again(indexed, make_collection):
    collection, vectors = indexed
    collection.close()
    (path,) = (collection.stores.folder / "graph").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(bytes(content))
    (path.parent / "000000000007.new").write_bytes(b"half")
    again = make_collection()
    wait_for(lambda: again.graphs.graph is not None)
    query = drawn(1, 8)[0]
    assert names(again, query) == exact(vectors, query)
    assert [each.suffix for each in path.parent.iterdir()] == [".usearch"]


def test_the_check_verifies_graphs(tmp_path):
    service = Service(tmp_path / "data")
    service.make("c", Settings(index_from=1000))
    put(service.get("c"), drawn(1500, 1))
    wait_for(lambda: service.get("c").graphs.graph is not None)
    service.close()
    counts, problems = check_folder(tmp_path / "data")
    assert (counts["c"]["graphs"], problems) == (1, [])
    (path,) = (tmp_path / "data" / "c" / "graph").glob("*.usearch")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    _, (problem,) = check_folder(tmp_path / "data")
    assert problem == f"c: {path} is damaged; delete it, and the service builds it again."
    path.write_bytes(content)
    more = path.rename(path.with_name(path.name.replace("1500", "1501")))
    _, (problem,) = check_folder(tmp_path / "data")
    assert problem == f"c: {more} is of 1501 rows, and there are 1500; delete it."


def test_a_graph_that_finds_too_little_is_not_used(make_collection, monkeypatch, caplog):
    monkeypatch.setattr(item_graph, "RECALL", 1.01)
    collection = make_collection(Settings(index_from=1000))
    rows = drawn(1500, 1)
    put(collection, rows)
    wait_for(lambda: "search is exact" in caplog.text)
    assert collection.graphs.graph is None and collection.facts()["indexed"] == 0
    query = drawn(1, 2)[0]
    vectors = {f"i{i}": row for i, row in enumerate(rows)}
    assert names(collection, query) == exact(vectors, query)


def test_few_items_or_none_wanted_have_no_graph(make_collection):
    collection = make_collection(Settings(index_from=None))
    put(collection, drawn(1200, 1))
    assert not collection.graphs._thread.is_alive()
    assert len(names(collection, drawn(1, 2)[0])) == 10


def test_searches_go_on_while_a_graph_is_built(make_collection, monkeypatch):
    building, goes_on = [], []

    class Slow(item_graph._usearch()):
        def add(self, *args, **more):
            building.append(1)
            while not goes_on:
                time.sleep(0.01)
            return super().add(*args, **more)

    monkeypatch.setattr(item_graph, "_usearch", lambda: Slow)
    collection = make_collection(Settings(index_from=1000))
    rows = drawn(1500, 1)
    put(collection, rows)
    wait_for(lambda: building)
    query = drawn(1, 2)[0]
    vectors = {f"i{i}": row for i, row in enumerate(rows)}
    assert names(collection, query) == exact(vectors, query)
    goes_on.append(1)
    wait_for(lambda: collection.graphs.graph is not None)
