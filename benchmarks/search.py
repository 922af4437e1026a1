"""Exact neighbors by trees and by blocked products, against the dimension of the mapped points.

Seconds are CPU time of one thread, without building the tree or storing the rows.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise

import faiss
import numpy as np
from sklearn.neighbors import BallTree, NearestNeighbors

from benchmarks.lmnn import prepared
from benchmarks.timing import interleaved
from samewise import KNNClassifier, Mahalanobis
from samewise.exceptions import DatasetNotFoundError
from samewise.learners import LMNN
from samewise.learners.batch.lmnn.impostors import Candidates, search
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.search import Index, to_faiss, to_hnswlib, to_usearch
from samewise.solvers.workers import Workers

K = 3
QUERIES, TESTED = 200, 2000
"""Test points for the time of a search, and for the error."""

# data: input dimension, output dimensions
DIMENSIONS = {"letter": (16, (2, 4, 6, 8, 12, 16)), "mnist": (64, (2, 4, 6, 8, 12, 16, 32, 64))}
LEARNED = 2000
"""Points that LMNN learns from: mapped to few dimensions, nearly all points are in reach."""


def principal(X: np.ndarray, d: int) -> np.ndarray:
    """The leading d principal directions, as rows."""
    return np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :d].T.astype(X.dtype)


def error(L: np.ndarray, X: np.ndarray, y: np.ndarray, Q: np.ndarray, q: np.ndarray) -> float:
    """3-NN error in percent, of the mapped points."""
    knn = KNNClassifier(n_neighbors=K).fit(X @ L.T, y)
    return round(100 * (1 - knn.score(Q @ L.T, q)), 2)


def run() -> list[dict[str, object]]:
    """LMNN learned in r dimensions (R), cut to r afterwards (S), and PCA; time on the first."""
    rows = []
    for name, (d, dimensions) in DIMENSIONS.items():
        try:
            X, y, X_test, y_test = prepared(name)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        X, X_test, y_test = X[:, :d], X_test[:TESTED, :d], y_test[:TESTED]
        learn = X[:LEARNED], y[:LEARNED]
        square = LMNN(tol=1e-3).fit(*learn)
        whole = None
        for r in sorted(dimensions, reverse=True):
            lmnn = square if r == d else LMNN(n_components=r, tol=1e-3).fit(*learn)
            Z, Q = lmnn.transform(X), lmnn.transform(X_test[:QUERIES])
            seconds = search_seconds(Z, Q)
            whole = whole or seconds["products"]
            best = min(seconds, key=lambda route: seconds[route])
            maps = {
                "R": lmnn.components_,
                "S": square.metric_.reduce(r).components,
                "PCA": principal(X, r),
            }
            rows.append(
                {
                    "data": name,
                    "n": len(Z),
                    "r": r,
                    **{
                        f"{m} error %": error(L.astype(X.dtype), X, y, X_test, y_test)
                        for m, L in maps.items()
                    },
                    **{f"{route} ms": round(1000 * s, 1) for route, s in seconds.items()},
                    "k-d / products": round(seconds["k-d tree"] / seconds["products"], 2),
                    "ball / k-d": round(seconds["ball tree"] / seconds["k-d tree"], 2),
                    "fastest": best,
                    "auto": {"tree": "k-d tree", "blocked": "products"}[Index(None, Z).route],
                    f"faster than r={d}": round(whole / seconds[best], 1),
                }
            )
    return rows


def search_seconds(Z: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    """Seconds of each way to the K nearest, which are checked to be the same."""
    trees, products = Index(None, Z, route="tree"), Index(None, Z, route="blocked")
    ball = BallTree(Z)
    near, rows = products.query(Q, K)
    np.testing.assert_array_equal(trees.query(Q, K)[1], rows)
    np.testing.assert_allclose(ball.query(Q, K)[0], -near, rtol=1e-4, atol=1e-5)
    return interleaved(
        {
            "k-d tree": lambda: trees.query(Q, K),
            "ball tree": lambda: ball.query(Q, K),
            "products": lambda: products.query(Q, K),
        },
        3,
    )


# data: dimensions, and what the prototype's trees took times its products
IMPOSTORS = [("letter", 16, 13), ("mnist", 50, 40)]


def run_impostors() -> list[dict[str, object]]:
    """All pairs of different classes within the margin: a tree for each class, or products.

    The trees are asked for a sample of points, and their seconds scaled to all.
    """
    rows = []
    for name, d, prototype in IMPOSTORS:
        try:
            X, y, _, _ = prepared(name)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        X, y = X[:14000, :d], np.unique(y[:14000], return_inverse=True)[1]
        classes, alone = Classes(y, y.max() + 1), Workers(1, None)
        lmnn = LMNN().fit(X, y)
        targets = nearest_targets(X, classes, K, alone)
        # Columns by decreasing variance, as the solver gives them to the search.
        Z = lmnn.transform(X)[classes.order]
        Z = (Z - Z.mean(axis=0)) @ principal(Z, d).T
        reach = 1 + ((Z[:, None] - Z[targets]) ** 2).sum(axis=2, dtype=np.float64).max(axis=1)
        sample = np.arange(0, len(Z), len(Z) // QUERIES)
        found = search(Z, reach, classes, alone)
        products = interleaved({"": lambda: search(Z, reach, classes, alone)}, 3)[""]  # noqa: B023
        start = time.thread_time()
        trees = [BallTree(Z[lo:hi]) for lo, hi in pairwise(classes.bounds)]
        building = time.thread_time() - start
        start = time.thread_time()
        pairs = by_trees(trees, Z, reach, classes, sample)
        by_tree = building + (time.thread_time() - start) * len(Z) / len(sample)
        check_same(pairs, found, Z, reach, sample)
        rows.append(
            {
                "data": name,
                "n": len(Z),
                "d": d,
                "pairs": len(found.columns),
                "products s": round(products, 3),
                "ball trees s": round(by_tree, 2),
                "ball trees / products": round(by_tree / products, 1),
                "prototype": prototype,
            }
        )
    return rows


def by_trees(
    trees: list[BallTree], Z: np.ndarray, reach: np.ndarray, classes: Classes, sample: np.ndarray
) -> set[tuple[int, int]]:
    """(i, l) for i in the sample and l of another class with D_il < reach_i."""
    pairs: set[tuple[int, int]] = set()
    for tree, lo, hi in zip(trees, classes.bounds[:-1], classes.bounds[1:], strict=True):
        others = sample[(sample < lo) | (sample >= hi)]
        within = tree.query_radius(Z[others], np.sqrt(reach[others]))
        for i, columns in zip(others.tolist(), within, strict=True):
            pairs.update((i, lo + int(column)) for column in columns)
    return pairs


def check_same(
    pairs: set[tuple[int, int]],
    found: Candidates,
    Z: np.ndarray,
    reach: np.ndarray,
    sample: np.ndarray,
) -> None:
    """Of the products' pairs those in reach of the sample are the trees', up to rounding."""
    rows = np.repeat(np.arange(len(Z)), np.diff(found.indptr))
    ends = np.concatenate([[rows, found.columns], [found.columns, rows]], axis=1)
    i, j = ends[:, np.isin(ends[0], sample)]
    D = ((Z[i] - Z[j]).astype(np.float64) ** 2).sum(axis=1)
    near = dict(zip(zip(i.tolist(), j.tolist(), strict=True), D / reach[i], strict=True))
    assert all(pair in near for pair in pairs)
    assert all(pair in pairs for pair, part in near.items() if part < 1 - 1e-4)


MANY = 2000
"""Queries of a batch."""


def run_exact() -> list[dict[str, object]]:
    """The 3 nearest of 60 000 digits: a batch of queries, and one at a time.

    Rows are stored and prepared before; the lists must be the same (FAISS has float32 only, where
    some nearly equal distances may change places).
    """
    try:
        X, _, Q, _ = prepared("mnist")
    except DatasetNotFoundError as missing:
        print(missing)
        return []
    rows = []
    for dtype in (np.float64, np.float32):
        stored, batch = X.astype(dtype), Q[:MANY].astype(dtype)
        index = Index(None, stored, route="blocked")
        peer = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(stored)
        flat = faiss.IndexFlatL2(X.shape[1])
        flat.add(np.ascontiguousarray(stored, dtype=np.float32))
        for queries, repeats in ((batch, 3), (batch[:1], 21)):
            single = queries.astype(np.float32)
            ways = {
                "Index": partial(index.query, queries, K),
                "scikit-learn": partial(peer.kneighbors, queries),
                "FAISS": partial(flat.search, single, K),
            }
            found = index.query(queries, K)[1]
            np.testing.assert_array_equal(found, peer.kneighbors(queries)[1])
            same = float((flat.search(single, K)[1] == found).mean())
            seconds = interleaved(ways, repeats)
            rows.append(
                {
                    "type": np.dtype(dtype).name,
                    "n": len(X),
                    "d": X.shape[1],
                    "queries": len(queries),
                    **{f"{way} ms": round(1000 * s, 1) for way, s in seconds.items()},
                    "of scikit-learn's": round(seconds["Index"] / seconds["scikit-learn"], 2),
                    "wanted ": 0.45,
                    "of FAISS's": round(seconds["Index"] / seconds["FAISS"], 2),
                    "wanted": 0.3 if len(queries) > 1 else 1.0,
                    "as FAISS %": round(100 * same, 2),
                }
            )
    return rows


STORED, WANTED, RECALL_AT = 20_000, 1000, 10


class FaissGraph:
    """FAISS's HNSW behind a map, called as the others are."""

    def __init__(self, form: Mahalanobis) -> None:
        self.index = to_faiss(form, faiss.IndexHNSWFlat(len(form.components), 16))

    def add(self, X: np.ndarray) -> None:
        self.index.add(X)

    def query(self, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.index.search(X, k)


def run_graphs() -> list[dict[str, object]]:
    """Graphs behind a map, against exact search: recall, and CPU time of all threads."""
    try:
        X, _, Q, _ = prepared("mnist")
    except DatasetNotFoundError as missing:
        print(missing)
        return []
    stored, queries = X[:STORED].astype(np.float32), Q[:WANTED].astype(np.float32)
    form = Mahalanobis.from_components(principal(stored, 64))
    exact = Index(form, stored)
    truth = exact.query(queries, RECALL_AT)[1]
    rows = []
    makers = {"FAISS, HNSW": FaissGraph, "usearch": to_usearch, "hnswlib": to_hnswlib}
    for name, make in makers.items():
        start = time.process_time()
        try:
            graph = make(form)
        except ImportError as missing:
            print(missing)
            continue
        graph.add(stored)
        building = time.process_time() - start
        found = graph.query(queries, RECALL_AT)[1]
        spent: dict[str, list[float]] = {"exact": [], "graph": []}
        ways = {
            "exact": partial(exact.query, queries, RECALL_AT),
            "graph": partial(graph.query, queries, RECALL_AT),
        }
        for _ in range(5):
            for way, run_it in ways.items():
                start = time.process_time()
                run_it()
                spent[way].append(time.process_time() - start)
        seconds = {way: float(np.median(each)) for way, each in spent.items()}
        hits = [len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True)]
        rows.append(
            {
                "graph": name,
                "n": STORED,
                "d": len(form.components),
                f"recall@{RECALL_AT}": round(float(np.mean(hits)) / RECALL_AT, 4),
                "building s": round(building, 1),
                "exact µs a query": round(1e6 * seconds["exact"] / WANTED, 1),
                "graph µs a query": round(1e6 * seconds["graph"] / WANTED, 1),
                "exact / graph": round(seconds["exact"] / seconds["graph"], 2),
            }
        )
    return rows
