"""Reader processes beside the one that writes: the same answers, and kills that lose nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")

from samewise import Client
from samewise.serve import ServiceError
from tests.adapt.conftest import World
from tests.serve.conftest import said

pytestmark = pytest.mark.skipif(os.name != "posix", reason="reader processes need POSIX")


class Program:
    """`samewise serve --workers 2` in processes of its own."""

    def __init__(self, folder, *more):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        code = "from samewise.cli import main; main()"
        options = ["serve", str(folder), "--port", str(self.port), "--workers", "2", *more]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *options], stdout=subprocess.DEVNULL
        )

    def client(self, **more):
        return Client(f"http://127.0.0.1:{self.port}", "c", retries=12, **more)

    def readers(self):
        """The process numbers of the readers."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                except OSError:
                    continue
                if int(parent) == self.process.pid:
                    found.append(int(folder.name))
        return sorted(found)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)


@pytest.fixture
def program(tmp_path):
    started = []

    def start(*more):
        started.append(Program(tmp_path / "data", *more))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.end(signal.SIGKILL)


def wait_for(what):
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Where the first process of a container takes no notice, what has ended stays listed.
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


def counted(client):
    """How many searches the readers have answered, as the writer has heard."""
    text = client._http.get(f"{client.url}/metrics").text
    lines = [line for line in text.splitlines() if 'search",status="200"' in line]
    return sum(int(line.split()[-1]) for line in lines)


def ranking(client, query, seq, which="live"):
    found = client.search(query, k=20, which=which, min_seq=seq)
    return found["seq"], [(r["id"], r["score"]) for r in found["results"]]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="process numbers are found in /proc")
def test_two_readers_while_learning_and_killed(program):
    world = World()
    serving = program()
    with serving.client() as client, serving.client() as teacher:
        client.make()
        client.put([f"i{i}" for i in range(400)], world.items)
        client.start()
        acknowledged, failed, ends = [], [], threading.Event()

        def teach():
            while not ends.is_set():
                event = said(world, f"e{len(acknowledged)}")
                acknowledged.append((event, teacher.feedback(event)["events"][0]))

        def ask():
            with serving.client() as mine:
                while not ends.is_set():
                    _, seq = acknowledged[-1] if acknowledged else ({}, 0)
                    found = mine.search(world.items[1], which="live", min_seq=seq)
                    if found["seq"] < seq or len(found["results"]) != 10:
                        failed.append(found)

        threads = [*(threading.Thread(target=each, daemon=True) for each in (teach, ask, ask, ask))]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(acknowledged) >= 30 and counted(client) >= 30)
        # New items are found by all, in the order of their numbers.
        for i in range(400, 420):
            query = world.items[i - 400]
            seq = client.put([f"i{i}"], [query * 1.5])
            assert f"i{i}" == ranking(client, query, seq, "start")[1][0][0]
        killed = serving.readers()[0]
        os.kill(killed, signal.SIGKILL)
        n = len(acknowledged)
        wait_for(lambda: len(acknowledged) >= n + 30)
        ends.set()
        for thread in threads:
            thread.join()
        assert not failed
        wait_for(lambda: len(serving.readers()) == 2 and killed not in serving.readers())
        client.delete(["i1"])
        seq = client.describe()["committed"]
        answers = []
        for _ in range(12):
            # Each connection may reach another reader.
            with serving.client() as other:
                answers.append(ranking(other, world.items[1], seq))
        assert all(answer == answers[0] for answer in answers)
        assert "i1" not in dict(answers[0][1])
        # Feedback by way of a reader knows impressions of another one.
        found = [client.search(world.items[2]) for _ in range(4)]
        for shown in found:
            with serving.client() as other:
                liked = [shown["results"][0]["id"]]
                event = {"type": "click", "impression": shown["impression"], "clicked": liked}
                assert other.feedback(event)["new"] == 1
    readers = serving.readers()
    serving.end()
    assert serving.process.returncode == 0
    wait_for(lambda: all(gone(pid) for pid in readers))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="process numbers are found in /proc")
def test_a_killed_writer_takes_the_readers_down_and_loses_nothing(program):
    world = World()
    serving = program("--token", "admin:a-secret-of-the-tests")
    with serving.client(token="a-secret-of-the-tests") as client:
        client.make(encoder="given", guard=None)
        client.put([f"i{i}" for i in range(400)], world.items)
        client.start()
        seq = client.feedback([said(world, f"e{i}") for i in range(40)])["seq"]
        before = ranking(client, world.items[5], seq)
        readers = serving.readers()
        serving.end(signal.SIGKILL)
    wait_for(lambda: all(gone(pid) for pid in readers))
    again = program("--token", "admin:a-secret-of-the-tests")
    with again.client(token="a-secret-of-the-tests") as client:
        assert ranking(client, world.items[5], seq) == before
        assert ranking(client, world.items[5], seq, "start")[1] != before[1]
    with again.client(token="another-secret-of-nobody") as client, pytest.raises(ServiceError) as e:
        client.search(np.zeros(len(world.items[0])))
    assert e.value.status == 401
    again.end()


def test_streams_and_large_bodies_pass_through_readers(program):
    serving = program()
    with serving.client() as client:
        client.make(encoder="text")
        texts = [f"the {color} {thing}" for color in ("red", "blue") for thing in "fox sea".split()]
        client.put([f"i{i}" for i in range(4)], payloads=[{"text": text} for text in texts])
        found = client.search("a red fox", k=1)
        assert found["results"][0]["payload"] == {"text": "the red fox"}
        client.feedback({"type": "click", "impression": found["impression"], "clicked": ["i0"]})
        stream = client.events(follow=True)
        assert [next(stream)["kind"] for _ in range(3)] == ["put", "start", "feedback"]
        stream.close()
        adapter = client.adapter()
        assert client.put_adapter(adapter) > 0
        assert client.search("a red fox", k=1)["results"][0]["id"] == "i0"
        with pytest.raises(ServiceError, match="fit"):
            client.search("a red fox", nothing=1)
        answer = client._http.get(f"{client.url}/healthz")
        assert answer.json() == {"status": "ok"}
        assert len(answer.headers.get_list("date")) == 1
    serving.end()
