"""Learners that are saved while they are killed, while the disk fills up, and while others read."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from samewise import PassiveAggressive, load
from samewise.supervision import Pairs
from torture.killing import Counts, Kind, ended, forked, killed, seconds_of

N_PORTIONS = 30
N_FEATURES = 60


def portions(seed: int) -> list[Pairs]:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(600, N_FEATURES)), rng.integers(0, 3, 600)
    return [Pairs.from_labels(X, y, 100, random_state=k) for k in range(N_PORTIONS)]


def versions(folder: Path, seed: int) -> list[tuple[PassiveAggressive, bytes]]:
    """Learners after one portion and more, and the bytes of their files."""
    learner, found = PassiveAggressive(), []
    for pairs in portions(seed):
        learner.partial_fit(pairs)
        learner.save(folder / "version")
        found.append((load(folder / "version"), (folder / "version").read_bytes()))
    (folder / "version").unlink()
    return found


def acknowledged(work: Callable[[int], None], seconds: float) -> tuple[bool, int]:
    """Kill some work that writes a byte for each step; whether it was amid it, and its steps."""
    reading, writing = os.pipe()
    hit = killed(lambda: work(writing), seconds)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        return hit, len(end.read())


def over_a_file(folder: Path, n_kills: int, seed: int) -> Counts:
    """`save` over an older file: afterwards it is the old one or the new one."""
    rng, made = np.random.default_rng(seed), versions(folder, seed)
    path = folder / "model"

    def work(writing: int) -> None:
        for learner, _ in made:
            learner.save(path)
            os.write(writing, b".")

    seconds = seconds_of(lambda: work(os.open(os.devnull, os.O_WRONLY)))
    counts = Counts(trials=n_kills)
    for _ in range(n_kills):
        made[0][0].save(path)
        hit, n = acknowledged(work, rng.uniform(0, seconds))
        load(path)
        possible = [content for _, content in made[max(n - 1, 0) : n + 1]]
        counts.amid_work += hit
        counts.acknowledged += n
        counts.lost += path.read_bytes() in [content for _, content in made[: max(n - 1, 0)]]
        counts.differing += path.read_bytes() not in possible
    made[0][0].save(path)
    # What kills left behind is swept by the next save.
    counts.differing += len(list(folder.iterdir())) != 1
    return counts


def with_checkpoints(folder: Path, n_kills: int, seed: int) -> Counts:
    """`partial_fit`, save, acknowledge, and again: nothing acknowledged is lost."""
    rng, given = np.random.default_rng(seed), portions(seed)
    n_pairs = len(given[0])

    def work(path: Path, writing: int) -> None:
        learner = load(path) if path.exists() else PassiveAggressive()
        done = learner.n_seen_ // n_pairs if path.exists() else 0
        for pairs in given[done:]:
            learner.partial_fit(pairs)
            learner.save(path)
            os.write(writing, b".")

    nowhere = os.open(os.devnull, os.O_WRONLY)
    seconds = seconds_of(lambda: work(folder / "whole", nowhere))
    wanted, counts, number = (folder / "whole").read_bytes(), Counts(), 0
    while counts.trials < n_kills:
        path, hit, done = folder / f"model{number}", True, 0
        number += 1
        while hit and counts.trials < n_kills:
            hit, n = acknowledged(lambda w, p=path: work(p, w), rng.uniform(0, seconds / 2))
            counts.trials += 1
            counts.amid_work += hit
            counts.acknowledged += n
            kept = load(path).n_seen_ // n_pairs if path.exists() else 0
            counts.lost += max(done + n - kept, 0)
            done = kept
        seconds_of(lambda p=path: work(p, nowhere))
        counts.differing += path.read_bytes() != wanted
    return counts


def on_a_full_disk(folder: Path, n_trials: int, seed: int) -> Counts:
    """A file may not become as large as it must: an error, the old file, and nothing beside it."""
    rng, made = np.random.default_rng(seed), versions(folder, seed)
    path = folder / "model"
    made[0][0].save(path)
    counts = Counts(trials=n_trials)

    def work(limit: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            made[1][0].save(path)
        except OSError as error:
            os._exit(10 if error.strerror else 11)

    for _ in range(n_trials):
        code = ended(forked(lambda: work(int(rng.integers(0, len(made[1][1]))))))
        counts.amid_work += code == 10
        counts.lost += path.read_bytes() != made[0][1]
        counts.differing += code != 10 or len(list(folder.iterdir())) != 1
    return counts


def read_and_written_at_once(folder: Path, n_kills: int, seed: int) -> Counts:
    """Two write a file and are killed, two read it: readers find one version or another, whole."""
    rng, made = np.random.default_rng(seed), versions(folder, seed)
    path, known = folder / "model", {content for _, content in made}
    made[0][0].save(path)

    def write() -> None:
        # Not for ever, should nobody be left to kill it.
        for _ in range(1000):
            for learner, _ in made:
                learner.save(path)

    def read(writing: int, end: float) -> None:
        while time.monotonic() < end:
            with path.open("rb") as file:
                whole = file.read() in known
            load(path)
            os.write(writing, b"." if whole else b"x")

    counts = Counts(trials=n_kills)
    seconds = rng.uniform(0.005, 0.06, n_kills)
    reading, writing = os.pipe()
    end = time.monotonic() + seconds.sum() + 0.1
    readers = [forked(lambda: read(writing, end)) for _ in range(2)]
    other = forked(write)
    for each in seconds:
        counts.amid_work += killed(write, each)
    os.kill(other, signal.SIGKILL)
    ended(other)
    os.close(writing)
    with os.fdopen(reading, "rb") as results:
        said = results.read()
    counts.acknowledged = len(said)
    counts.differing = said.count(b"x") + sum(ended(reader) != 0 for reader in readers)
    made[0][0].save(path)
    counts.differing += len(list(folder.iterdir())) != 1
    return counts


KINDS = (
    Kind("save over a file", 25, over_a_file),
    Kind("partial_fit with checkpoints", 20, with_checkpoints),
    Kind("save on a full disk", 5, on_a_full_disk),
    Kind("readers and writers", 15, read_and_written_at_once),
)
