"""The log, the segments and the writer: what is acknowledged is there, what was torn is cut."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.serve.database import Database
from samewise.serve.event_store import SQLiteEvents
from samewise.serve.group_commit import BusyError, GroupCommit
from samewise.serve.item_search import ItemSnapshot, ProductBatches
from samewise.serve.payload_filters import accepts
from samewise.serve.text_encoder import TextEncoder
from samewise.serve.turns import Turns
from samewise.serve.vector_segments import VectorSegments


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "d.sqlite")
    yield database
    database.close()


def test_a_database_that_many_open_at_once_is_made_once(tmp_path):
    """Processes that read look for collections while one is being made."""
    path, ready = tmp_path / "new.sqlite", threading.Barrier(8)

    def opened(_):
        ready.wait()
        return Database(path)

    with ThreadPoolExecutor(8) as threads:
        databases = list(threads.map(opened, range(8)))
    assert [database.problems() for database in databases] == [[]] * 8
    for database in databases:
        database.close()


def test_records_are_numbered_and_an_id_counts_once(database):
    events = SQLiteEvents(database)
    with database.transaction():
        assert events.append("feedback", {"a": 1}, np.ones(3, np.float32), "u", "e1") == (1, True)
        assert events.append("feedback", {"a": 2}, None, "v", "e2") == (2, True)
        assert events.append("feedback", {"a": 3}, None, "u", "e1") == (1, False)
    first, second = events.read(0)
    assert (first.seq, first.body, first.user) == (1, {"a": 1}, "u")
    np.testing.assert_array_equal(first.query, np.ones(3))
    assert (second.seq, second.query) == (2, None)
    assert [r.seq for r in events.read(0, 1)] == [1]
    assert [r.seq for r in events.read(1)] == [2]


def test_what_was_taken_back_leaves_no_gap(database):
    events = SQLiteEvents(database)
    with pytest.raises(RuntimeError), database.transaction():
        events.append("put", {})
        raise RuntimeError
    events.restart()
    with database.transaction():
        assert events.append("put", {})[0] == 1
    assert events.last() == 1


def test_a_forgotten_user_leaves_no_bytes(database, tmp_path):
    events = SQLiteEvents(database)
    with database.transaction():
        for i in range(50):
            user = "Maximiliane" if i % 2 else "other"
            events.append("feedback", {"i": i}, None, user, f"e{i}")
    with database.transaction():
        assert events.forget("Maximiliane") == (2, 25)
        assert events.forget("nobody") == (0, 0)
    database.checkpoint()
    assert [r.user for r in events.read(0)] == ["other"] * 25
    for path in tmp_path.iterdir():
        assert b"Maximiliane" not in path.read_bytes(), path.name
    with database.transaction():
        # Its id stays known: the event is not learned from again.
        assert events.append("feedback", {}, None, None, "e1") == (2, False)


def test_a_foreign_or_newer_database_is_refused(tmp_path):
    (tmp_path / "foreign").write_bytes(b"no database at all" * 100)
    with pytest.raises(FileFormatError, match="not a database of samewise"):
        Database(tmp_path / "foreign")
    connection = sqlite3.connect(tmp_path / "newer")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(FileFormatError, match="upgrade samewise"):
        Database(tmp_path / "newer")


# Segments


@pytest.fixture
def open_segments(tmp_path):
    """Segments of the folder, which are closed in the end."""
    opened = []

    def make(*more, **options):
        opened.append(VectorSegments(tmp_path, *more, **options))
        return opened[-1]

    yield make
    for segments in opened:
        segments.close()


def committed(segments, rows):
    blocks = segments.append(rows)
    segments.sync()
    segments.committed()
    return blocks


def test_rows_come_back_from_several_segments(tmp_path, open_segments):
    rows = np.random.RandomState(0).randn(25, 4).astype(np.float32)
    segments = open_segments(4, segment_bytes=10 * 16)
    blocks = committed(segments, rows[:7]) + committed(segments, rows[7:])
    assert [(b.first, b.count) for b in blocks] == [(0, 7), (7, 3), (10, 10), (20, 5)]
    np.testing.assert_array_equal(segments.maps().rows([24, 0, 9, 10]), rows[[24, 0, 9, 10]])
    segments.close()
    again = open_segments(4, blocks, segment_bytes=10 * 16)
    np.testing.assert_array_equal(again.maps().rows(range(25)), rows)
    assert again.damaged(blocks) == []
    with pytest.raises(InvalidInputError, match="no vector 25"):
        again.maps().rows([25])


@pytest.mark.parametrize("torn", [1, 15, 16, 500])
def test_a_torn_tail_is_cut(tmp_path, torn, open_segments):
    rows = np.ones((5, 4), dtype=np.float32)
    segments = open_segments(4)
    blocks = committed(segments, rows)
    segments.close()
    with segments.path(0).open("ab") as file:
        file.write(b"x" * torn)
    (tmp_path / "vectors-000001.f32").write_bytes(b"never committed")
    again = open_segments(4, blocks)
    assert segments.path(0).stat().st_size == 5 * 16
    assert not (tmp_path / "vectors-000001.f32").exists()
    assert again.damaged(blocks) == []


def test_damage_is_found_and_loss_refused(tmp_path, open_segments):
    segments = open_segments(4)
    blocks = committed(segments, np.ones((5, 4), dtype=np.float32))
    blocks += committed(segments, np.ones((3, 4), dtype=np.float32))
    segments.close()
    data = bytearray(segments.path(0).read_bytes())
    data[6 * 16 + 3] ^= 1
    segments.path(0).write_bytes(data)
    assert open_segments(4, blocks).damaged(blocks) == [5]
    segments.path(0).write_bytes(data[:100])
    with pytest.raises(FileFormatError, match="shorter than what was committed"):
        open_segments(4, blocks)


def test_rows_that_were_taken_back_are_written_over(tmp_path, open_segments):
    segments = open_segments(4, segment_bytes=4 * 16)
    blocks = committed(segments, np.ones((3, 4), dtype=np.float32))
    segments.append(np.full((20, 4), 7, dtype=np.float32))
    segments.take_back(3)
    blocks += committed(segments, np.full((2, 4), 2, dtype=np.float32))
    maps = segments.maps()
    assert maps.n_rows == 5
    np.testing.assert_array_equal(maps.rows(range(5))[:, 0], [1, 1, 1, 2, 2])
    segments.close()
    again = open_segments(4, blocks, segment_bytes=4 * 16)
    np.testing.assert_array_equal(again.maps().rows(range(5))[:, 0], [1, 1, 1, 2, 2])


# The writer


def test_jobs_that_wait_are_committed_together_and_fail_alone(database):
    events = SQLiteEvents(database)
    transactions, gate = [], threading.Event()
    commits = GroupCommit(database.transaction, database.part, lambda: transactions.append(1))
    first = commits.submit(gate.wait)

    def bad():
        events.append("put", {"bad": True})
        events.position -= 1
        raise InvalidInputError("No.")

    jobs = [commits.submit(lambda: events.append("put", {})[0]) for _ in range(20)]
    wrong = commits.submit(bad)
    last = commits.submit(lambda: events.append("put", {})[0])
    gate.set()
    assert first.result(10)
    assert [job.result(10) for job in jobs] == list(range(1, 21))
    with pytest.raises(InvalidInputError, match="No"):
        wrong.result(10)
    assert last.result(10) == 21
    assert len(transactions) <= 2
    assert all("bad" not in record.body for record in events.read(0))
    commits.close()
    with pytest.raises(BusyError, match="being closed"):
        commits.submit(gate.wait)


def test_who_does_not_wait_any_more_keeps_nobody_from_writing(database):
    events, gate = SQLiteEvents(database), threading.Event()
    commits = GroupCommit(database.transaction, database.part, lambda: None)
    first = commits.submit(gate.wait)
    job = commits.submit(lambda: events.append("put", {})[0])
    # As asyncio does where a request is abandoned.
    assert not job.cancel()
    gate.set()
    assert first.result(10) and job.result(10) == 1
    assert commits.do(lambda: events.append("put", {})[0]) == 2
    commits.close()


def test_a_commit_that_fails_is_acknowledged_to_nobody(database):
    from contextlib import contextmanager

    @contextmanager
    def full():
        with database.transaction():
            yield
            raise OSError("disk full")

    commits = GroupCommit(full, database.part, lambda: None)
    events = SQLiteEvents(database)
    with pytest.raises(OSError, match="disk full"):
        commits.do(lambda: events.append("put", {}))
    assert events.last() == 0
    commits.close()


def test_a_reader_gets_its_turn_while_somebody_learns_without_a_pause():
    turns, ends, n_learned = Turns(), threading.Event(), [0]

    def learn():
        while not ends.is_set():
            with turns.learning():
                n_learned[0] += 1
                sum(range(2000))

    thread = threading.Thread(target=learn)
    thread.start()
    waited = []
    for _ in range(50):
        before = n_learned[0]
        with turns.reading():
            waited.append(n_learned[0] - before)
    ends.set()
    thread.join()
    # One lesson that was under way; and what was learned before this thread asked for its turn.
    assert np.median(waited) <= 2


# Search


def reference(maps, alive, q, k):
    scores = [(-float(v.astype(np.float64) @ q), r) for r, v in enumerate(maps) if alive[r]]
    return [row for _, row in sorted(scores)[:k]]


def test_search_is_exact_across_segments_and_deletions(tmp_path, open_segments):
    random = np.random.RandomState(0)
    rows = random.randn(300, 8).astype(np.float32)
    segments = open_segments(8, segment_bytes=64 * 32)
    committed(segments, rows)
    alive = random.rand(300) < 0.8
    snapshot = ItemSnapshot(segments.maps(), alive, int(alive.sum()))
    batches = ProductBatches()
    for k in (1, 10, 500):
        q = random.randn(8).astype(np.float32)
        found, scores = batches.best(snapshot, q, k)
        assert batches.together(snapshot, q[None], k)[0].tolist() == found.tolist()
        assert found.tolist() == reference(rows, alive, q.astype(np.float64), k)
        assert (np.diff(scores) <= 0).all()
        odd, _ = batches.best(snapshot, q, k, lambda r: r % 7 == 1)
        wanted = alive & (np.arange(300) % 7 == 1)
        assert odd.tolist() == reference(rows, wanted, q.astype(np.float64), k)


def test_answers_of_one_product_are_not_overwritten_by_the_next(open_segments):
    random = np.random.RandomState(1)
    rows = random.randn(200, 8).astype(np.float32)
    segments = open_segments(8)
    committed(segments, rows)
    snapshot = ItemSnapshot(segments.maps(), np.ones(200, dtype=bool), 200)
    batches, first = ProductBatches(), rows[0]
    scores = batches.scores(snapshot, first)
    kept = scores.copy()
    # A filter that looks at the items while others search.
    asked = []

    def accepted(numbers):
        asked.append(len(numbers))
        batches.best(snapshot, random.randn(8).astype(np.float32), 10)
        return numbers % 50 == 7

    found, _ = batches.best(snapshot, first, 4, accepted)
    assert len(asked) > 1
    wanted = np.arange(200) % 50 == 7
    assert found.tolist() == reference(rows, wanted, first.astype(np.float64), 4)
    np.testing.assert_array_equal(scores, kept)


def test_queries_that_wait_share_a_product(tmp_path, open_segments):
    rows = np.random.RandomState(0).randn(50, 8).astype(np.float32)
    segments = open_segments(8)
    committed(segments, rows)
    goes_on = threading.Event()

    class Slow(ItemSnapshot):
        def scores(self, queries, begin=0, out=None):
            assert goes_on.wait(30)
            return super().scores(queries, begin, out)

    snapshot = Slow(segments.maps(), np.ones(50, dtype=bool), 50)
    batches = ProductBatches()
    found = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: batches.scores(snapshot, rows[i])}))
        for i in range(20)
    ]
    threads[0].start()
    while not batches.n_products:
        pass
    for thread in threads[1:]:
        thread.start()
    while len(batches._waiting) < 19:
        pass
    goes_on.set()
    for thread in threads:
        thread.join()
    assert batches.n_products == 2
    for i in range(20):
        np.testing.assert_allclose(found[i], rows @ rows[i], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("filters", "payload", "right"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {}, False),
        ({"a": {"in": [1, "x"]}}, {"a": "x"}, True),
        ({"a": {"in": []}}, {"a": "x"}, False),
        ({"a": {"gte": 1, "lt": 2}}, {"a": 1}, True),
        ({"a": {"gte": 1, "lt": 2}}, {"a": 2}, False),
        ({"a": {"gt": 1}}, {"a": 1}, False),
        ({"a": {"lte": 1}}, {"a": 1}, True),
        ({"a": {"gt": "b"}}, {"a": "c"}, True),
        ({"a": {"gt": "b"}}, {"a": 3}, False),
        ({"a": {"gt": 0}}, {"a": True}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False),
    ],
)
def test_filters(filters, payload, right):
    assert accepts(filters)(payload) is right


@pytest.mark.parametrize("wrong", [{}, {"in": 3}, {"in": [1], "gt": 2}, {"like": "x"}])
def test_a_wrong_filter_is_refused(wrong):
    with pytest.raises(InvalidInputError, match=r"The filter on 'a' must be"):
        accepts({"a": wrong})


def test_the_text_encoder_finds_what_shares_words_and_is_saved(tmp_path):
    from samewise.files import container
    from samewise.files.storable import made

    texts = ["red fox runs", "blue sea waves", "red fox sleeps", "sea and waves", "green grass"]
    encoder = TextEncoder.fit(texts, width=8)
    V = encoder.encode(texts)
    assert V.shape == (5, 8) and V.dtype == np.float32
    S = V @ V.T
    assert S[0, 2] > S[0, 1] and S[1, 3] > S[1, 2]
    np.testing.assert_allclose(np.diag(S), 1, rtol=1e-5)
    assert not encoder.encode(["unheard"]).any()
    encoder.save(tmp_path / "e")
    again = made(container.read(tmp_path / "e"), TextEncoder)
    np.testing.assert_array_equal(again.encode(texts), V)
    with pytest.raises(InvalidInputError, match="no words of two letters"):
        TextEncoder.fit(["a b", "c"])
