"""The tables of `newsgroups`, from the records of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from experiments._common import Rows
from experiments._news_data import Split
from samewise._typing import Array

DOCUMENTS = "newsgroups"
EUCLIDEAN, COSINE = BASELINES = ("Euclidean (lengths kept)", "cosine (W = I)")
AROMAS = ("d-AROMA", "f-AROMA")
LEARNERS = ("OASIS", *AROMAS)
OF_PAIRS = ("ITML", "LEGO")
METHODS = (*BASELINES, *LEARNERS, *OF_PAIRS)
C, R, SMALL_R = 0.1, 1.0, 0.01
"""C of OASIS; r of AROMA in Figure 4, left, and in Figure 3 and Figure 4, middle."""
LARGE_C = 1.0
"""Not the paper's."""
GAMMA, ETA = 1.0, 1.0
"""γ of ITML and η of LEGO."""

AT_TOP = (1, 10, 50)


def usual(name: str, method: str) -> float | None:
    """C, r, γ or η of the figures' left panels."""
    if method in BASELINES:
        return None
    if method in OF_PAIRS:
        return GAMMA if method == "ITML" else ETA
    if method == "OASIS":
        return C
    return R if name == DOCUMENTS else SMALL_R


class Results:
    """The records of all runs, looked up by what was run."""

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        self.records = sorted(records, key=_order)
        self.names = list(dict.fromkeys(record["set"] for record in self.records))

    def each(self, name: str, method: str, value: float | None, n: int, what: int | str) -> Array:
        """Precision at `what`, or "map", after n triplets or pairs: one per split, in order."""
        return np.array(
            [
                record["map"] if what == "map" else record["precision"][int(what) - 1]
                for record in self.records
                if _run(record) == (name, method, value) and record["seen"] == n
            ]
        )

    def stops(self, name: str, method: str, value: float | None) -> list[int]:
        """Triplets or pairs after which this learner was scored, ascending."""
        runs = (record for record in self.records if _run(record) == (name, method, value))
        return sorted({record["seen"] for record in runs})

    def values(self, name: str, method: str) -> list[float]:
        """The values of C, r, γ or η that were tried."""
        return sorted({r["value"] for r in self.records if _run(r)[:2] == (name, method)})

    def curve(
        self, name: str, method: str, value: float | None, what: int | str
    ) -> dict[int, float]:
        """Mean at each stop over the first splits: those that were scored along the way."""
        n_splits = self.n_first(name)
        runs = {n: self.each(name, method, value, n, what) for n in self.stops(name, method, value)}
        return {n: run[:n_splits].mean() for n, run in runs.items()}

    def n_first(self, name: str) -> int:
        """Splits on which learners were scored along the way, and several r were tried."""
        least = self.values(name, "f-AROMA")[0]
        return len(self.each(name, "f-AROMA", least, self.n_for_r(name), 1))

    def n_for_r(self, name: str) -> int:
        """Triplets after which the values of r and C are compared."""
        # The least r was run for nothing else.
        return self.stops(name, "f-AROMA", self.values(name, "f-AROMA")[0])[-1]

    def end(self, name: str, method: str = "f-AROMA") -> int:
        """Triplets that every learner of triplets was shown, or pairs that one of pairs was."""
        method = method if method in OF_PAIRS else "f-AROMA"
        return max(self.stops(name, method, usual(name, method)))

    def finals(self, name: str, method: str, what: int | str) -> Array:
        """Per split, of the figures' left panels."""
        n = 0 if method in BASELINES else self.end(name, method)
        return self.each(name, method, usual(name, method), n, what)


def _run(record: dict[str, Any]) -> tuple[str, str, float | None]:
    return record["set"], record["method"], record["value"]


def _order(record: dict[str, Any]) -> tuple[Any, ...]:
    sets = (DOCUMENTS, "caltech101_bow", "caltech10_surf")
    return (
        sets.index(record["set"]),
        METHODS.index(record["method"]),
        record["value"] or 0,
        record["split"],
        record["seen"],
    )


def split_rows(splits: Sequence[Split]) -> Rows:
    """What was split how."""
    return [
        {
            "set": split.name,
            "split": split.number,
            "train": split.train[0].shape[0],
            "test": split.test[0].shape[0],
            "left_out_train": split.dropped[0],
            "left_out_test": split.dropped[1],
            "features": split.train[0].shape[1],
            "classes": len(np.unique(split.train[1])),
            "median_features_per_test_row": float(np.median(np.diff(split.test[0].indptr))),
        }
        for split in splits
    ]


def record_rows(results: Results, *, of_pairs: bool = False) -> Rows:
    """Every record, of learners of triplets and of no learning, or of learners of pairs."""
    value, seen = ("γ or η", "pairs") if of_pairs else ("r or C", "triplets")
    return [
        {key: record[key] for key in ("set", "split", "method")}
        | {value: shown(record["value"]), seen: record["seen"], "updates": record["updates"]}
        | {f"precision@{k}": record["precision"][k - 1] for k in AT_TOP}
        | {"mAP": record["map"]}
        for record in results.records
        if (record["method"] in OF_PAIRS) == of_pairs
    ]


def final_rows(results: Results, name: str) -> Rows:
    """Precision at 1, 10 and 50 and mAP of all that came to the end: mean ± sd over the splits."""
    runs = [(method, None, 0) for method in BASELINES]
    runs += [(m, v, results.end(name)) for m in LEARNERS for v in results.values(name, m)]
    rows = []
    for method, value, n in runs:
        splits = len(results.each(name, method, value, n, 1))
        if splits:
            row = {"method": method, "r or C": shown(value), "splits": splits}
            rows.append(row | _ends(results, name, method, value, n))
    return rows


def pair_rows(results: Results, name: str) -> Rows:
    """The same of the learners of pairs, which were shown numbers of pairs of their own."""
    rows = []
    for method in OF_PAIRS:
        value, n = usual(name, method), results.end(name, method)
        splits = len(results.each(name, method, value, n, 1))
        row = {"method": method, "γ or η": shown(value), "pairs": n, "splits": splits}
        rows.append(row | _ends(results, name, method, value, n))
    return rows


def _ends(results: Results, name: str, method: str, value: float | None, n: int) -> dict[str, str]:
    return {
        "mAP" if what == "map" else f"precision@{what}": _mean_and_sd(
            results.each(name, method, value, n, what)
        )
        for what in (*AT_TOP, "map")
    }


def _mean_and_sd(values: Array) -> str:
    sd = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{sd}"


def shown(value: float | None) -> str:
    """C, r, γ or η."""
    return "" if value is None else f"{value:g}"


def precision_rows(results: Results) -> Rows:
    """Left panels: precision at each k, mean over the splits."""
    n_ks = len(results.records[0]["precision"])
    return [
        {"set": name, "k": k} | {m: results.finals(name, m, k).mean() for m in METHODS}
        for name in results.names
        for k in range(1, n_ks + 1)
    ]


def learning_rows(results: Results) -> Rows:
    """Middle panels: precision at 10 and mAP as triplets are seen, mean over the first splits."""
    rows = []
    for name, method in product(results.names, LEARNERS):
        for value in results.values(name, method):
            about = {"set": name, "method": method, "r or C": shown(value)}
            precisions, maps = (results.curve(name, method, value, w) for w in (10, "map"))
            if len(precisions) > 1:
                rows += [
                    about | {"triplets": n, "precision@10": p, "mAP": maps[n]}
                    for n, p in precisions.items()
                ]
    return rows


def pair_learning_rows(results: Results) -> Rows:
    """Precision at 10 and mAP of LEGO as pairs are seen, mean over the first splits."""
    rows = []
    for name in results.names:
        precisions, maps = (results.curve(name, "LEGO", ETA, what) for what in (10, "map"))
        about = {"set": name, "method": "LEGO", "η": shown(ETA)}
        rows += [
            about | {"pairs": n, "precision@10": p, "mAP": maps[n]} for n, p in precisions.items()
        ]
    return rows


def choice_rows(results: Results) -> Rows:
    """Right panels: precision at 10 and mAP for each r and each C, mean over the first splits."""
    rows = []
    for name, method in product(results.names, LEARNERS):
        n = results.n_for_r(name)
        for value in results.values(name, method):
            about = {"set": name, "method": method, "r or C": shown(value), "triplets": n}
            scores = (results.curve(name, method, value, what)[n] for what in (10, "map"))
            rows.append(about | dict(zip(("precision@10", "mAP"), scores, strict=True)))
    return rows


def needed_rows(results: Results) -> Rows:
    """How many triplets OASIS needs for the score that AROMA has after so many.

    Where AROMA scores more than no learning.
    """
    rows = []
    kinds = ((10, "precision@10"), ("map", "mAP"))
    for (what, label), c, r, method in product(kinds, (C, LARGE_C), (SMALL_R, R), AROMAS):
        oasis = results.curve(DOCUMENTS, "OASIS", c, what)
        start = results.curve(DOCUMENTS, COSINE, None, what)[0]
        about = {"score": label, "C": shown(c), "method": method, "r": shown(r)}
        for n, score in results.curve(DOCUMENTS, method, r, what).items():
            if score > start:
                bound, needs = triplets_needed(oasis, score)
                found = {"bound": bound, "OASIS needs": round(needs), "times": needs / n}
                rows.append(about | {"triplets": n, "value": score} | found)
    return rows


def triplets_needed(curve: dict[int, float], wanted: float) -> tuple[str, float]:
    """Where a learning curve first reaches a score, by interpolation in log(triplets).

    With "≤" if it is reached at the first stop, with ">" and the last stop if not at all.
    """
    before = None
    for n, score in curve.items():
        if score >= wanted:
            if before is None:
                return "≤", float(n)
            part = (wanted - curve[before]) / (score - curve[before])
            return "", float(before * (n / before) ** part)
        before = n
    return ">", float(max(curve))
