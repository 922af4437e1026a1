"""Figures 10, 12 and 13 of the paper on LMNN: what few dimensions cost, and what trees save."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import BallTree
from threadpoolctl import threadpool_limits

from experiments._common import Rows, plots, save_figure, write_csv
from experiments._lmnn_data import Split, principal
from samewise import Index, KNNClassifier
from samewise._typing import Array, Indices
from samewise.learners import LMNN

K = 3
METHODS = ("PCA", "LMNN-S", "LMNN-S (eigenvectors)", "LMNN-R")


class Plan(NamedTuple):
    """How much is run."""

    n_train: int
    """Training images, the first ones."""
    n_components: int
    """Principal components that learners get."""
    ranks: tuple[int, ...]
    n_queries: int
    """Test images whose neighbors are searched for, and training images whose impostors are."""


WHOLE = Plan(20000, 350, (15, 20, 25, 30, 40, 50), 200)
QUICK = Plan(1200, 30, (2, 5), 50)


def write(out: Path, split: Split, plan: Plan) -> None:
    """The three figures and their numbers."""
    some = slice(plan.n_train)
    inputs = split.inputs[0][some], split.inputs[1]
    labels = split.labels[0][some], split.labels[1]
    A, B = principal(*inputs, plan.n_components)
    maps = all_maps(A, labels[0], plan.ranks)
    baseline = knn_error(inputs, labels)
    # Rounded as the file has them, so that the picture can be drawn from the file as well.
    errors = [{"dimensions": inputs[0].shape[1], "method": "none", "error": round(baseline, 6)}]
    for (method, r), L in maps.items():
        error = knn_error((A @ L.T, B @ L.T), labels)
        errors.append({"dimensions": r, "method": method, "error": round(error, 6)})
    write_csv(out / "fig13_dimensions.csv", errors)
    with threadpool_limits(1):
        search = search_times(inputs, A, B, maps, plan)
        impostors = impostor_times(A, labels[0], maps, plan)
    write_csv(out / "fig10_search.csv", search)
    write_csv(out / "fig12_impostors.csv", impostors)
    draw_errors(out / "fig13_dimensions.png", errors)
    draw_speed(out / "fig10_search.png", [r for r in search if r["method"] == "PCA"], "3-NN search")
    draw_speed(out / "fig12_impostors.png", impostors, "search for impostors")


def all_maps(A: Array, a: Indices, ranks: tuple[int, ...]) -> dict[tuple[str, int], Array]:
    """The map to r dimensions by each method, for each r."""
    square = LMNN(K).fit(A, a)
    L = square.components_
    # The leading principal components of the mapped inputs.
    Z = A @ L.T
    axes = np.linalg.eigh(np.cov(Z.T.astype(np.float64)))[1][:, ::-1].T.astype(A.dtype)
    maps: dict[tuple[str, int], Array] = {}
    for r in ranks:
        maps["PCA", r] = np.eye(r, A.shape[1], dtype=A.dtype)
        maps["LMNN-S", r] = axes[:r] @ L
        maps["LMNN-S (eigenvectors)", r] = square.metric_.reduce(r).components.astype(A.dtype)
        maps["LMNN-R", r] = LMNN(K, n_components=r).fit(A, a).components_
    return maps


def knn_error(rows: tuple[Array, Array], labels: tuple[Indices, Indices]) -> float:
    knn = KNNClassifier(None, K).fit(rows[0], labels[0])
    return 100 * (1 - knn.score(rows[1], labels[1]))


def search_times(
    inputs: tuple[Array, Array], A: Array, B: Array, maps: dict[Any, Array], plan: Plan
) -> Rows:
    """Figure 10, and the top of 13: CPU seconds for a query, and speed-ups over all dimensions."""
    some = np.random.RandomState(0).permutation(len(B))[: plan.n_queries]
    baseline = _products(inputs[0], inputs[1][some])
    rows = [{"method": "none", "dimensions": inputs[0].shape[1], "products": baseline}]
    rows[0] |= {"ball_tree": None, "kd_tree": None}
    for (method, r), L in maps.items():
        if method not in ("PCA", "LMNN-R"):
            continue
        Z, Q = A @ L.T, (B @ L.T)[some]
        ball, kd = BallTree(Z, leaf_size=20), Index(None, Z, route="tree")
        row = {"method": method, "dimensions": r, "products": _products(Z, Q)}
        row["ball_tree"] = _seconds(lambda tree=ball, Q=Q: tree.query(Q, K)) / len(Q)
        row["kd_tree"] = _seconds(lambda index=kd, Q=Q: index.query(Q, K)) / len(Q)
        rows.append(row)
    kinds = ("products", "ball_tree", "kd_tree")
    return [
        row | {f"speedup_{kind}": row[kind] and baseline / row[kind] for kind in kinds}
        for row in rows
    ]


def _products(Z: Array, Q: Array) -> float:
    index = Index(None, Z, route="blocked")
    index.query(Q[:1], K)
    return _seconds(lambda: index.query(Q, K)) / len(Q)


def _seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def impostor_times(A: Array, a: Indices, maps: dict[Any, Array], plan: Plan) -> Rows:
    """Figure 12: CPU seconds for the impostors of one image, under the learned maps."""
    rows, some = [], np.random.RandomState(1).permutation(len(A))[: plan.n_queries]
    targets = [_targets(A, a, i) for i in some]
    for (method, r), L in maps.items():
        if method != "LMNN-R":
            continue
        Z = (A @ L.T).astype(np.float64)
        reach = np.array([1 + _farthest(Z, i, j) for i, j in zip(some, targets, strict=True)])
        members = [np.flatnonzero(a == c) for c in np.unique(a)]
        trees = [BallTree(Z[rows_of], leaf_size=20) for rows_of in members]
        found: dict[str, int] = {}

        def by_trees(Z=Z, reach=reach, trees=trees, found=found) -> None:
            n = 0
            for c, tree in enumerate(trees):
                others = a[some] != c
                lists = tree.query_radius(Z[some[others]], np.sqrt(reach[others]))
                n += sum(map(len, lists))
            found["ball_tree"] = n

        def by_products(Z=Z, reach=reach, found=found) -> None:
            D = np.sum(Z[some] ** 2, axis=1)[:, None] - 2 * Z[some] @ Z.T + np.sum(Z**2, axis=1)
            found["products"] = int(np.sum((reach[:, None] >= D) & (a[some][:, None] != a)))

        row = {"method": method, "dimensions": r}
        row |= {"products": _seconds(by_products) / len(some)}
        row |= {"ball_tree": _seconds(by_trees) / len(some)}
        row |= {"speedup_ball_tree": row["products"] / row["ball_tree"]}
        rows.append(row | {"found_products": found["products"], "found_trees": found["ball_tree"]})
    return rows


def _targets(A: Array, a: Indices, i: int) -> Indices:
    same = np.flatnonzero((a == a[i]) & (np.arange(len(a)) != i))
    return same[np.argsort(np.sum((A[same] - A[i]) ** 2, axis=1), kind="stable")[:K]]


def _farthest(Z: Array, i: int, targets: Indices) -> float:
    return float(np.max(np.sum((Z[targets] - Z[i]) ** 2, axis=1)))


def draw_errors(path: Path, rows: Rows) -> None:
    figure, panel = plots().subplots(figsize=(6, 4))
    for method in METHODS:
        points = [(row["dimensions"], row["error"]) for row in rows if row["method"] == method]
        panel.plot(*zip(*points, strict=True), marker="o", label=method)
    panel.axhline(rows[0]["error"], color="gray", linestyle=":", label="all dimensions")
    panel.set_xlabel("dimensions")
    panel.set_ylabel("3-NN test error, %")
    panel.legend()
    save_figure(figure, path)


def draw_speed(path: Path, rows: Rows, title: str) -> None:
    figure, panel = plots().subplots(figsize=(6, 4))
    names = {"ball_tree": "ball tree", "kd_tree": "k-d tree", "products": "matrix products"}
    for kind, name in names.items():
        points = [
            (row["dimensions"], row[f"speedup_{kind}"])
            for row in rows
            if row.get(f"speedup_{kind}") is not None
        ]
        if points:
            panel.plot(*zip(*points, strict=True), marker="o", label=name)
    panel.axhline(1, color="gray", linestyle=":")
    panel.set_xlabel("dimensions")
    panel.set_ylabel("speed-up")
    panel.set_yscale("log")
    panel.set_title(title)
    panel.legend()
    save_figure(figure, path)
