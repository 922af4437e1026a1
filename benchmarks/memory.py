"""Memory: the index arrays of the supervision, the state, and a bounded block."""

from __future__ import annotations

import tracemalloc

import numpy as np

from samewise import Pairs, PassiveAggressive

MIB = 2**20


def run() -> list[dict[str, object]]:
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20_000, 384)).astype(np.float32)
    rows = []
    for n in (20_000, 80_000):
        left, right = rng.randint(0, len(X), (2, n)).astype(np.int32)
        y = rng.choice([-1, 1], n).astype(np.int8)
        PassiveAggressive(psd="end", average="last").fit(
            Pairs(X, left[:1000], right[:1000], y[:1000])
        )
        tracemalloc.start()
        pairs = Pairs(X, left, right, y)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        PassiveAggressive(psd="end", average="last").fit(pairs)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append(
            {
                "pairs": n,
                "X": round(X.nbytes / MIB, 1),
                "index arrays": round((left.nbytes + right.nbytes + y.nbytes) / MIB, 2),
                "Pairs beyond them": round(held / MIB, 2),
                "peak while fitting": round(peak / MIB, 1),
                "state (384×384)": round(384 * 384 * 4 / MIB, 2),
            }
        )
    return rows
