"""SiLA against a loop in NumPy; eSiLA and gCosLA against an eigendecomposition per step."""

from __future__ import annotations

import copy

import numpy as np

from benchmarks._naive_sila import base_targets, eigh_esila, eigh_gcosla, naive_sila
from benchmarks.data import stream
from benchmarks.timing import interleaved
from samewise.datasets import load
from samewise.exceptions import DatasetNotFoundError
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.online.gcosla import GCosLA

K = 3
NAIVE = 800  # the loops in NumPy see a part of an epoch only
POOLS = (25, 50, 100, 200)
GAMMA, BETA = 0.1, 0.1
# d: pairs to reach a warm state, pairs measured, wanted
COSINES = {50: (2000, 600, None), 200: (3000, 200, 15), 400: (3000, 60, None)}
PROJECTED = {60: 500, 120: 300, 200: 200}  # d: examples
CLASSES = 5
REPEATS = 3


def letter(n: int) -> tuple[np.ndarray, np.ndarray]:
    data = load("letter")
    return data.data[:n].astype(np.float64), np.unique(data.target[:n], return_inverse=True)[1]


def run_epoch() -> list[dict[str, object]]:
    """The third epoch on letter: set-up and compilation are not in it."""
    try:
        X, y = letter(16000)
    except DatasetNotFoundError:
        return []
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    targets = base_targets(unit, y, K)
    A = SiLA(K, n_passes=2, average="last").fit(X, y).metric_.matrix
    seconds = interleaved(
        {
            "sort": lambda: naive_sila(unit, y, targets, np.arange(NAIVE), A, sort=True),
            "partition": lambda: naive_sila(unit, y, targets, np.arange(NAIVE), A, sort=False),
            "two": lambda: SiLA(K, n_passes=2).fit(X, y),
            "four": lambda: SiLA(K, n_passes=4).fit(X, y),
        },
        REPEATS,
    )
    epoch = (seconds["four"] - seconds["two"]) / 2
    longer = len(y) / NAIVE
    return [
        {
            "examples": len(y),
            "seconds an epoch": round(epoch, 2),
            "µs an example": round(1e6 * epoch / len(y), 1),
            "vs NumPy with a sort": round(longer * seconds["sort"] / epoch, 1),
            "wanted": 20,
            "vs NumPy with a partition": round(longer * seconds["partition"] / epoch, 1),
            "first epoch and set-up": round(seconds["two"] - epoch, 2),
        }
    ]


def run_pools() -> list[dict[str, object]]:
    """µs an example with a candidate pool: it grows with the pool and not with n."""
    rows = []
    for pool in POOLS:
        row: dict[str, object] = {"pool": pool}
        for n in (4000, 16000):
            try:
                X, y = letter(n)
            except DatasetNotFoundError:
                return []
            seconds = interleaved(
                {
                    epochs: lambda e=epochs, X=X, y=y, pool=pool: SiLA(
                        K, n_passes=e, impostors=pool
                    ).fit(X, y)
                    for epochs in (1, 6)
                },
                1,
            )
            row[f"n = {n}"] = round(1e6 * (seconds[6] - seconds[1]) / (5 * n), 1)
        rows.append(row)
    return rows


def run_projected() -> list[dict[str, object]]:
    """eSiLA: an epoch from A = 0. Labels are drawn by lot, so that most rounds update."""
    rows = []
    for d, n in PROJECTED.items():
        random = np.random.RandomState(0)
        X, y = random.randn(n, d), np.arange(n) * CLASSES // n
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        targets = base_targets(X, y, K)
        learner = SiLA(K, psd="each", n_passes=1, average="last")
        seconds = interleaved(
            {
                "eigh": lambda X=X, y=y, targets=targets: eigh_esila(X, y, targets),
                "samewise": lambda X=X, y=y, learner=learner: learner.fit(X, y),
            },
            REPEATS,
        )
        expected, updates = eigh_esila(X, y, targets)
        found = learner.metric_.matrix
        rows.append(
            {
                "d": d,
                "examples": n,
                "updates": updates,
                "examples/s": round(n / seconds["samewise"]),
                "vs eigh per step": round(seconds["eigh"] / seconds["samewise"], 1),
                "difference": f"{np.abs(found - expected).max() / np.abs(expected).max():.0e}",
            }
        )
    return rows


def run_cosine() -> list[dict[str, object]]:
    rows = []
    for d, (warm, n, wanted) in COSINES.items():
        pairs = stream(warm + n, d)
        before = GCosLA(GAMMA, BETA, average="last").fit(pairs[:warm])
        A, b = before._online.mover.store.matrix, before._online.mover.b
        rest = pairs[warm:]
        out: dict = {}
        copies = iter([copy.deepcopy(before) for _ in range(REPEATS + 1)])

        def ours(copies=copies, rest=rest, out=out):
            out["learner"] = next(copies).partial_fit(rest)

        def theirs(rest=rest, A=A, b=b, out=out):
            out["reference"] = eigh_gcosla(rest, GAMMA, BETA, A, b)

        seconds = interleaved({"eigh": theirs, "samewise": ours}, REPEATS)
        expected, _, updates = out["reference"]
        found = out["learner"]._online.mover.store.matrix
        rows.append(
            {
                "d": d,
                "pairs": n,
                "updates": updates,
                "pairs/s": round(n / seconds["samewise"]),
                "vs eigh per step": round(seconds["eigh"] / seconds["samewise"], 1),
                "wanted": wanted or "",
                "difference": f"{np.abs(found - expected).max() / np.abs(expected).max():.0e}",
            }
        )
    return rows
