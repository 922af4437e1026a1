"""PA-I with M ⪰ 0 after every step, against an eigendecomposition per step."""

from __future__ import annotations

import copy

import numpy as np

from benchmarks.baselines import eigh_pa1
from benchmarks.data import stream
from benchmarks.timing import interleaved
from samewise import Mahalanobis, PassiveAggressive

# d: pairs to reach a warm state, pairs measured, wanted, prototype
ACTIVE = {64: (2000, 600, 8, "7–10"), 256: (3000, 200, 16, "18–19"), 784: (3000, 60, 15, "13–23")}
REPEATS = 3
LONGER = 10  # the loop with eigh sees only the first tenth of the stream
INSIDE = {256: (600, 200, "205–305"), 784: (128, 200, "257–384")}


def run_active() -> list[dict[str, object]]:
    """Projections needed: M starts at 0 and a warm-up has filled it."""
    rows = []
    for d, (warm, n, wanted, prototype) in ACTIVE.items():
        for power in (0.0, 0.7):
            C = 1.0
            pairs = stream(warm + n, d, power=power)
            before = PassiveAggressive("pa1", C, average="last").fit(pairs[:warm])
            M, b = before.get_mahalanobis_matrix(), before.threshold_
            rest = pairs[warm:]
            out: dict = {}
            # Only the continuation is timed: copies of the warm state are made beforehand.
            copies = iter([copy.deepcopy(before) for _ in range(REPEATS + 1)])

            def ours(copies=copies, rest=rest, out=out):
                out["learner"] = next(copies).partial_fit(rest)

            def theirs(rest=rest, M=M, b=b, out=out, C=C):
                out["ref"] = eigh_pa1(rest, C, M, b)

            seconds = interleaved({"eigh": theirs, "samewise": ours}, REPEATS)
            M_ref, _, updates = out["ref"]
            M_ours = out["learner"].get_mahalanobis_matrix()
            rows.append(
                {
                    "d": d,
                    "spectrum": "flat" if power == 0 else "power law",
                    "updates": updates,
                    "pairs/s": round(n / seconds["samewise"]),
                    "vs eigh per step": round(seconds["eigh"] / seconds["samewise"], 1),
                    "wanted": wanted,
                    "prototype": prototype,
                    "difference": f"{np.abs(M_ours - M_ref).max() / np.abs(M_ref).max():.0e}",
                }
            )
    return rows


def run_inside() -> list[dict[str, object]]:
    """M stays positive definite: it starts at the identity and C is small."""
    rows = []
    for d, (n, wanted, prototype) in INSIDE.items():
        for C in (1e-3, 1e-2):
            pairs = stream(LONGER * n, d)
            short = pairs[:n]
            start = Mahalanobis.identity(d)
            out = {}
            seconds = interleaved(
                {
                    "eigh": lambda p=short, C=C, d=d, out=out: out.update(
                        ref=eigh_pa1(p, C, np.eye(d), 0.0)
                    ),
                    "samewise": lambda p=pairs, C=C, s=start: PassiveAggressive(
                        "pa1", C, init=s, average="last"
                    ).fit(p),
                },
                repeats=3,
            )
            last = PassiveAggressive("pa1", C, init=start, average="last")
            M_ours = last.fit(short).get_mahalanobis_matrix()
            M_ref = out["ref"][0]
            rows.append(
                {
                    "d": d,
                    "C": C,
                    "pairs/s": round(LONGER * n / seconds["samewise"]),
                    "vs eigh per step": round(LONGER * seconds["eigh"] / seconds["samewise"]),
                    "wanted": wanted,
                    "prototype": prototype,
                    "difference": f"{np.abs(M_ours - M_ref).max() / np.abs(M_ref).max():.0e}",
                }
            )
    return rows
