"""What the guard promotes, over hundreds of streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments._common import in_processes, markdown, write_csv
from experiments._live_simulation import DEPTH, EXPLORED, SHOWN, Corpus, Users, _ranked
from samewise import LiveAdapter
from samewise._typing import Array, Indices

KINDS = (
    (Users("random"), 200, 500),
    (Users("inverted"), 50, 1000),
    (Users("inverted", since=500), 50, 1500),
    (Users("random", since=500), 50, 1500),
    (Users("drift", since=500), 50, 1500),
    (Users(noise=0.1), 50, 1500),
    (Users(), 50, 1000),
)
"""Users, streams, and lists of a stream."""
JUDGES = 300
"""Lists with right answers, by which what is served is compared with the start at the end."""

TEXT = """# What the guard lets through

Streams of lists on banking77: the seven items that the start ranks best and three of ranks 8 to
100, for questions in random order; guard 0.05. "Promoted" is the number of streams that promoted
anything, "later" of those that did so after their users had changed; "level reached" those where a
wealth reached its level, whether the answers were credible or not. "Worse" is the number of streams
at whose end what is served has a lower AUC than the start, by the right answers to 300 lists of
their own; "AUC" is the mean difference where something else than the start is served. Users who
drift reverse a tenth of the intents. Made by `python -m experiments live --only guard`.
"""


def run(out: Path, corpus: Corpus, *, quick: bool, jobs: int) -> None:
    """guard.csv and guard.md."""
    kinds = [(u, 4, n // 5) for u, _, n in KINDS] if quick else KINDS
    rows = in_processes(streams, [(corpus, *kind) for kind in kinds], jobs)
    write_csv(out / "guard.csv", rows)
    (out / "guard.md").write_text(f"{TEXT}\n{markdown(rows, 3)}\n", encoding="utf-8")


def streams(corpus: Corpus, users: Users, n_streams: int, n: int) -> dict[str, Any]:
    """What so many streams of n lists lead to."""
    random = np.random.RandomState(0)
    queries = random.choice(len(corpus.items), min(2000, len(corpus.items)), replace=False)
    parts = np.array_split(queries, max(len(queries) // 200, 1))
    ranked = np.concatenate([_ranked(corpus.items[part], corpus.items, part) for part in parts])
    adapter = LiveAdapter(items=corpus.items, log=False, random_state=0).fit(corpus.items)
    turned = corpus.item_labels % 10 == 0
    found = {"promoted": 0, "first place": 0, "later": 0, "level reached": 0, "fell back": 0}
    found["worse"], gains = 0, []
    for _ in range(n_streams):
        adapter.reset()
        guard, reached = adapter._fitted.guard, False
        assert guard is not None
        for t in range(n):
            at = int(random.randint(len(queries)))
            q, shown = int(queries[at]), _list(ranked[at], random)
            right = corpus.item_labels[shown] == corpus.item_labels[q]
            y = users.answer(right, bool(turned[q]), t, random)
            adapter.feedback(corpus.items[q], shown, y)
            reached |= bool((guard.bets[:2, 0] >= guard.limits()[:2]).any())
        made = [change for change in guard.history if change["why"] == "promote"]
        found["promoted"] += bool(made)
        found["first place"] += any(change["place"] == "first" for change in made)
        found["later"] += users.since > 0 and any(c["event"] > users.since for c in made)
        found["level reached"] += reached or bool(made)
        found["fell back"] += any(change["why"] == "fall back" for change in guard.history)
        if any(guard.served.values()):
            gains.append(_gain(adapter, corpus, queries, ranked, random))
            found["worse"] += gains[-1] < 0
    who = users.kind + (f" after {users.since}" if users.since else "")
    who += f", {users.noise:.0%} wrong" if users.noise else ""
    mean = float(np.mean(gains)) if gains else None
    return {"answers": who, "streams": n_streams, "lists": n, **found, "AUC": mean}


def _list(ranked: Indices, random: np.random.RandomState) -> Indices:
    top = SHOWN - EXPLORED
    others = top + random.choice(DEPTH - top, EXPLORED, replace=False)
    return ranked[[*range(top), *others]]


def _gain(
    adapter: LiveAdapter,
    corpus: Corpus,
    queries: Indices,
    ranked: Array,
    random: np.random.RandomState,
) -> float:
    """The mean AUC of what is served less that of the start, by the right answers."""
    differences = []
    for at in random.randint(len(queries), size=JUDGES):
        q, shown = queries[at], _list(ranked[at], random)
        right = corpus.item_labels[shown] == corpus.item_labels[q]
        if right.all() or not right.any():
            continue
        forms = adapter.embed_query(corpus.items[q]), corpus.items[q]
        scores = [corpus.items[shown] @ form for form in forms]
        auc = [(s[right][:, None] > s[~right]).mean() for s in scores]
        differences.append(auc[0] - auc[1])
    return float(np.mean(differences))
