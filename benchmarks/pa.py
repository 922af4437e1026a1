"""PA-I without projection, d = 16 … 1000, against the naive and the careful loop."""

from __future__ import annotations

import numpy as np

from benchmarks.baselines import in_place_pa1, naive_pa1
from benchmarks.data import stream
from benchmarks.timing import gemm_speed, interleaved
from samewise import Pairs, PassiveAggressive

# d: pairs, wanted ratio to the naive loop, prototype's ratio
CASES = {16: (200000, 60, 95), 64: (20000, 15, 20), 256: (4000, 14, 15), 784: (1200, 20, 27)}
C = 0.1


def run() -> list[dict[str, object]]:
    gemm = {np.float64: gemm_speed(np.float64), np.float32: gemm_speed(np.float32)}
    print(f"gemm: {gemm[np.float64] / 1e9:.0f} GF/s float64, {gemm[np.float32] / 1e9:.0f} float32")
    rows = []
    for d, (n, wanted, prototype) in {**CASES, 1000: (1200, None, 40)}.items():
        pairs = stream(n, d)
        pairs32 = Pairs(pairs.X.astype(np.float32), pairs.left, pairs.right, pairs.y)
        learner = PassiveAggressive("pa1", C, psd="end", average="last")
        seconds = interleaved(
            {
                "naive": lambda pairs=pairs: naive_pa1(pairs, C),
                "in place": lambda pairs=pairs: in_place_pa1(pairs, C),
                "samewise": lambda pairs=pairs, learner=learner: learner.fit(pairs),
                "float32": lambda pairs=pairs32: PassiveAggressive(
                    "pa1", C, psd="end", average="last"
                ).fit(pairs),
            },
            repeats=5,
        )
        rate = learner.n_updates_ / n
        assert learner.n_updates_ == naive_pa1(pairs, C)[2], "different updates"
        flops = n * (2 + 2 * rate) * d * d
        rows.append(
            {
                "d": d,
                "update rate": round(rate, 2),
                "pairs/s": round(n / seconds["samewise"]),
                "vs naive": round(seconds["naive"] / seconds["samewise"], 1),
                "wanted": wanted or "",
                "prototype": prototype,
                "vs in place": round(seconds["in place"] / seconds["samewise"], 1),
                "of gemm": f"{flops / seconds['samewise'] / gemm[np.float64]:.0%}",
                "float32 gain": round(seconds["samewise"] / seconds["float32"], 2),
            }
        )
    return rows
