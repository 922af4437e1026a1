"""`samewise adapt --out` is killed again and again; in the end it is one run."""

from __future__ import annotations

import json
import os
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np

from samewise import load
from samewise.cli.app import app
from torture.killing import Counts, Kind, killed, seconds_of

N_ITEMS, N_FEATURES, N_GROUPS = 500, 16, 8
MOST_EVENTS, EVERY = 3000, 100


def write_log(folder: Path, n: int, rng: np.random.Generator) -> None:
    """Items in groups, and lists in which those of the query's group are liked."""
    groups = rng.integers(N_GROUPS, size=N_ITEMS)
    items = rng.normal(size=(N_GROUPS, N_FEATURES))[groups]
    items += rng.normal(size=items.shape)
    np.save(folder / "items.npy", items / np.linalg.norm(items, axis=1, keepdims=True))
    with (folder / "events.jsonl").open("w") as file:
        for k in range(n):
            query, *shown = rng.choice(N_ITEMS, 9, replace=False).tolist()
            entry = {"event": k, "query": query, "shown": shown}
            file.write(json.dumps(entry | _answer(k, groups[shown] == groups[query])) + "\n")


def _answer(k: int, liked: np.ndarray) -> dict[str, object]:
    """Mostly judged lists; clicks, and lines that cannot be used, between them."""
    if k % 50 == 7:
        return {"y": [2]}
    if k % 10 == 3:
        return {"clicked": np.flatnonzero(liked).tolist()}
    return {"y": np.where(liked, 1, -1).tolist()}


def command(folder: Path, out: str) -> None:
    items = [f"--{option}={folder / 'items.npy'}" for option in ("items", "queries")]
    given = [str(folder / "events.jsonl"), *items, f"--out={folder / out}", f"--every={EVERY}"]
    app(["adapt", *given, "--json"])


def run(folder: Path, n_kills: int, seed: int) -> Counts:
    rng, counts = np.random.default_rng(seed), Counts()
    write_log(folder, min(MOST_EVENTS, 1000 * n_kills), rng)

    def work(out: str) -> None:
        """The command, with its output to a file of its own."""
        said = os.open(folder / f"{out}.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(said, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        command(folder, out)

    # Once in this process: what is compiled is then there in those that are forked from it.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        with suppress(SystemExit):
            command(folder, "first")
    whole_seconds = seconds_of(lambda: work("whole"))
    wanted, number = (folder / "whole").read_bytes(), 0
    said = json.loads((folder / "whole.json").read_text())
    while counts.trials < n_kills:
        out, hit, done = f"run{number}", True, 0
        number += 1
        while hit and counts.trials < n_kills:
            hit = killed(lambda name=out: work(name), rng.uniform(0, 1.2 * whole_seconds))
            counts.trials += 1
            counts.amid_work += hit
            checkpoint = folder / f"{out}.checkpoint"
            kept = load(checkpoint).n_lines if checkpoint.exists() else 0
            # Once there is an adapter, nothing need be kept.
            counts.lost += kept < done and not (folder / out).exists()
            counts.acknowledged += max(kept - done, 0)
            done = kept
        seconds_of(lambda name=out: work(name))
        found = json.loads((folder / f"{out}.json").read_text())
        same = found | {"adapter": said["adapter"]} == said
        counts.differing += not same or (folder / out).read_bytes() != wanted
        counts.differing += (folder / f"{out}.checkpoint").exists()
    return counts


KINDS = (Kind("replays of a log", 15, run),)
