"""What leaves a live adapter: its forms exported, and what headroom had promised.

Data: `banking77_minilm`, as for `live`. Users judge 3 000 lists, one answer in ten wrong, without a
guard; three seeds. The live form then ranks all stored questions for the test questions: by
`embed_query`, by `to_numpy` with all remembered lists and with none, and by `to_items`, which maps
stored questions too.

For `headroom`, the first training question of each intent is its answer, and the others ask. What
it promises of n training pairs, by cross-validation, stands beside what an adapter without a guard
reaches on the test questions when it has heard the same pairs: for each, the right answer and the
ten others that the start ranks highest. The same with answers that were shuffled. Nothing is chosen
on the test part: what headroom regresses on, and its grid, were fixed on pairs of training
questions, after about 45 variants (five targets, ridges, scales, and whitening of differences).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments._common import in_processes, markdown, write_csv
from experiments._live_simulation import Corpus, Users, measures, stream
from experiments.banking77 import banking
from samewise import LiveAdapter
from samewise._typing import Array

LISTS, N_SEEDS = 3000, 3
PAIRS = (100, 300, 1000, 3000)
NAMES = ("P@1", "P@10", "mAP")


def run(out: Path, *, quick: bool, jobs: int) -> None:
    """Both tables in `out`."""
    (A, a), (B, b) = banking(10 if quick else 77)
    corpus = Corpus(A, a, B, b)
    seeds = range(1 if quick else N_SEEDS)
    tasks = [(corpus, seed, 100 if quick else LISTS) for seed in seeds]
    exported = [row for rows in in_processes(exports, tasks, jobs) for row in rows]
    promised = [row for n in PAIRS[: 2 if quick else 4] for row in promises(corpus, n)]
    write_csv(out / "exports.csv", exported)
    write_csv(out / "headroom.csv", promised)
    forms = list(dict.fromkeys(row["form"] for row in exported))
    means = [
        {"form": form}
        | {name: float(np.mean([r[name] for r in exported if r["form"] == form])) for name in NAMES}
        for form in forms
    ]
    parts = [
        "# Exports of a live adapter",
        "banking77, in percent. Made by `python -m experiments live_export`.",
        f"## The live form after {tasks[0][2]} lists, means over seeds",
        markdown(means, 1),
        "## Headroom: one answer for each intent, P@1",
        markdown(promised, 1),
    ]
    (out / "summary.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def exports(corpus: Corpus, seed: int, n: int) -> list[dict[str, Any]]:
    """How the live form and its exports rank the stored questions."""
    adapter, _ = stream(corpus, Users(noise=0.1), n, seed, guard=None)
    live, Q = adapter.live, corpus.tests
    both = live.to_items()
    P, E = (both.embed(X, symmetric=True).astype(np.float32) for X in (corpus.items, Q))
    symmetric = Corpus(P, corpus.item_labels, E, corpus.test_labels)
    found = {
        "the start": measures(Q, None, corpus),
        "embed_query": measures(live.embed_query(Q), None, corpus),
        "to_numpy": measures(live.to_numpy()(Q), None, corpus),
        "to_numpy, memory=False": measures(live.to_numpy(memory=False)(Q), None, corpus),
        "to_items": measures(E, None, symmetric),
    }
    return [
        {"form": form, "seed": seed, **dict(zip(NAMES, map(float, values), strict=True))}
        for form, values in found.items()
    ]


def promises(corpus: Corpus, n: int) -> list[dict[str, Any]]:
    """What headroom says of n pairs, right and shuffled, and what an adapter makes of them."""
    classes, first = np.unique(corpus.item_labels, return_index=True)
    answers = corpus.items[first]
    random = np.random.RandomState(0)
    asking = np.setdiff1d(np.arange(len(corpus.items)), first)
    asking = random.choice(asking, min(n, len(asking)), replace=False)
    relevant = np.searchsorted(classes, corpus.item_labels[asking])
    adapter = LiveAdapter(items=answers, random_state=0).fit(corpus.items)
    of_tests = np.searchsorted(classes, corpus.test_labels)
    rows = []
    for kind, named in (("right", relevant), ("shuffled", random.permutation(relevant))):
        found = adapter.headroom(corpus.items[asking], named)
        reached = taught(corpus.items[asking], named, answers, corpus).embed_query(corpus.tests)
        rows.append(
            {
                "pairs": len(asking),
                "answers": kind,
                "start": 100 * found.start["precision@1"],
                "promised": 100 * found.attainable["precision@1"],
                "verdict": found.test.verdict,
                "test, start": 100 * _first(corpus.tests, answers, of_tests),
                "test, reached": 100 * _first(reached, answers, of_tests),
            }
        )
    return rows


def taught(Q: Array, relevant: Array, answers: Array, corpus: Corpus) -> LiveAdapter:
    """An adapter that has heard the pairs."""
    adapter = LiveAdapter(guard=None, items=answers, log=False, random_state=0).fit(corpus.items)
    ranked = np.argsort(-(Q @ answers.T), axis=1, kind="stable")
    for q, right, order in zip(Q, relevant, ranked, strict=True):
        others = order[order != right][:10]
        adapter.feedback(q, [int(right), *others.tolist()], [1] + [-1] * len(others))
    return adapter


def _first(E: Array, answers: Array, right: Array) -> float:
    return float(((E @ answers.T).argmax(axis=1) == right).mean())
