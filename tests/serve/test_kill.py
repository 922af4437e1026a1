"""A real process that is killed amid its work: what it acknowledged is there, to the bit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import samewise
from samewise import Client
from samewise.adapt import Judged
from samewise.serve import ServiceError
from samewise.serve.checking import check_folder
from tests.adapt.conftest import World
from tests.serve.conftest import said
from tests.serve.postgres import Server

ROOT = Path(__file__).parents[2]


class Process:
    """`samewise serve` in a process of its own."""

    def __init__(self, folder, *more):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        code = "from samewise.cli import main; main()"
        options = ["serve", str(folder), "--port", str(self.port), "--snapshot-every", "20", *more]
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *options], stdout=subprocess.DEVNULL
        )
        self.client = Client(f"http://127.0.0.1:{self.port}", "c", retries=0)
        self._wait()

    def _wait(self):
        for _ in range(600):
            assert self._process.poll() is None
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("it did not start")

    def end(self, how=signal.SIGKILL, teaching=None):
        self._process.send_signal(how)
        self._process.wait(60)
        if teaching is not None:
            # It sends until it gets no answer.
            teaching.join()
        self.client.close()


def teach(process, world, acknowledged, n, first):
    """Send events until the process is gone; what was acknowledged is noted."""
    for i in range(n):
        event = said(world, f"e{first + i}")
        try:
            done = process.client.feedback([event])
        except ServiceError:
            return
        acknowledged[f"e{first + i}"] = (done["events"][0], event)


@pytest.fixture
def postgres():
    server = Server()
    yield server.url
    server.remove()


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_kills_lose_nothing_that_was_acknowledged(tmp_path, where, request):
    world, random = World(), np.random.RandomState(0)
    folder = tmp_path / "data"
    url = request.getfixturevalue("postgres") if where == "postgres" else None
    more = () if url is None else ("--events", url)
    process = Process(folder, *more)
    process.client.make()
    process.client.put([f"i{i}" for i in range(400)], world.items)
    process.client.start()
    acknowledged = {}
    n_amid = 0
    for trial in range(4):
        n = len(acknowledged)
        teaching = threading.Thread(
            target=teach, args=(process, world, acknowledged, 400, 1000 * trial)
        )
        teaching.start()
        # At a random moment after the first acknowledgement.
        while len(acknowledged) == n:
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.4))
        n_amid += teaching.is_alive()
        process.end(teaching=teaching)
        process = Process(folder, *more)
        log = {r["event"]: r["seq"] for r in process.client.events() if r["kind"] == "feedback"}
        assert all(log.get(event) == seq for event, (seq, _) in acknowledged.items())
    assert n_amid
    last = process.client.describe()["committed"]
    process.client.search(world.items[0], min_seq=last)
    served = process.client.adapter()
    sent = process.client.log()
    process.end(signal.SIGTERM)
    # One adapter that hears the log without interruption.
    adapter = samewise.LiveAdapter(items=world.items, log=False, random_state=0).fit(world.items)
    for event in sent:
        rows = [int(id[1:]) for id in event["shown"]]
        y = [1 if id in event["liked"] else -1 for id in event["shown"]]
        adapter.feedback(Judged(np.array(event["query"], dtype=np.float32), rows, y))
    adapter.save(tmp_path / "alone")
    assert served == (tmp_path / "alone").read_bytes()
    counts, problems = check_folder(folder, url)
    assert not problems
    assert counts["c"]["records"] == last


def test_power_loss(tmp_path):
    """A disk that lost the end of the write-ahead log: a shorter history, but a whole one."""
    world = World()
    folder = tmp_path / "data"
    process = Process(folder)
    process.client.make()
    process.client.put([f"i{i}" for i in range(400)], world.items)
    process.client.start()
    for i in range(6):
        process.client.feedback([said(world, f"e{i}") for i in range(10 * i, 10 * i + 10)])
    process.client.put(["late"], world.items[:1])
    process.client.search(world.items[0], min_seq=process.client.describe()["committed"])
    lost = tmp_path / "lost"
    # The files as they are while it runs: nothing of the log has moved into the database since.
    shutil.copytree(folder, lost)
    process.end()
    wal = lost / "c" / "collection.sqlite-wal"
    (lost / "c" / "collection.sqlite-shm").unlink()
    size = wal.stat().st_size
    seen = set()
    for part in (1.0, 0.9, 0.7, 0.6, 0.5):
        os.truncate(wal, int(part * size) - (part < 1))
        copy = tmp_path / f"copy{part}"
        shutil.copytree(lost, copy)
        counts, problems = check_folder(copy)
        assert not problems, part
        seen.add(json.dumps(counts))
    # Each loss led to a history of its own, the vectors behind it cut off.
    assert len(seen) > 1
