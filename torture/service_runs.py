"""A collection of `samewise serve` that is killed while it commits, learns and writes snapshots.

Once with its log in its own database, and once with its log in PostgreSQL, where that is installed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from samewise.serve.collection import Collection
from samewise.serve.collection_stores import CollectionStores, NewItem, Settings
from samewise.serve.feedback_resolving import Said
from samewise.serve.replaying import replayed
from tests.serve.postgres import Server
from torture.killing import Counts, Kind, killed

N_ITEMS, N_FEATURES = 300, 16
TOGETHER = 25
"""Kills of one folder."""


def vectors(seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(N_ITEMS, N_FEATURES)).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def made(folder: Path, X: np.ndarray, url: str | None = None) -> None:
    """A collection that is started; the compiled code is loaded on the way."""
    folder.mkdir()
    collection = Collection(folder, Settings(), url=url)
    collection.put([NewItem(f"i{i}", {}) for i in range(N_ITEMS)], X)
    collection.start()
    collection.feedback([judged(X, np.random.default_rng(0), "first")])
    collection.close()


def judged(X: np.ndarray, rng: np.random.Generator, event: str) -> Said:
    rows = rng.choice(N_ITEMS, 11, replace=False)
    near = X[rows[1:]] @ X[rows[0]]
    names = [f"i{row}" for row in rows[1:]]
    liked = [name for name, s in zip(names, near, strict=True) if s > np.median(near)]
    disliked = [name for name in names if name not in liked]
    query = X[rows[0]].tolist()
    return Said("judged", event, query=query, shown=names, liked=liked, disliked=disliked)


def work(folder: Path, X: np.ndarray, seed: int, writing: int, url: str | None = None) -> None:
    """Events, items and promotions without end; each acknowledged event is written to a pipe."""
    rng = np.random.default_rng(seed)
    collection = Collection(folder, snapshot_every=20, url=url)
    n = 0
    while True:
        batch = [judged(X, rng, f"{seed}-{n + i}") for i in range(rng.integers(1, 6))]
        collection.feedback(batch)
        os.write(writing, "".join(f"{said.event}\n" for said in batch).encode())
        n += len(batch)
        if rng.random() < 0.1:
            collection.put([NewItem(f"new {seed} {n}", {})], X[:1])
        if rng.random() < 0.05:
            collection.decide("promote")


def acknowledged(reading: int) -> set[str]:
    """The events that a killed process wrote to the pipe."""
    with os.fdopen(reading, "rb") as end:
        # The last line may have been cut by the kill.
        told = [line.decode() for line in end.read().splitlines(keepends=True)]
    return {line.strip() for line in told if line.endswith("\n")}


def run(folder: Path, n_kills: int, seed: int, url: str | None = None) -> Counts:
    """Kill it again and again: what was acknowledged is there, and the model follows from it."""
    rng, X = np.random.default_rng(seed), vectors(seed)
    counts = Counts(trials=n_kills)
    for trial in range(n_kills):
        place = folder / f"collection-{trial // TOGETHER}"
        if trial % TOGETHER == 0:
            made(place, X, url)
            kept: set[str] = set()
        reading, writing = os.pipe()
        mine = 1000 * seed + trial
        seconds = rng.uniform(0.0, 0.6)
        counts.amid_work += killed(
            lambda p=place, m=mine, w=writing: work(p, X, m, w, url), seconds
        )
        os.close(writing)
        new = acknowledged(reading)
        counts.acknowledged += len(new)
        kept |= new
        stores = CollectionStores(place, url=url)
        try:
            counts.lost += sum(stores.events.find(event) is None for event in kept)
            counts.differing += not same_model(stores)
        finally:
            stores.close()
    return counts


def same_model(stores: CollectionStores) -> bool:
    """Whether the newest snapshot and what came since lead where the whole log does, to the bit."""
    if stores.segments is None or stores.segments.damaged(stores.items.blocks()):
        return False
    files = []
    with tempfile.TemporaryDirectory() as place:
        for snapshots in (True, False):
            last = stores.events.last()
            model = replayed(stores.events, stores.models, stores.vectors, last, snapshots)
            assert model.adapter is not None
            model.adapter.save(Path(place) / "model")
            files.append((Path(place) / "model").read_bytes())
    return files[0] == files[1]


def run_postgres(folder: Path, n_kills: int, seed: int) -> Counts:
    """The same, with the log in a PostgreSQL server of its own."""
    try:
        server = Server()
    except pytest.skip.Exception as reason:
        print(reason, file=sys.stderr)
        return Counts()
    try:
        return run(folder, n_kills, seed, server.url)
    finally:
        server.remove()


KINDS = [
    Kind("service, feedback and items", 35, run),
    Kind("service, log in PostgreSQL", 15, run_postgres),
]
