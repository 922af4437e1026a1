"""Each learner that metric-learn has too, both with their defaults: held-out errors and time.

Of each set (at most `MOST` rows, `MOST_NUMBERS` for MLKR) 70 % are learned from, in 15 splits,
after features were scaled to unit variance there; 3-NN decides the held-out rows. metric-learn
learns from labels by its `_Supervised` classes, in the environment of `benchmarks.peers`. Each fit
has one thread; seconds are medians of CPU time, imports and compiling left out. MLKR learns to
predict a number (scaled to unit variance), which 5-NN regression then does: shown is its error, the
part of the variance that is not explained, in percent. Sets without such a number lend a column,
chosen by its name. "refused" is how many of the splits metric-learn raised for, or learned nothing
finite from; errors of both are means over the others, and where there are none, ours alone is
shown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_diabetes,
    load_iris,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from threadpoolctl import threadpool_limits

import samewise
from benchmarks import peers
from benchmarks.comparison import THREADS
from benchmarks.nca_defaults import points, split
from samewise import datasets
from samewise.exceptions import DatasetNotFoundError

RUNNER = Path(__file__).with_name("_supervised_runner.py")
SPLITS, MOST, LONGEST = 15, 500, 900
MOST_NUMBERS = 200
"""For MLKR: metric-learn takes seconds for 300 rows, and minutes for thousands."""
LONGER = 1e-3
"""A smaller `tol` of MLKR, shown beside its default."""
SETS = "iris wine breast_cancer digits glass ionosphere segmentation balance_scale".split()
METHODS = ("LSML", "SDML", "SCML", "LFDA", "RCA")
Split = tuple[np.ndarray, ...]


def column(X: np.ndarray, which: int) -> tuple[np.ndarray, np.ndarray]:
    """A column, to be predicted by the others."""
    return np.delete(X, which, axis=1), X[:, which]


NUMBERS = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman1": lambda: make_friedman1(MOST_NUMBERS, 10, noise=1.0, random_state=0),
    "friedman2": lambda: make_friedman2(MOST_NUMBERS, noise=100.0, random_state=0),
    "friedman3": lambda: make_friedman3(MOST_NUMBERS, noise=0.1, random_state=0),
    "iris, petal width": lambda: column(load_iris().data, 3),
    "wine, alcohol": lambda: column(load_wine().data, 0),
    "glass, refraction": lambda: column(datasets.load("glass", dtype=np.float64).data, 0),
    "bupa, drinks": lambda: column(datasets.load("bupa", dtype=np.float64).data, 5),
}
"""Rows and what is to be predicted."""


def parts(name: str, splits: int) -> list[Split]:
    """The splits of a set."""
    X, y = points(name)
    rows = np.random.default_rng(0).permutation(len(y))[:MOST]
    return [split(X[rows], y[rows], seed) for seed in range(splits)]


def numbers(name: str, splits: int) -> list[Split]:
    """The splits of a set with numbers to predict."""
    X, y = NUMBERS[name]()
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_NUMBERS]
    X, y, found = X[rows], y[rows] / y[rows].std(), []
    for seed in range(splits):
        A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=seed)
        deviations = A.std(axis=0)
        varies = deviations > 0
        A, B = ((Z - A.mean(axis=0))[:, varies] / deviations[varies] for Z in (A, B))
        found.append((A, B, a, b))
    return found


def theirs(python: Path, method: str, given: list[Split]) -> dict[str, np.ndarray]:
    """What metric-learn learns from each split."""
    with tempfile.TemporaryDirectory() as folder:
        source, destination = Path(folder, "in.npz"), Path(folder, "out.npz")
        arrays = {}
        for k, (A, _, a, _) in enumerate(given):
            arrays |= {f"X{k}": A, f"y{k}": a}
        np.savez(source, **arrays)
        command = [str(python), str(RUNNER), method, str(source), str(destination)]
        env = {**os.environ, **dict.fromkeys(THREADS, "1")}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=LONGEST
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return dict(np.load(destination))


def ours(method: str, given: list[Split], **options: object) -> dict[str, np.ndarray]:
    """What samewise learns from each split."""
    found = {}
    cls = getattr(samewise, method)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cls(**options).fit(given[0][0], given[0][2])
        for k, (A, _, a, _) in enumerate(given):
            learner = cls(**options)
            if "random_state" in learner.get_params():
                learner.set_params(random_state=k)
            start = time.process_time()
            learner.fit(A, a)
            found[f"seconds{k}"] = np.array(time.process_time() - start)
            found[f"L{k}"] = learner.components_
    return found


def error(L: np.ndarray | None, part: Split) -> float:
    """Error on held-out rows in percent: of 3-NN, or of 5-NN regression where y are numbers."""
    A, B, a, b = part if L is None else (part[0] @ L.T, part[1] @ L.T, *part[2:])
    near = KNeighborsRegressor(5) if a.dtype.kind == "f" else KNeighborsClassifier(3)
    return 100 * (1 - near.fit(A, a).score(B, b))


def compared(
    method: str, given: list[Split], a: dict[str, np.ndarray], b: dict
) -> dict[str, object]:
    """A row: errors where both learned, the median of seconds, and how many were refused."""
    some = [k for k in range(len(given)) if f"L{k}" in a]
    shown = some or list(range(len(given)))
    mean = {
        "Euclidean": np.mean([error(None, given[k]) for k in shown]),
        "samewise": np.mean([error(b[f"L{k}"], given[k]) for k in shown]),
    }
    seconds = np.median([b[f"seconds{k}"] for k in shown])
    row: dict[str, object] = {"method": method, "Euclidean": f"{mean['Euclidean']:.2f}"}
    row["metric-learn"] = ""
    row["samewise"] = f"{mean['samewise']:.2f}"
    row["refused"] = f"{len(given) - len(some)} of {len(given)}"
    row |= {"metric-learn s": "", "s": f"{seconds:.3g}", "times faster": ""}
    if some:
        peer = np.median([a[f"seconds{k}"] for k in some])
        row["metric-learn"] = f"{np.mean([error(a[f'L{k}'], given[k]) for k in some]):.2f}"
        row |= {"metric-learn s": f"{peer:.3g}", "times faster": f"{peer / seconds:.1f}"}
    return row


def run(
    sets: list[str] | None = None, methods: tuple[str, ...] = METHODS, splits: int = SPLITS
) -> list[dict[str, object]]:
    """A row for each set and method."""
    python = peers.environment()
    if python is None:
        return [{"peers": "not installed"}]
    rows = []
    for name in sets or SETS:
        try:
            given = parts(name, splits)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        for method in methods:
            try:
                a = theirs(python, method, given)
            except (RuntimeError, subprocess.TimeoutExpired) as failed:
                print(f"{method} on {name}: {failed}", file=sys.stderr)
                a = {}
            rows.append({"data": name, **compared(method, given, a, ours(method, given))})
            print(f"{method} on {name}", file=sys.stderr, flush=True)
    return rows


def run_numbers(splits: int = SPLITS) -> list[dict[str, object]]:
    """A row of MLKR for each set with numbers to predict."""
    python = peers.environment()
    if python is None:
        return [{"peers": "not installed"}]
    rows = []
    for name in NUMBERS:
        try:
            given = numbers(name, splits)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        found = compared("MLKR", given, theirs(python, "MLKR", given), ours("MLKR", given))
        longer = compared("MLKR", given, {}, ours("MLKR", given, tol=LONGER))
        rows.append({"data": name, **found, f"tol={LONGER:g}": longer["samewise"]})
        print(f"MLKR on {name}", file=sys.stderr, flush=True)
    return rows
