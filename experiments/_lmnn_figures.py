"""The figures of `lmnn_table1` that take computations of their own: 2, 7, 10, 12 and 13."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from experiments import _lmnn_dimensions
from experiments._common import Rows, plots, save_figure, write_csv
from experiments._lmnn_data import SETS, Split
from experiments._papers_pairs import PapersMMC
from samewise import RCA, KNNClassifier, Mahalanobis
from samewise._typing import Array, Indices
from samewise.datasets import make_concentric_circles, make_zebra_stripes
from samewise.decide import vote
from samewise.learners import LMNN, MultiMetricLMNN

FILES = ("fig2_zebra", "fig7_circles", "fig10_search", "fig12_impostors", "fig13_dimensions")
N_METRICS = (1, 2, 3, 4)


def present(out: Path) -> bool:
    """Whether all of them are there."""
    return all((out / f"{name}.csv").exists() for name in FILES)


def compute(out: Path, quick: bool) -> None:
    """All of them, as CSV files and pictures."""
    zebra(out, 400 if quick else 2000)
    circles(out)
    plan = _lmnn_dimensions.QUICK if quick else _lmnn_dimensions.WHOLE
    _lmnn_dimensions.write(out, small_digits() if quick else SETS["mnist"].split(0), plan)


def small_digits() -> Split:
    """The 8 × 8 digits of scikit-learn."""
    X, y = load_digits(return_X_y=True)
    inputs = X[:1200], X[1200:]
    return Split(inputs, inputs, (y[:1200], y[1200:]))


def leave_one_out(metric: Any, X: Array, y: Indices, k: int = 1) -> float:
    """k-NN error in percent of each point among the others."""
    neighbors = KNNClassifier(metric, k).fit(X, y).kneighbors(return_distance=False)
    return 100 * float(np.mean(vote(y[neighbors], y.max() + 1)[0] != y))


def zebra(out: Path, n: int) -> None:
    """Figure 2: stripes; the dominant axis of several maps, and their 1-NN errors."""
    X, y = make_zebra_stripes(n, random_state=0)
    maps = zebra_maps(X, y)
    rows = [
        {"method": method, **_axis(L), "error": leave_one_out(_form(L), X, y)}
        for method, L in maps.items()
    ]
    write_csv(out / "fig2_zebra.csv", rows)
    figure, (left, *others) = plots().subplots(1, 3, figsize=(12, 3.6))
    _scatter(left, X, y)
    at = X.mean(axis=0)
    for n, row in enumerate(rows[1:]):
        ends = at + np.outer([-1, 1], [(70 - 9 * n) * row["x"], 22 * row["y"]])
        left.plot(*ends.T, linewidth=6 - n, color=f"C{n + 4}", label=row["method"])
    left.legend(loc="lower center", fontsize="small", ncols=2)
    left.set_title("dominant axes")
    for panel, method in zip(others, ("Euclidean", "LMNN"), strict=True):
        _scatter(panel, X[X[:, 0] < 100] @ maps[method].T, y[X[:, 0] < 100])
        panel.set_title(f"{method}: left set, mapped")
        panel.set_aspect("equal", adjustable="datalim")
    save_figure(figure, out / "fig2_zebra.png")


def zebra_maps(X: Array, y: Indices) -> dict[str, Array]:
    """Linear maps by several methods."""
    nca = NeighborhoodComponentsAnalysis(init="identity", max_iter=100, random_state=0)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    return {
        "Euclidean": np.eye(2),
        "PCA": np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:1],
        "LDA": lda.scalings_[:, :1].T,
        "NCA": nca.fit(X, y).components_,
        "LMNN": LMNN(1).fit(X, y).components_,
        "RCA": RCA().fit(X, y).components_,
        "MCC": PapersMMC(shrinkage=0.0, random_state=0).fit(X, y).components_,
    }


def _axis(L: Array) -> dict[str, float]:
    """The direction that counts most, to the right."""
    v = np.linalg.svd(L)[2][0]
    v = v * np.sign(v[np.argmax(abs(v))])
    return {"x": float(v[0]), "y": float(v[1])}


def _form(L: Array) -> Mahalanobis:
    return Mahalanobis.from_components(L)


def _scatter(panel: Any, X: Array, y: Indices) -> None:
    for c, (color, marker) in enumerate((("C0", "o"), ("C3", "s"))):
        panel.scatter(*X[y == c].T, s=8, c=color, marker=marker, linewidths=0)


def circles(out: Path) -> None:
    """Figure 7: two circles of six points, with one, two, three and four metrics."""
    X, y = make_concentric_circles(12, gap=0.9, random_state=0)
    figure, panels = plots().subplots(1, len(N_METRICS), figsize=(13, 3.5))
    rows = []
    for panel, n_metrics in zip(panels, N_METRICS, strict=True):
        lmnn = circle_metrics(X, y, n_metrics)
        error = leave_one_out(lmnn, X, y)
        rows += _circle_rows(lmnn, X, n_metrics, error)
        _draw_circles(panel, X, y, rows[-n_metrics:], f"metrics: {n_metrics}, error {error:.0f} %")
    write_csv(out / "fig7_circles.csv", rows)
    save_figure(figure, out / "fig7_circles.png")


def circle_metrics(X: Array, y: Indices, n_metrics: int) -> MultiMetricLMNN:
    """So many metrics, in regions found by k-means."""
    lmnn = MultiMetricLMNN(1, n_clusters=n_metrics, validation_fraction=None, random_state=0)
    return lmnn.set_params(tol=1e-5, max_iter=2000).fit(X, y)


def _circle_rows(lmnn: MultiMetricLMNN, X: Array, n_metrics: int, error: float) -> Rows:
    groups = lmnn.metric_.groups_of(X)
    rows = []
    for g, L in enumerate(lmnn.components_):
        center = X[groups == g].mean(axis=0)
        about = {"metrics": n_metrics, "error": error, "metric": g}
        rows.append(about | {"at_x": center[0], "at_y": center[1], **_axis(L)})
    return rows


def _draw_circles(panel: Any, X: Array, y: Indices, rows: Rows, title: str) -> None:
    _scatter(panel, X, y)
    for row in rows:
        at, way = np.array([row["at_x"], row["at_y"]]), 0.4 * np.array([row["x"], row["y"]])
        panel.annotate("", at + way, at - way, arrowprops={"arrowstyle": "<->"})
    panel.set_title(title)
    panel.set_aspect("equal")
