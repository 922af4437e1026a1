"""A machine that loses power: what was not forced to the disk is cut, torn or noise.

A service is killed, and then its files are changed as a loss of power may leave them: the
write-ahead log is cut at any byte behind the last commit that was acknowledged, or goes on with
noise, or with frames that were torn; segments of vectors end anywhere behind the last block that
counts, or in noise; the newest snapshot is torn.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import numpy as np

from samewise.serve.collection_stores import CollectionStores
from samewise.serve.vector_segments import segment_lengths
from torture.killing import Counts, Kind, killed
from torture.service_runs import TOGETHER, acknowledged, made, same_model, vectors, work

HEADER, FRAME_HEADER = 32, 24


def commits(wal: bytes) -> list[int]:
    """Where the commits of a write-ahead log end; frames of an earlier round do not count."""
    if len(wal) < HEADER:
        return []
    page, salts = struct.unpack_from(">I", wal, 8)[0], wal[16:24]
    ends, at = [], HEADER
    while at + FRAME_HEADER + page <= len(wal) and wal[at + 8 : at + 16] == salts:
        (size,) = struct.unpack_from(">I", wal, at + 4)
        at += FRAME_HEADER + page
        if size:
            ends.append(at)
    return ends


def seen(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database:
        return {event for (event,) in database.execute("SELECT event FROM seen")}


def last_needed(folder: Path, kept: set[str]) -> int:
    """The end of the first commit with which all that was acknowledged is there."""
    wal = (folder / "collection.sqlite-wal").read_bytes()
    needed = len(wal)
    for end in reversed([HEADER, *commits(wal)]):
        copy = folder.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        shutil.copyfile(folder / "collection.sqlite", copy / "collection.sqlite")
        (copy / "collection.sqlite-wal").write_bytes(wal[:end])
        if not kept <= seen(copy):
            break
        needed = end
    return needed


def lose_power(folder: Path, kept: set[str], rng: np.random.Generator) -> bool:
    """Change the files as a loss of power may; whether bytes of the log were lost."""
    (folder / "collection.sqlite-shm").unlink(missing_ok=True)
    path = folder / "collection.sqlite-wal"
    changed = False
    if path.exists() and path.stat().st_size:
        wal = path.read_bytes()
        needed = last_needed(folder, kept)
        cut = int(rng.integers(needed, len(wal) + 1))
        # Frames that look right, but for a page that was torn.
        torn = bytearray(wal[HEADER:cut][-2 * 4120 :])
        if torn:
            torn[rng.integers(len(torn))] ^= 255
        noise = rng.bytes(int(rng.integers(1, 20_000)))
        path.write_bytes(wal[:cut] + [b"", noise, bytes(torn)][rng.integers(3)])
        changed = cut < len(wal)
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database:
        settings = dict(database.execute("SELECT name, value FROM settings").fetchall())
        blocks = database.execute("SELECT first, count FROM blocks").fetchall()
    width, size = int(settings["width"]), int(settings["segment_bytes"])
    for name, length in segment_lengths(blocks, width, size).items():
        data = (folder / "vectors" / name).read_bytes()
        end = int(rng.integers(length, len(data) + 1))
        noise = rng.bytes(int(rng.integers(0, 5000)))
        (folder / "vectors" / name).write_bytes(data[:end] + noise)
    snapshots = sorted((folder / "models").glob("model-*"))
    if snapshots and rng.random() < 0.5:
        os.truncate(snapshots[-1], int(rng.integers(snapshots[-1].stat().st_size)))
    return changed


def run(folder: Path, n_kills: int, seed: int) -> Counts:
    """Kill it, lose power, start it again: all that was acknowledged is there, to the bit."""
    rng, X = np.random.default_rng(seed), vectors(seed)
    counts = Counts(trials=n_kills)
    for trial in range(n_kills):
        place = folder / f"collection-{trial // TOGETHER}"
        if trial % TOGETHER == 0:
            made(place, X)
            kept: set[str] = set()
        reading, writing = os.pipe()
        mine = 10**6 + 1000 * seed + trial
        seconds = rng.uniform(0.2, 0.6)
        counts.amid_work += killed(lambda p=place, m=mine, w=writing: work(p, X, m, w), seconds)
        os.close(writing)
        new = acknowledged(reading)
        counts.acknowledged += len(new)
        kept |= new
        # Those whose log lost bytes that nobody had been told of.
        counts.repeated += lose_power(place, kept, rng)
        stores = CollectionStores(place)
        counts.lost += len(kept - seen(place))
        counts.differing += not same_model(stores)
        stores.close()
    return counts


KINDS = [Kind("service, loss of power", 18, run)]
