"""Items as Arrow tables: what is taken, and what would be too much or too clever."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

pytest.importorskip("fastapi")
pa = pytest.importorskip("pyarrow")

STREAM, FILE = ARROWS = (
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.arrow.file",
)
ITEMS = "/collections/c/items"


def sent(table, file=False, **options):
    sink = pa.BufferOutputStream()
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=7)
    return sink.getvalue().to_pybytes()


def table_of(vectors, **columns):
    return pa.table({"id": [f"i{i}" for i in range(len(vectors))], "vector": vectors, **columns})


@pytest.fixture
def put(serve):
    _, http = serve()
    http.put("/collections/c", json={})

    def put(body, kind=STREAM):
        return http.put(ITEMS, content=body, headers={"Content-Type": kind})

    put.http = http
    return put


@pytest.mark.parametrize("kind", ARROWS)
@pytest.mark.parametrize(
    "of", [pa.list_(pa.float32()), pa.list_(pa.float64(), 12), pa.large_list(pa.float16())], ids=str
)
def test_a_table_is_taken(put, world, kind, of):
    rows = world.items[:40].astype(np.float16)
    value = {"float": np.float32, "double": np.float64, "halffloat": np.float16}
    cells = [list(row.astype(value[str(of.value_type)])) for row in rows]
    table = table_of(
        pa.array(cells, of),
        year=pa.array(range(40), pa.int16()),
        price=[float("nan"), *np.arange(39) / 4],
        title=pa.array([None] + ["a/b\u202e"] * 39, pa.large_string()),
        new=[True, False] * 20,
        day=[datetime.date(2020, 1, 2)] * 40,
    )
    # A slice: the values do not begin at the beginning of the buffers.
    answer = put(sent(table.slice(3), file=kind == FILE), kind)
    assert answer.json() == {"count": 37, "seq": 1}
    assert put.http.get(f"{ITEMS}/i7").json()["payload"] == {
        "year": 7,
        "price": 1.5,
        "title": "a/b\u202e",
        "new": False,
        "day": "2020-01-02",
    }
    q = rows[20].astype(np.float32)
    found = put.http.post("/collections/c/search", json={"vector": q.tolist(), "k": 5}).json()
    wanted = 3 + np.argsort(-(rows[3:].astype(np.float32) @ q), kind="stable")[:5]
    assert [result["id"] for result in found["results"]] == [f"i{row}" for row in wanted]


def test_texts_come_without_vectors(serve):
    _, http = serve()
    http.put("/collections/t", json={"encoder": "text"})
    table = pa.table({"id": [1, 2, 3], "text": ["red fox", "blue sea", "red sun"]})
    answer = http.put("/collections/t/items", content=sent(table), headers={"Content-Type": STREAM})
    assert answer.json()["count"] == 3
    found = http.post("/collections/t/search", json={"text": "sea", "k": 1}).json()
    assert found["results"][0]["id"] == "2"


def lists(*rows, type=None):
    return pa.array(rows, type or pa.list_(pa.float32()))


WRONG = {
    "nothing": (b"", 422, "no Arrow table"),
    "noise": (b"x" * 100, 422, "no Arrow table"),
    "cut": (sent(table_of(lists([1.0] * 12, [2.0] * 12)))[:-30], 422, "no Arrow table"),
    "no id": (sent(pa.table({"vector": lists([1.0])})), 422, "one of them id"),
    "an id twice": (
        sent(pa.table([pa.array(["a"]), pa.array(["b"])], names=["id", "id"])),
        422,
        "different columns",
    ),
    "the same item twice": (
        sent(pa.table({"id": ["a", "a"], "vector": lists([1.0], [2.0])})),
        422,
        "once in a batch",
    ),
    "no name": (
        sent(pa.table({"id": pa.array([None], pa.string()), "vector": lists([1.0])})),
        422,
        "The column id must",
    ),
    "an empty name": (sent(pa.table({"id": [""], "vector": lists([1.0])})), 422, "at least 1"),
    "no rows": (sent(table_of(lists())), 413, "1 to 10000 items"),
    "too many rows": (
        sent(pa.table({"id": pa.array(np.arange(10_001))})),
        413,
        "1 to 10000 items",
    ),
    "other lengths": (sent(table_of(lists([1.0], [1.0, 2.0, 3.0]))), 422, "of one length"),
    "lengths that only add up": (
        sent(table_of(lists([1.0], [1.0, 2.0, 3.0], [1.0, 2.0]))),
        422,
        "of one length",
    ),
    "no vector": (sent(table_of(lists([1.0], None))), 422, "without nulls"),
    "no number": (sent(table_of(lists([1.0], [None]))), 422, "without nulls"),
    "no numbers": (sent(table_of(lists([], []))), 422, "of one length"),
    "too many numbers": (sent(table_of(lists([1.0] * 9000))), 413, "at most 8192"),
    "infinite": (sent(table_of(lists([float("inf")]))), 422, "must be finite"),
    "too large": (
        sent(table_of(lists([1e300], type=pa.list_(pa.float64())))),
        422,
        "must be finite",
    ),
    "texts for vectors": (sent(table_of(pa.array([["a"]]))), 422, "lists of floats"),
    "compressed": (sent(table_of(lists([1.0])), compression="zstd"), 422, "Compressed"),
    "a dictionary": (
        sent(table_of(lists([1.0]), tag=pa.array(["a"]).dictionary_encode())),
        422,
        "dictionaries are not taken",
    ),
    "a view": (
        sent(table_of(lists([1.0]), tag=pa.array(["a"], pa.string_view()))),
        422,
        "'tag' must have texts",
    ),
    "nested": (sent(table_of(lists([1.0]), tag=pa.array([{"a": 1}]))), 422, "payloads as JSON"),
    "a large payload": (sent(table_of(lists([1.0]), tag=["x" * 70_000])), 413, "more than 65536"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_whole(put, case):
    body, status, message = WRONG[case]
    answer = put(body)
    assert (answer.status_code, message in answer.text) == (status, True), answer.text
    assert put.http.get("/collections/c").json()["committed"] == 0


def test_damaged_tables_are_refused_or_are_tables(put):
    """Any byte changed: an answer, and never an error of the service."""
    good = sent(table_of(lists(*[[1.0, 2.0]] * 9), n=list(range(9))))
    random, counts = np.random.RandomState(0), {200: 0, 413: 0, 422: 0}
    for _ in range(300):
        bad = bytearray(good)
        for place in random.randint(len(bad), size=random.randint(1, 4)):
            bad[place] = random.randint(256)
        counts[put(bytes(bad)).status_code] += 1
    assert counts[200] and counts[422]
