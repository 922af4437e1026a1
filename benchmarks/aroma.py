"""f-AROMA against the naive loop and one with in-place updates; d-AROMA against flat NumPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.baselines import flat_diagonal, in_place_factored, naive_factored
from benchmarks.oasis import stream
from benchmarks.timing import gemm_speed, interleaved
from samewise import OASIS, DiagonalAROMA, FactoredAROMA, Triplets
from samewise.exceptions import DatasetNotFoundError

R = 1.0
# d: triplets, wanted and prototype's ratio to the naive loop, and to the in-place loop
FACTORED = {
    16: (20000, 60, 87, None, None),
    64: (6000, None, 16, None, 6),
    256: (1500, None, 10, None, 2.6),
    784: (600, 18, 24, 5, 5.7),
}


def run_factored() -> list[dict[str, object]]:
    gemm = gemm_speed(np.float64)
    rows = []
    for d, (n, wanted, prototype, wanted_in_place, prototype_in_place) in FACTORED.items():
        triplets = stream(np.random.RandomState(0).randn(3000, d) / np.sqrt(d), n)
        learner = FactoredAROMA(R)
        seconds = interleaved(
            {
                "naive": lambda t=triplets: naive_factored(t, R),
                "in place": lambda t=triplets: in_place_factored(t, R),
                "samewise": lambda t=triplets, learner=learner: learner.fit(t),
            },
            repeats=5 if d < 500 else 3,
        )
        rate = learner.n_updates_ / n
        assert learner.n_updates_ == naive_factored(triplets, R)[1], "different updates"
        flops = n * 6 * (1 + rate) * d * d
        rows.append(
            {
                "d": d,
                "update rate": round(rate, 2),
                "triplets/s": round(n / seconds["samewise"]),
                "vs naive": round(seconds["naive"] / seconds["samewise"], 1),
                "wanted": wanted or "",
                "prototype": prototype,
                "vs in place": round(seconds["in place"] / seconds["samewise"], 1),
                "wanted ": wanted_in_place or "",
                "prototype ": prototype_in_place or "",
                "of gemm": f"{flops / seconds['samewise'] / gemm:.0%}",
            }
        )
    return rows


def run_diagonal() -> list[dict[str, object]]:
    rows = []
    for nnz, prototype in ((27, 5.6), (60, 4.1)):
        X = sp.random_array((3000, 1000), density=nnz / 1000, format="csr", rng=0)
        triplets = stream(sp.csr_array(X), 8000)
        learner = DiagonalAROMA(R)
        seconds = interleaved(
            {
                "flat": lambda t=triplets: flat_diagonal(t, R),
                "samewise": lambda t=triplets, learner=learner: learner.fit(t),
            },
            repeats=5,
        )
        assert learner.n_updates_ == flat_diagonal(triplets, R)[1], "different updates"
        rows.append(
            {
                "non-zeros": nnz,
                "update rate": round(learner.n_updates_ / len(triplets), 2),
                "triplets/s": round(len(triplets) / seconds["samewise"]),
                "vs flat NumPy": round(seconds["flat"] / seconds["samewise"], 1),
                "wanted": 4.5,
                "prototype": prototype,
            }
        )
    return rows


def run_newsgroups() -> list[dict[str, object]]:
    """500 000 triplets of 20 Newsgroups, the task of `python -m experiments newsgroups`."""
    from experiments._news_data import documents

    try:
        X, y = next(documents(1, 1000, 1)).train
    except DatasetNotFoundError as error:
        return [{"skipped": str(error).splitlines()[0]}]
    rows = []
    for dtype in (np.float64, np.float32):
        triplets = Triplets.from_labels(sp.csr_array(X, dtype=dtype), y, 500_000, random_state=0)
        learners = {"OASIS": OASIS(0.1, 1.0), "d-AROMA": DiagonalAROMA(R, 1.0)}
        seconds = interleaved(
            {name: lambda t=triplets, x=learner: x.fit(t) for name, learner in learners.items()},
            repeats=3,
        )
        rows += [
            {
                "learner": name,
                "type": np.dtype(dtype).name,
                "update rate": round(learner.n_updates_ / len(triplets), 2),
                "seconds": round(seconds[name], 2),
                "wanted": {"OASIS": 1.5, "d-AROMA": 3.5}[name],
            }
            for name, learner in learners.items()
        ]
    return rows
