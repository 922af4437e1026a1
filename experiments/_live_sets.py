"""The live adapter on other embeddings, with other feedback, and others in its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import train_test_split

from experiments import _live_challengers, _live_torch
from experiments._common import in_processes, markdown, write_csv
from experiments._live_simulation import Corpus, Users, measures, served_measures, stream
from experiments._news_data import documents
from experiments.banking77 import banking
from samewise._typing import Array
from samewise.datasets import load

LISTS = 2000
N_SEEDS = 3
TOPICS = 100
NAMES = ("P@1", "P@10", "mAP")

TEXT = """# Live adapter: other embeddings, other feedback, others in its place

{lists} lists with a tenth of the answers wrong where nothing else is said, guard 0.05; test queries
against stored training items, in percent, means of {seeds} seeds. "Live" is what has learned,
"served" what the guard let through; "promoted" is after how many lists first, for each seed, and
"least P@1" the worst that was served at any time, less the start's. Made by `python -m experiments
live --only sets`.

Challengers (one seed) learn from the very lists that the adapter showed on banking77, in the place
of its linear part, under the same guard; none has a memory but the adapter. Each line of them
stands for defaults, nothing was tuned. {reason}
"""


def sets(quick: bool) -> dict[str, Callable[[], Corpus]]:
    """By name, how each corpus is made."""
    made: dict[str, Callable[[], Corpus]] = {"digits, pixels": digits}
    if not quick:
        made |= {"newsgroups, LSA": newsgroups, "isolet": isolet, "mfeat": mfeat}
    return made


def unit(X: Any) -> Array:
    """Rows of unit length."""
    rows = np.asarray(X, dtype=np.float64)
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def newsgroups() -> Corpus:
    """20 Newsgroups: 5 000 terms, tf-idf, the leading 100 singular directions."""
    split = next(documents(1, 5000, 1))
    (A, a), (B, b) = split.train, split.test
    model = TruncatedSVD(TOPICS, random_state=0).fit(A)
    return Corpus(unit(model.transform(A)), a, unit(model.transform(B)), b)


def isolet() -> Corpus:
    """Spoken letters, 617 features, centered on the training part."""
    bunch = load("isolet")
    train = np.asarray(bunch.train, dtype=bool)
    X = bunch.data - bunch.data[train].mean(axis=0)
    return Corpus(unit(X[train]), bunch.target[train], unit(X[~train]), bunch.target[~train])


def mfeat() -> Corpus:
    """Handwritten numerals, 649 features of six kinds, standardized on the training part."""
    bunch = load("mfeat")
    A, B, a, b = train_test_split(
        bunch.data, bunch.target, test_size=0.3, stratify=bunch.target, random_state=0
    )
    mean, scale = A.mean(axis=0), np.maximum(A.std(axis=0), 1e-9)
    return Corpus(unit((A - mean) / scale), a, unit((B - mean) / scale), b)


def digits() -> Corpus:
    """Digits of 8 × 8 pixels, as they are."""
    X, y = load_digits(return_X_y=True)
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    return Corpus(unit(A), a, unit(B), b)


def one(name: str, corpus: Corpus, users: Users, n: int, n_seeds: int) -> list[dict[str, Any]]:
    """Start, live and served after n lists, in the mean of some seeds."""
    start = measures(corpus.tests, None, corpus)
    forms: dict[str, list[Array]] = {"start": [start], "live": [], "served": []}
    promoted, least = [], 0.0
    for seed in range(n_seeds):
        adapter, course = stream(corpus, users, n, seed, guard=0.05, watch=True)
        forms["live"].append(measures(adapter.live.embed_query(corpus.tests), None, corpus))
        forms["served"].append(served_measures(adapter, corpus))
        changed = [forms["served"][-1], *course.changed.values()]
        least = min(least, *(float(values[0] - start[0]) for values in changed))
        firsts = [c["event"] for c in course.changes if c["why"] == "promote"]
        promoted.append(str(min(firsts)) if firsts else "never")
    table: list[dict[str, Any]] = [
        {"embeddings": name, "form": form, **_named(np.mean(v, axis=0))}
        | {"promoted": None, "least P@1": None}
        for form, v in forms.items()
    ]
    table[-1] |= {"promoted": ", ".join(promoted), "least P@1": least}
    return table


def _named(values: Array) -> dict[str, float]:
    return dict(zip(NAMES, map(float, values), strict=True))


def run(out: Path, *, quick: bool, jobs: int) -> None:
    """The three tables of sets.md, and their CSV files."""
    n, seeds = (200, 1) if quick else (LISTS, N_SEEDS)
    (A, a), (B, b) = banking(10 if quick else 77)
    bank = Corpus(A, a, B, b)
    usual = Users(noise=0.1)
    tasks = [(name, make(), usual, n, seeds) for name, make in sets(quick).items()]
    others = in_processes(one, tasks, jobs)
    said = {
        "thumbs": Users(noise=0.1, said="thumbs"),
        "clicks, interleaved": Users(noise=0.1, said="clicks"),
        "judged lists, a fifth wrong": Users(noise=0.2),
        "judged lists": usual,
    }
    tasks = [(name, bank, users, n, seeds) for name, users in said.items()]
    feedback = in_processes(one, tasks, jobs)
    entries: list[dict[str, Any]] = []
    stream(bank, usual, n, 0, guard=0.05, record=entries.append)
    log = _live_challengers.Log.of(entries)
    rows = in_processes(_live_challengers.table, [(bank, log)], 1)[0]
    tables = {
        "sets": [row for found in others for row in found],
        "feedback": [row for found in feedback for row in found],
        "challengers": [{"promoted": None} | row for row in rows],
    }
    tables["challengers"] = [
        {"form": r["form"], **{k: r[k] for k in NAMES}, "promoted": r["promoted"]}
        for r in tables["challengers"]
    ]
    for name, table in tables.items():
        write_csv(out / f"{name}.csv", table)
    parts = [TEXT.format(lists=n, seeds=seeds, reason=_live_torch.reason_to_skip()).strip()]
    parts += ["## Other embeddings", markdown(tables["sets"], 1)]
    shown = [{"feedback": r.pop("embeddings"), **r} for r in tables["feedback"]]
    parts += ["## Other feedback, on banking77", markdown(shown, 1)]
    parts += ["## Others in its place, on banking77", markdown(tables["challengers"], 1)]
    (out / "sets.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
