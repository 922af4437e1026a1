"""Beside the tables of `thesis`: one matrix for each region instead of one for all.

The thesis leaves open (§6.2) whether similarities learned in different parts of the space do better
than one for all. Here five folds are the test parts, k = 3, and what is compared is

- one matrix, learned from all examples;
- one for each of three cells, found by k-means of the examples at unit length: a query is compared
  with all examples by the matrix of its own cell, which is learned from the cell's examples (the
  cosine, where these are of one class);
- one for each class, learned against the others: by it a query has the difference of its mean
  similarities to its k nearest in the class and to its k nearest of the others. The scales of
  these differ, so that a logistic regression on this one number, from the learning examples (each
  without itself), makes a probability of it. The class of the largest wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments._common import write_csv
from experiments._papers_pairs import PapersGCosLA
from experiments._thesis_data import examples
from experiments._thesis_learners import GAMMA
from experiments._thesis_looks import calmly
from samewise._typing import Array, Indices
from samewise.decide import vote
from samewise.forms import Form, NormalizedBilinear
from samewise.learners.neighbors.sila import SiLA
from samewise.scores import s_test
from samewise.search import Index

FILE = "local.csv"
K, CELLS, FOLDS = 3, 3, 5
REGIONS = ("cells", "classes")


def compute(out: Path, names: Sequence[str]) -> None:
    """The file `local.csv`."""
    with calmly():
        write_csv(out / FILE, [row for name in names for row in look(name)])


def look(name: str) -> list[dict[str, Any]]:
    """For each learner the accuracy of one matrix, and of one for each region, with its mark."""
    X, y = examples(name)
    rows = []
    for method in ("SiLA", "gCosLA"):
        right: dict[str, list[Array]] = {how: [] for how in ("cosine", "one", *REGIONS)}
        for learn, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
            data = X[learn], y[learn], X[test]
            for how, answer in (
                ("cosine", nearest(cosine(X), *data)),
                ("one", nearest(learned(method, *data[:2]), *data)),
                ("cells", by_cell(method, *data)),
                ("classes", by_class(method, *data)),
            ):
                right[how].append(answer == y[test])
        row: dict[str, Any] = {"set": name, "method": method}
        row["cosine"] = float(np.concatenate(right["cosine"]).mean())
        whole = np.concatenate(right["one"])
        row["one matrix"] = float(whole.mean())
        for how in REGIONS:
            local = np.concatenate(right[how])
            row[f"by {how}"] = float(local.mean())
            row[f"by {how} / one"] = s_test(local, whole, method="thesis").mark
        rows.append(row)
    return rows


def cosine(X: Array) -> Form:
    """The similarity without learning."""
    return NormalizedBilinear(np.eye(X.shape[1]))


def learned(method: str, X: Array, y: Indices) -> Form:
    """The similarity of these examples."""
    if method == "SiLA":
        return SiLA(K, init="zero").fit(X, y).metric_
    return PapersGCosLA(GAMMA, None, shuffle=True, n_neighbors=5, random_state=0).fit(X, y).metric_


def nearest(form: Form, X: Array, y: Indices, Q: Array) -> Indices:
    """The answers of kNN."""
    return vote(y[Index(form, X).query(Q, K)[1]], int(y.max()) + 1)[0]


def by_cell(method: str, X: Array, y: Indices, Q: Array) -> Indices:
    """The answers of kNN by the matrix of the query's cell."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cells = KMeans(CELLS, n_init=10, random_state=0).fit(unit)
    of_query = cells.predict(Q / np.linalg.norm(Q, axis=1, keepdims=True))
    answers = np.empty(len(Q), dtype=y.dtype)
    for cell in np.unique(of_query):
        mine, asked = cells.labels_ == cell, of_query == cell
        form = cosine(X)
        if len(np.unique(y[mine])) > 1:
            form = learned(method, X[mine], y[mine])
        answers[asked] = nearest(form, X, y, Q[asked])
    return answers


def by_class(method: str, X: Array, y: Indices, Q: Array) -> Indices:
    """The class of the largest probability, each by its own matrix."""
    probabilities = []
    for c in np.unique(y):
        form, mine = learned(method, X, (y == c).astype(int)), y == c
        own = form.closeness(X, X)
        np.fill_diagonal(own, -np.inf)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
            _contrast(own, mine), mine
        )
        probabilities.append(model.predict_proba(_contrast(form.closeness(Q, X), mine))[:, 1])
    return np.unique(y)[np.argmax(probabilities, axis=0)]


def _contrast(closeness: Array, mine: Array) -> Array:
    """How much closer the k nearest in the class are than the k nearest of the others."""
    means = [-np.sort(-closeness[:, part], axis=1)[:, :K].mean(axis=1) for part in (mine, ~mine)]
    return (means[0] - means[1])[:, None]
