"""OASIS against the naive loop (dense) and against flat NumPy gathers (sparse)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.baselines import flat_oasis, naive_oasis
from benchmarks.timing import interleaved
from samewise import OASIS, Triplets

C = 0.1
# d: triplets, wanted ratio to the naive loop, prototype's ratio
DENSE = {16: (60000, None, 96), 64: (20000, None, 23), 256: (3000, None, 10), 784: (1200, 12, 14)}


def stream(X, n: int) -> Triplets:
    rng = np.random.RandomState(0)
    return Triplets.from_labels(X, rng.randint(0, 10, X.shape[0]), n_triplets=n, random_state=0)


def run_dense() -> list[dict[str, object]]:
    A = np.ones((1000, 1000))
    rows = []
    for d, (n, wanted, prototype) in DENSE.items():
        triplets = stream(np.random.RandomState(0).randn(3000, d) / np.sqrt(d), n)
        learner = OASIS(C, 1.0, init="zero")
        seconds = interleaved(
            {
                "naive": lambda t=triplets: naive_oasis(t, C),
                "samewise": lambda t=triplets, learner=learner: learner.fit(t),
                # Beside the others, so that all of them see the same machine.
                "gemm": lambda: A @ A,
            },
            repeats=7,
        )
        rate = learner.n_updates_ / n
        assert learner.n_updates_ == naive_oasis(triplets, C)[1], "different updates"
        gemm = 2.0 * len(A) ** 3 / seconds["gemm"]
        flops = n * (2 + 2 * rate) * d * d
        rows.append(
            {
                "d": d,
                "update rate": round(rate, 2),
                "triplets/s": round(n / seconds["samewise"]),
                "vs naive": round(seconds["naive"] / seconds["samewise"], 1),
                "wanted": wanted or "",
                "prototype": prototype,
                "of gemm": f"{flops / seconds['samewise'] / gemm:.0%}",
            }
        )
    return rows


def run_sparse() -> list[dict[str, object]]:
    rows = []
    for nnz in (27, 60):
        X = sp.random_array((3000, 1000), density=nnz / 1000, format="csr", rng=0)
        triplets = stream(sp.csr_array(X), 8000)
        learner = OASIS(C, 1.0, init="zero")
        seconds = interleaved(
            {
                "flat": lambda t=triplets: flat_oasis(t, C),
                "samewise": lambda t=triplets, learner=learner: learner.fit(t),
            },
            repeats=5,
        )
        assert learner.n_updates_ == flat_oasis(triplets, C)[1], "different updates"
        rows.append(
            {
                "non-zeros": nnz,
                "update rate": round(learner.n_updates_ / len(triplets), 2),
                "triplets/s": round(len(triplets) / seconds["samewise"]),
                "vs flat NumPy": round(seconds["flat"] / seconds["samewise"], 1),
                "wanted": 4.5,
            }
        )
    return rows
