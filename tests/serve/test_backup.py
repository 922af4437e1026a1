"""Copies of a service's folder: whole, also while it writes, and good to start from."""

from __future__ import annotations

import json
import threading

import pytest
from typer.testing import CliRunner

from samewise.cli.app import app
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.serve.backing_up import back_up
from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.feedback_resolving import Said
from samewise.serve.searching import Question
from samewise.serve.service import Service
from tests.serve.conftest import fill, said


@pytest.fixture
def service(tmp_path, world):
    service = Service(tmp_path / "data", snapshot_every=10)
    service.make("c", Settings())
    fill(service.get("c"), world)
    service.make("empty", Settings())
    yield service
    service.close()


def teach(collection, world, n, first=0):
    done = collection.feedback([Said(**said(world, f"e{first + i}")) for i in range(n)])
    assert collection.learning.wait(done[-1].seq, 60)


def model(collection, path):
    collection.export_adapter(path)
    return path.read_bytes()


def test_a_copy_answers_the_same(service, world, tmp_path):
    collection = service.get("c")
    teach(collection, world, 35)
    collection.decide("promote")
    q = world.items[3].tolist()
    wanted = collection.search(Question(), q)
    # Impressions are written by the next commit, for which a search does not wait.
    collection.stores.commits.do(lambda: None)
    counts = back_up(tmp_path / "data", tmp_path / "copies" / "first")
    assert counts["c"]["records"] == 38 and counts["c"]["snapshots"]
    before = model(collection, tmp_path / "m")
    # The service goes on.
    teach(collection, world, 5, first=35)
    service.close()
    stopped = back_up(tmp_path / "data", tmp_path / "copies" / "stopped")
    assert stopped["c"]["records"] == 43
    copy = Service(tmp_path / "copies" / "first")
    assert list(copy.collections) == ["c", "empty"]
    assert copy.get("c").search(Question(), q)["results"] == wanted["results"]
    assert model(copy.get("c"), tmp_path / "n") == before
    # The impression is known in the copy, and it goes on by itself.
    shown = [result["id"] for result in wanted["results"]]
    event = Said("judged", impression=wanted["impression"], liked=shown[:2], disliked=shown[2:])
    assert copy.get("c").feedback([event])[0].new
    copy.close()


def test_a_copy_while_much_is_written(service, world, tmp_path):
    """Whatever is committed before it begins is in it, whatever it has fits together."""
    collection = service.get("c")
    teach(collection, world, 1)
    ends, n_written = threading.Event(), [0]

    def write():
        while not ends.is_set():
            n = n_written[0]
            collection.feedback([Said(**said(world, f"w{n}-{i}")) for i in range(5)])
            collection.put([NewItem(f"new {n}", {"n": n})], world.items[n % 400][None])
            if n % 20 == 0:
                collection.compact()
            n_written[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for trial in range(3):
            committed = collection.stores.events.last()
            counts = back_up(tmp_path / "data", tmp_path / f"copy{trial}")
            assert counts["c"]["records"] >= committed
            # Nothing is missing: numbers follow each other, and each item that was put is there.
            copy = Service(tmp_path / f"copy{trial}")
            there = copy.get("c")
            log = [record.seq for record in there.events(0, 1000)]
            assert log == list(range(log[0], log[0] + len(log))) and log[0] <= 2
            put = sum(record.kind == "put" for record in there.events(2, 1000))
            assert there.facts()["items"] >= 400 + put
            copy.close()
    finally:
        ends.set()
        writer.join()
    assert n_written[0] > 3


def test_a_segment_that_goes_meanwhile(service, world, tmp_path, monkeypatch):
    """A compaction between the database and the vectors: it is copied again."""
    from samewise.serve import backing_up

    real, n_calls = backing_up._copy_vectors, [0]

    def vanish(source, to):
        n_calls[0] += 1
        if n_calls[0] == 1:
            raise FileNotFoundError("vectors-000000.f32")
        real(source, to)

    monkeypatch.setattr(backing_up, "_copy_vectors", vanish)
    assert back_up(tmp_path / "data", tmp_path / "copy")["c"]["items"] == 400
    monkeypatch.setattr(backing_up, "TRIALS", 1)
    n_calls[0] = 0
    with pytest.raises(FileNotFoundError):
        back_up(tmp_path / "data", tmp_path / "other")
    assert not (tmp_path / "other").exists() and not (tmp_path / ".other.partial").exists()


def test_what_is_damaged_is_not_passed_on(service, world, tmp_path):
    path = tmp_path / "data" / "c" / "vectors" / "vectors-000000.f32"
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    with pytest.raises(FileFormatError, match="The copy is not sound: c: the vectors from row 0"):
        back_up(tmp_path / "data", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert back_up(tmp_path / "data", tmp_path / "copy", check=False) == {}


def test_the_command(service, world, tmp_path):
    data, to = str(tmp_path / "data"), tmp_path / "copy"
    done = CliRunner().invoke(app, ["backup", data, str(to), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["collections"]["c"]["items"] == 400
    again = CliRunner().invoke(app, ["backup", data, str(to)])
    assert (again.exit_code, "is there already" in again.stderr) == (1, True)
    with pytest.raises(InvalidInputError, match="not a folder of samewise serve"):
        back_up(tmp_path / "nothing", tmp_path / "x")
