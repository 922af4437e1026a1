"""Learners that other packages have too against theirs, at an equal or better objective.

A peer learns first, with its defaults but for `max_iter`; then samewise learns from the same rows,
pairs or chunklets, until the objective of the peer is reached. Both objectives are then computed
from the learned matrices by the functions here. "finished" says whether the peer ended by its own
rule: where `max_iter` ended it, its objective may be far from its best, and soon reached. "to the
end" is what samewise takes with its defaults, which mostly go beyond that objective.

Each runs in a process of its own, held to one thread; importing and compiling come before the clock
starts. Memory is the peak of the fit beyond what the process held before it, data included.

metric-learn and mlpack run in the environment of `benchmarks.peers`, scikit-learn in ours. Sizes
are about the largest that the slowest peer gets through within a minute here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import peers
from samewise import SDML, Pairs, Quadruplets, Triplets, datasets
from samewise.exceptions import DatasetNotFoundError
from samewise.learners.batch.local_directions import local_discriminants

RUNNER = Path(__file__).with_name("_learner_runner.py")
THREADS = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]
LONGEST = 200
"""Seconds after which a run is given up."""

GAMMA = 1.0
SPARSITY, BETA = 0.01, 1e-5
"""Those of SDML and SCML, the defaults of both packages."""
FASTER, LEANER = 5, 4
"""What is wanted: so many times faster, with so many times less memory."""

# method, peer, data, rows, pairs (or points in a chunklet), max_iter of the peer
CASES = [
    ("ITML", "metric-learn", "digits", 1797, 1000, 1000),
    ("ITML", "metric-learn", "letter", 20000, 2000, 1000),
    ("ITML", "metric-learn", "segmentation", 2310, 980, 1000),
    ("ITML", "metric-learn", "isolet", 6238, 500, 1000),
    ("LSML", "metric-learn", "digits", 1797, 1000, 1000),
    ("LSML", "metric-learn", "letter", 20000, 2000, 1000),
    ("LSML", "metric-learn", "segmentation", 2310, 1000, 1000),
    ("LSML", "metric-learn", "isolet", 6238, 500, 1000),
    ("SDML", "metric-learn", "digits", 1797, 1000, 100),
    ("SDML", "metric-learn", "letter", 20000, 2000, 100),
    ("SDML", "metric-learn", "segmentation", 2310, 1000, 100),
    ("SDML", "metric-learn", "isolet", 6238, 500, 100),
    ("SCML", "metric-learn", "digits", 900, 27000, 10000),
    ("SCML", "metric-learn", "letter", 2000, 60000, 10000),
    ("SCML", "metric-learn", "segmentation", 2310, 69300, 10000),
    ("MLKR", "metric-learn", "digits", 500, 0, 30),
    ("MLKR", "metric-learn", "letter", 1000, 0, 100),
    ("MLKR", "metric-learn", "segmentation", 1000, 0, 100),
    ("LFDA", "metric-learn", "digits", 1797, 0, 0),
    ("LFDA", "metric-learn", "letter", 20000, 0, 0),
    ("LFDA", "metric-learn", "segmentation", 2310, 0, 0),
    ("LFDA", "metric-learn", "isolet", 6238, 0, 0),
    ("MMC", "metric-learn", "digits", 1797, 2000, 100),
    ("MMC", "metric-learn", "letter", 20000, 10000, 100),
    ("MMC", "metric-learn", "segmentation", 2310, 5000, 100),
    ("MMC", "metric-learn", "isolet", 6238, 500, 100),
    ("NCA", "scikit-learn", "digits", 1797, 0, 50),
    ("NCA", "scikit-learn", "letter", 2000, 0, 50),
    ("NCA", "scikit-learn", "segmentation", 2310, 0, 50),
    ("NCA", "scikit-learn", "isolet", 2000, 0, 50),
    ("NCA", "metric-learn", "digits", 1797, 0, 100),
    ("NCA", "metric-learn", "segmentation", 2310, 0, 30),
    ("NCA", "mlpack", "digits", 500, 0, 50),
    ("NCA", "mlpack", "segmentation", 500, 0, 50),
    ("RCA", "metric-learn", "digits", 1797, 3, 0),
    ("RCA", "metric-learn", "letter", 20000, 3, 0),
    ("RCA", "metric-learn", "segmentation", 2310, 3, 0),
    ("RCA", "metric-learn", "isolet", 6238, 3, 0),
    *(
        (method, peer, name, n, 0, 0)
        for method, peer in (("LDA", "scikit-learn"), ("Covariance", "metric-learn"))
        for name, n in (("digits", 1797), ("letter", 20000), ("isolet", 6238))
    ),
]


def points(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn by lot, on principal components: 172 of isolet, else those with any variance."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = datasets.load(name, dtype=np.float64)
        X, y = data.data, data.target
    if name == "segmentation":
        X = X / np.maximum(X.std(axis=0), 1e-12)
    X = X - X.mean(axis=0)
    values, axes = np.linalg.eigh(X.T @ X)
    kept = np.flatnonzero(values > 1e-9 * values[-1])[::-1]
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    X = X[rows] @ axes[:, kept[: 172 if name == "isolet" else None]]
    return X, np.unique(y[rows], return_inverse=True)[1]


def chunklets(y: np.ndarray, size: int) -> np.ndarray:
    """Each class cut into chunklets of so many points; −1 for those left over."""
    numbers, used = np.full(len(y), -1), 0
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        rows = rows[: len(rows) // size * size]
        numbers[rows] = used + np.arange(len(rows)) // size
        used += len(rows) // size
    return numbers


def itml_loss(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """D(A, I) + γ Σ D(ξ, ξ₀): LogDet divergences, a violated bound moved to the distance."""
    A = L.T @ L
    V = given["X"][given["left"]] - given["X"][given["right"]]
    u, low = given["bounds"]
    ratio = ((V @ L.T) ** 2).sum(axis=1) / np.where(given["sign"] > 0, u, low)
    ratio = np.where(given["sign"] * (ratio - 1) > 0, ratio, 1.0)
    slack = (ratio - np.log(ratio) - 1).sum()
    return float(np.trace(A) - np.linalg.slogdet(A)[1] - len(A) + GAMMA * slack)


def lsml_loss(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """D(M, I) + the mean of squared residuals of distances."""
    a, b, c, d = given["quadruplets"]
    Z = given["X"] @ L.T
    near, far = (np.sqrt(((Z[i] - Z[j]) ** 2).sum(axis=1)) for i, j in ((a, b), (c, d)))
    M = L.T @ L
    residual = np.mean(np.maximum(near - far, 0) ** 2)
    return float(np.trace(M) - np.linalg.slogdet(M)[1] - len(M) + residual)


def sdml_loss(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """tr(SM) − log det M + λ Σ_{j≠k} |M_jk|."""
    M = L.T @ L
    V = given["X"][given["left"]] - given["X"][given["right"]]
    S = np.eye(len(M)) + float(given["balance"]) * (V.T * given["sign"]) @ V
    outside = np.abs(M).sum() - np.abs(np.diagonal(M)).sum()
    return float(np.vdot(S, M) - np.linalg.slogdet(M)[1] + SPARSITY * outside)


def scml_loss(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """The mean hinge + β Σ w; directions have unit length, so that Σ w is the trace of M."""
    Z = given["X"] @ L.T
    anchor, positive, negative = given["triplets"]
    near, far = (((Z[anchor] - Z[rows]) ** 2).sum(axis=1) for rows in (positive, negative))
    return float(np.maximum(1 + near - far, 0).mean() + BETA * np.vdot(L, L))


def mmc_objective(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """Σ_D √(vᵀAv), with A scaled to Σ_S vᵀAv = 1."""
    V = given["X"][given["left"]] - given["X"][given["right"]]
    D = ((V @ L.T) ** 2).sum(axis=1)
    similar = given["sign"] > 0
    return float(np.sqrt(D[~similar]).sum() / np.sqrt(D[similar].sum()))


def nca_loss(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """Σ_i (1 − p_i): the expected number of points with a neighbor of another class."""
    Z, y, wrong = given["X"] @ L.T, given["y"], 0.0
    squares = (Z**2).sum(axis=1)
    for start in range(0, len(Z), 500):
        rows = np.arange(start, min(start + 500, len(Z)))
        D = squares[rows, None] + squares - 2 * Z[rows] @ Z.T
        D[np.arange(len(rows)), rows] = np.inf
        P = np.exp(D.min(axis=1, keepdims=True) - D)
        wrong += float(((P * (y[rows, None] != y)).sum(axis=1) / P.sum(axis=1)).sum())
    return wrong


def mlkr_loss(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """Σ (y − ŷ)², each example predicted by the others."""
    Z, y = given["X"] @ L.T, given["y"]
    squares = (Z**2).sum(axis=1)
    D = squares[:, None] + squares - 2 * Z @ Z.T
    np.fill_diagonal(D, np.inf)
    P = np.exp(D.min(axis=1, keepdims=True) - D)
    return float((((P @ y) / P.sum(axis=1) - y) ** 2).sum())


def lfda_objective(L: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """tr((L S_w Lᵀ)⁻¹ L S_b Lᵀ), both scatters by their definitions."""
    X, y = given["X"], given["y"]
    k, n = max(1, min(7, X.shape[1] - 1)), len(X)
    within, between = np.zeros((2, X.shape[1], X.shape[1]))
    total = n * X.T @ X - np.outer(X.sum(axis=0), X.sum(axis=0))
    for label in np.unique(y):
        rows = X[y == label]
        squares = (rows**2).sum(axis=1)
        D = np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0)
        np.fill_diagonal(D, 0)
        sigma = np.sqrt(np.partition(D, min(k, len(rows) - 1), axis=1)[:, min(k, len(rows) - 1)])
        A = np.exp(-D / np.maximum(np.outer(sigma, sigma), 1e-290))
        G = rows.T @ (rows * A.sum(axis=1)[:, None]) - rows.T @ A @ rows
        one = len(rows) * rows.T @ rows - np.outer(rows.sum(axis=0), rows.sum(axis=0))
        within += G / len(rows)
        between += G * (1 / n - 1 / len(rows)) - one / n
    between += total / n
    return float(np.trace(np.linalg.solve(L @ within @ L.T, L @ between @ L.T)))


def difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """The largest between two matrices M = LᵀL, relative to the largest value."""
    A, B = theirs.T @ theirs, ours.T @ ours
    return float(np.abs(A - B).max() / np.abs(A).max())


TOLERANCES = {"SDML": 1e-4}
"""What the peer leaves undone of its own accord, where it asks for a gap and not for a step."""

OBJECTIVES = {
    "ITML": itml_loss,
    "LSML": lsml_loss,
    "SDML": sdml_loss,
    "SCML": scml_loss,
    "MMC": mmc_objective,
    "MLKR": mlkr_loss,
    "LFDA": lfda_objective,
    "NCA": nca_loss,
}
LARGER = ("MMC", "LFDA")
"""Whose objective is maximized."""
CLOSED = ("RCA", "LFDA", "LDA", "Covariance")
SAME = ("RCA", "LDA", "Covariance")
"""Formulas that leave nothing open: what is compared is the matrix, and who is at least as fast."""


def problem(method: str, name: str, n: int, size: int) -> dict[str, np.ndarray]:
    """What both are told."""
    X, y = points(name, n)
    if method == "MLKR":
        # A column is predicted from the others: the leading one, which varies most.
        X, y = X[:, 1:], X[:, 0]
    few = size if method in ("ITML", "MMC", "SDML") else 10
    classes = y if method != "MLKR" else y > np.median(y)
    pairs = Pairs.from_labels(X, classes, few, random_state=0)
    V = X[pairs.left] - X[pairs.right]
    more: dict[str, np.ndarray] = {}
    if method == "LSML":
        q = Quadruplets.from_labels(X, y, size, random_state=0)
        more["quadruplets"] = np.stack([q.a, q.b, q.c, q.d])
    elif method == "SDML":
        # A balance for which the problem has a solution: with its default metric-learn raises.
        more["balance"] = np.array(SDML(tol=1e9).fit(pairs).balance_)
    elif method == "SCML":
        t = Triplets.from_neighbors(X, y, size, random_state=0)
        more["triplets"] = np.stack([t.anchor, t.positive, t.negative])
        more["basis"] = local_discriminants(X, y, 20 * X.shape[1], np.random.RandomState(0))
    return more | {
        "X": X,
        "y": y,
        "left": pairs.left,
        "right": pairs.right,
        "sign": pairs.y.astype(int),
        "bounds": np.percentile((V**2).sum(axis=1), (5, 95)),
        "gamma": np.array(GAMMA),
        "chunklets": chunklets(y, size) if method == "RCA" else np.zeros(0, int),
    }


def ran(
    python: Path, package: str, method: str, given: dict[str, np.ndarray], **more: object
) -> dict[str, np.ndarray]:
    """What the runner says, with one thread."""
    with tempfile.TemporaryDirectory() as folder:
        source, destination = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, **given, **more)
        command = [str(python), str(RUNNER), package, method, str(source), str(destination)]
        env = {**os.environ, **dict.fromkeys(THREADS, "1")}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=LONGEST
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"ended with {done.returncode}")
        return dict(np.load(destination))


def compared(method: str, theirs: dict, ours: dict, given: dict) -> tuple[str, str, bool]:
    """Both objectives, as text, and whether ours is equal or better, up to rounding."""
    if method in SAME:
        apart = difference(theirs["components"], ours["components"])
        return "", f"{apart:.0e} apart", apart < 1e-8
    a, b = (OBJECTIVES[method](side["components"], given) for side in (theirs, ours))
    most = a * (1 + 1e-9) + TOLERANCES.get(method, 0.0)
    better = b >= a * (1 - 1e-9) if method in LARGER else b <= most
    return f"{a:.6g}", f"{b:.6g}", better


def run(cases: list[tuple] | None = None) -> list[dict[str, object]]:
    """Seconds of CPU, peak MiB, objectives and their ratios."""
    python = peers.environment()
    lacking = {} if python is None else peers.lacking(python)
    for name, why in lacking.items():
        print(f"{peers.OPTIONAL[name]} is left out, because it does not install: {why}")
    rows = []
    for method, peer, name, n, size, limit in cases or CASES:
        if peer != "scikit-learn" and (python is None or peer in lacking):
            continue
        try:
            given = problem(method, name, n, size)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        what = {
            "ITML": f", {size} pairs",
            "MMC": f", {size} pairs",
            "SDML": f", {size} pairs",
            "LSML": f", {size} quadruplets",
            "SCML": f", {size} triplets",
            "RCA": f", chunklets of {size}",
        }
        told = f"{name} {n} × {given['X'].shape[1]}{what.get(method, '')}"
        row: dict[str, object] = {"method": method, "peer": peer, "data": told}
        where = Path(sys.executable) if peer == "scikit-learn" else python
        try:
            repeats = 5 if method in CLOSED else 1
            theirs = ran(where, peer, method, given, max_iter=limit, repeats=repeats)
            aim = OBJECTIVES[method](theirs["components"], given) if method not in SAME else np.nan
            aim += TOLERANCES.get(method, 0.0)
            ours = ran(Path(sys.executable), "samewise", method, given, aim=aim, repeats=5)
        except subprocess.TimeoutExpired:
            rows.append({**row, "missed": f"given up after {LONGEST} s"})
            continue
        except RuntimeError as failed:
            rows.append({**row, "missed": f"failed: {failed}"})
            continue
        a, b, better = compared(method, theirs, ours, given)
        faster, leaner = theirs["cpu"] / ours["cpu"], theirs["mib"] / max(ours["mib"], 1e-9)
        missed = [
            text
            for text, met in (
                ("speed", faster >= (1 if method in SAME else FASTER)),
                ("memory", leaner >= (1 if method in SAME else LEANER)),
                ("objective", better),
            )
            if not met
        ]
        rows.append(
            {
                **row,
                "peer objective": a,
                "samewise": b,
                "finished": str(theirs["finished"]),
                "peer CPU s": f"{theirs['cpu']:.3g}",
                "CPU s": f"{ours['cpu']:.3g}",
                "to the end": f"{ours['whole']:.3g}",
                "times faster": f"{faster:.1f}",
                "by the clock": f"{theirs['seconds'] / ours['seconds']:.1f}",
                "peer MiB": f"{theirs['mib']:.1f}",
                "MiB": f"{ours['mib']:.1f}",
                "times less": f"{leaner:.1f}",
                "missed": ", ".join(missed),
            }
        )
        print(f"{method}, {peer}, {told}: {faster:.1f} times", file=sys.stderr, flush=True)
    return rows


def run_closed() -> list[dict[str, object]]:
    """Closed forms alone."""
    return run([case for case in CASES if case[0] in SAME])
