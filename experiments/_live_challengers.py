"""What others make of the same judged lists, under the same guard.

All learn from the log of one stream, whose lists were chosen by what the live adapter served and
proposed. A challenger stands in the place of the linear part: it is a matrix M that maps queries,
q ↦ qM, and each list is first ranked by M, by the frozen copies that are served and by the start,
and bet on, as in `LiveAdapter`; then it is learned from, 25 lists at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from experiments import _live_torch
from experiments._live_simulation import BLOCK, Corpus, measures
from samewise import (
    OASIS,
    DiagonalAROMA,
    FactoredAROMA,
    Judgements,
    Pairs,
    PassiveAggressive,
)
from samewise._typing import Array, Indices
from samewise.adapt.guard import PLACES, Guard
from samewise.kernels.adapter_event import _place_bets


@dataclass
class Log:
    """Events of a stream: rows of queries and of shown items, the answers, the candidates."""

    query: Indices
    shown: Indices
    y: Indices
    candidate: Indices

    @classmethod
    def of(cls, entries: list[dict[str, Any]]) -> Log:
        """The entries that `stream` records."""
        columns = ("query", "shown", "y")
        arrays = (np.array([entry[name] for entry in entries]) for name in columns)
        return cls(*arrays, np.array([entry.get("candidate", -1) for entry in entries]))


def _triplets(learner: Any) -> Callable[[Corpus, Log, slice], Any]:
    def learn(corpus: Corpus, log: Log, part: slice) -> Array | None:
        lists = Judgements(corpus.items, log.query[part], log.shown[part], log.y[part])
        told = lists.triplets()
        if len(told):
            learner.partial_fit(told)
        return np.asarray(learner.metric_.matrix, dtype=np.float32)

    return learn


def _pairs(learner: Any) -> Callable[[Corpus, Log, slice], Any]:
    def learn(corpus: Corpus, log: Log, part: slice) -> Array:
        k = log.shown.shape[1]
        rows = np.repeat(log.query[part], k), log.shown[part].ravel()
        learner.partial_fit(Pairs(corpus.items, *rows, log.y[part].ravel()))
        return np.asarray(learner.metric_.matrix, dtype=np.float32)

    return learn


def _torch(d: int) -> Callable[[Corpus, Log, slice], Any]:
    adapter = _live_torch.OnlineMNR(d)

    def learn(corpus: Corpus, log: Log, part: slice) -> Array:
        each, place = np.nonzero(log.y[part] > 0)
        rows = log.query[part][each], log.shown[part][each, place]
        wrong = log.shown[part][log.y[part] < 0]
        return adapter.learn(*(corpus.items[r] for r in (*rows, wrong)))

    return learn


def challengers(d: int) -> dict[str, Callable[[Corpus, Log, slice], Any]]:
    """By name, how each learns from a part of the log, and what its matrix is then."""
    found = {
        "OASIS": _triplets(OASIS()),
        "f-AROMA": _triplets(FactoredAROMA()),
        "d-AROMA": _triplets(DiagonalAROMA()),
        "PA-I on pairs, qᵀMp": _pairs(PassiveAggressive()),
    }
    if not _live_torch.reason_to_skip():
        found["torch query adapter, MNR loss"] = _torch(d)
    return found


def guarded(
    corpus: Corpus, log: Log, learn: Callable[[Corpus, Log, slice], Any]
) -> tuple[Array, dict[str, Array], Guard]:
    """The matrix at the end, those served for both places, and the guard."""
    M = np.eye(corpus.items.shape[1], dtype=np.float32)
    guard, served = Guard(0.05), dict.fromkeys(PLACES, M)
    for start in range(0, len(log.query), BLOCK):
        part = slice(start, min(start + BLOCK, len(log.query)))
        Q = corpus.items[log.query[part]]
        under = np.stack([Q @ W for W in (M, *served.values())] + [Q], axis=1)
        for i, forms in enumerate(under, part.start):
            if abs(log.y[i].sum()) == log.y.shape[1]:
                continue
            shown = np.ascontiguousarray(corpus.items[log.shown[i]], dtype=np.float32)
            bets = (guard.bets, guard.recent, np.empty((3, 2)))
            _place_bets(forms, shown, log.y[i], int(log.candidate[i]), *bets)
            for place in PLACES:
                due = guard.due(place)
                if due:
                    served[place] = M if due == "promote" else np.eye(len(M), dtype=np.float32)
                    guard.serve(place, int(due == "promote"), i, due)
        M = learn(corpus, log, part)
    return M, served, guard


def table(corpus: Corpus, log: Log) -> list[dict[str, Any]]:
    """A row for each challenger, for Rocchio's formula, expansion, and LDA."""
    rows = []
    for name, learn in challengers(corpus.items.shape[1]).items():
        M, served, guard = guarded(corpus, log, learn)
        rows.append({"form": f"{name}: live"} | _named(measures(corpus.tests @ M, None, corpus)))
        both = (corpus.tests @ served[place] for place in PLACES)
        first = min((c["event"] for c in guard.history if c["why"] == "promote"), default=None)
        rows.append(
            {"form": f"{name}: served"} | _named(measures(*both, corpus)) | {"promoted": first}
        )
    others = {"Rocchio": rocchio, "expansion by the own top 5": expanded}
    rows += [
        {"form": name} | _named(measures(make(corpus, log), corpus.tests, corpus))
        for name, make in others.items()
    ]
    return [*rows, {"form": "LDA, all labels"} | _named(lda(corpus))]


def _named(values: Array) -> dict[str, Any]:
    return dict(zip(("P@1", "P@10", "mAP"), map(float, values), strict=True))


def rocchio(corpus: Corpus, log: Log) -> Array:
    """q + 0.75 mean(liked) − 0.15 mean(disliked) of the nearest query that was judged."""
    E = corpus.tests.copy()
    nearest = (corpus.tests @ corpus.items[log.query].T).argmax(axis=1)
    for weight, kind in ((0.75, 1), (-0.15, -1)):
        mine = (log.y[nearest] == kind).astype(np.float32)
        mine /= np.maximum(mine.sum(axis=1, keepdims=True), 1)
        E += weight * np.einsum("nk,nkd->nd", mine, corpus.items[log.shown[nearest]])
    return E.astype(np.float32)


def expanded(corpus: Corpus, log: Log) -> Array:
    """Pseudo-relevance feedback, which needs no answers."""
    best = np.argpartition(-(corpus.tests @ corpus.items.T), 5, axis=1)[:, :5]
    return corpus.tests + corpus.items[best].mean(axis=1)


def lda(corpus: Corpus) -> Array:
    """Shrinkage LDA from the labels of all items, then the cosine."""
    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    model.fit(corpus.items.astype(np.float64), corpus.item_labels)
    mapped = (model.transform(X.astype(np.float64)) for X in (corpus.items, corpus.tests))
    P, E = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in mapped)
    return measures(E, None, Corpus(P, corpus.item_labels, E, corpus.test_labels))
