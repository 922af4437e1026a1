"""A warm start from pairs, against linear adapters that PyTorch trains on the same pairs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _live_torch
from experiments._common import in_processes, markdown, write_csv
from experiments._live_simulation import Corpus, measures, served_measures
from experiments.banking77 import held_out
from samewise import LiveAdapter
from samewise._typing import Array, Indices

NAMES = ("P@1", "P@10", "mAP")
SIZES = (1000, 10_003)
RATES = (2e-5, 1e-4, 1e-3)
EPOCHS = (1, 4)
"""What is tried for LlamaIndex's adapter on held-out training questions; its own values first."""

TEXT = """# Warm start

banking77: pairs of a training question and another one of the same intent, 3 seeds; test questions
against stored training questions, P@1 / P@10 / mAP in percent, means. Seconds are those of the
processor while learning, on one thread, in the same run, without what PyTorch needs to be imported;
for `warm_start` all of it, for the triplet loss without the search for its negatives. "live" is
what `warm_start` learned; "served" is what its tests let through, with the first place by the start
where first places were not shown to be better. "Chosen" has the learning rate and epochs, of {n}
settings, with the best mAP among held-out training questions. Made by `python -m experiments live
--only warm`.
"""


def pairs_of(labels: Indices, n: int, seed: int) -> tuple[Indices, Indices]:
    """Rows of n queries, and for each another row of its class."""
    random = np.random.RandomState(seed)
    queries = random.permutation(len(labels))[:n]
    classes = {label: np.flatnonzero(labels == label) for label in np.unique(labels)}
    relevant = np.empty(len(queries), dtype=np.int64)
    for k, row in enumerate(queries):
        same = classes[labels[row]]
        relevant[k] = random.choice(same[same != row])
    return queries, relevant


def warm(corpus: Corpus, n: int, seed: int) -> list[dict[str, Any]]:
    """What warm_start gains from n pairs: live, and served."""
    queries, relevant = pairs_of(corpus.item_labels, n, seed)
    adapter = LiveAdapter(items=corpus.items, random_state=seed).fit(corpus.items)
    start = time.process_time()
    adapter.warm_start(corpus.items[queries], relevant)
    seconds = time.process_time() - start
    live = measures(adapter.live.embed_query(corpus.tests), None, corpus)
    found = {"warm_start, live": live, "warm_start, served": served_measures(adapter, corpus)}
    return [_row(name, n, seed, values, seconds) for name, values in found.items()]


def torch_rows(
    corpus: Corpus, n: int, seed: int, chosen: tuple[float, int]
) -> list[dict[str, Any]]:
    """What the adapters of PyTorch gain from the same pairs."""
    queries, relevant = pairs_of(corpus.item_labels, n, seed)
    Q, P = corpus.items[queries], corpus.items[relevant]
    rate, epochs = chosen
    learned = {
        "MNR loss, as it is": _live_torch.mnr_adapter(Q, P, seed),
        f"MNR loss, chosen ({rate:g}, {epochs} epochs)": _live_torch.mnr_adapter(
            Q, P, seed, epochs=epochs, rate=rate
        ),
        "triplet loss, as it is": _live_torch.triplet_adapter(Q, relevant, corpus.items, seed),
        "triplet loss, random negatives": _live_torch.triplet_adapter(
            Q, relevant, corpus.items, seed, negatives="random"
        ),
    }
    return [
        _row(name, n, seed, measures(mapped(corpus.tests), None, corpus), seconds)
        for name, (mapped, seconds) in learned.items()
    ]


def choose(corpus: Corpus) -> list[dict[str, Any]]:
    """Learning rates and epochs of the MNR loss, on a fifth of the training questions."""
    (A, a), (B, b) = held_out((corpus.items, corpus.item_labels), 0)
    part = Corpus(A, a, B, b)
    queries, relevant = pairs_of(a, len(a), 0)
    rows = []
    for rate in RATES:
        for epochs in EPOCHS:
            given = {"epochs": epochs, "rate": rate}
            mapped = _live_torch.mnr_adapter(A[queries], A[relevant], 0, **given)[0]
            values = map(float, measures(mapped(B), None, part))
            rows.append({"rate": rate, "epochs": epochs, **dict(zip(NAMES, values, strict=True))})
    return rows


def _row(name: str, n: int, seed: int, values: Array, seconds: float) -> dict[str, Any]:
    numbers = dict(zip(NAMES, map(float, values), strict=True))
    return {"adapter": name, "pairs": n, "seed": seed, **numbers, "seconds": float(seconds)}


def run(out: Path, corpus: Corpus, *, quick: bool, seeds: int) -> None:
    """All of it, one after the other: times are compared."""
    sizes = (200,) if quick else SIZES
    tasks = [(corpus, min(n, len(corpus.items)), seed) for n in sizes for seed in range(seeds)]
    # What is compiled at the first call is not learning.
    warm(corpus, 100, 0)
    rows = [row for found in in_processes(warm, tasks, 1) for row in found]
    reason = _live_torch.reason_to_skip()
    text = [TEXT.format(n=len(RATES) * len(EPOCHS))]
    if not reason:
        choice = choose(corpus)
        write_csv(out / "warm_choice.csv", choice)
        best = max(choice, key=lambda row: row["mAP"])
        chosen = [(*task, (best["rate"], best["epochs"])) for task in tasks]
        rows += [row for found in in_processes(torch_rows, chosen, 1) for row in found]
    write_csv(out / "warm.csv", rows)
    text += [markdown(_means(rows, measures(corpus.tests, None, corpus)), 2), reason]
    (out / "warm.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


def _means(rows: list[dict[str, Any]], start: Array) -> list[dict[str, Any]]:
    values = dict(zip(NAMES, map(float, start), strict=True))
    table = [{"adapter": "start", "pairs": 0, **values, "seconds": None}]
    for n, name in dict.fromkeys((row["pairs"], row["adapter"]) for row in rows):
        mine = [row for row in rows if (row["pairs"], row["adapter"]) == (n, name)]
        means = {k: float(np.mean([row[k] for row in mine])) for k in (*NAMES, "seconds")}
        table.append({"adapter": name, "pairs": n, **means})
    return sorted(table, key=lambda row: row["pairs"])
