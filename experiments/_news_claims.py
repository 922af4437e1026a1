"""The claims of the AROMA paper beside what we found: text made from the numbers."""

from __future__ import annotations

import numpy as np

from experiments._common import Rows
from experiments._news_tables import (
    AROMAS,
    DOCUMENTS,
    LARGE_C,
    LEARNERS,
    OF_PAIRS,
    SMALL_R,
    C,
    R,
    Results,
    usual,
)
from samewise._typing import Array

FAR = 0.2
"""A gain in precision, as part of the other's, that is called large; the paper's: 0.5 on images."""
SAME = 0.01
"""Precisions this near to each other are called the same."""
STEADY = 0.05
"""The paper's bound on the change over three decades of r."""
TIMES = 10
"""How many times AROMA's triplets OASIS needs, in the paper."""

BETTER = "“significantly better than all other methods” (Figure 3, left)"
SECOND = "“the second best approach” (Figure 3, left)"
YES, NO, ELSEWHERE = "confirmed", "not confirmed", "not in the paper"


def claims(results: Results, needed: Rows, choice: Rows) -> Rows:
    """One row per claim: the paper's words, our numbers, a verdict."""
    paper = "“by large” (Figure 4, left)"
    rows = [above_oasis(results, DOCUMENTS, m, C, paper) for m in AROMAS]
    rows += [above(results, DOCUMENTS, m, other, paper) for other in OF_PAIRS for m in AROMAS]
    rows += [faster(results, r) for r in (SMALL_R, R)]
    rows += [fewer_triplets(needed, m, r, C) for r in (SMALL_R, R) for m in AROMAS]
    rows += [fewer_triplets(needed, m, SMALL_R, C, "mAP") for m in AROMAS]
    rows += [steady(choice, DOCUMENTS, m) for m in AROMAS]
    rows += [preserved(choice, m) for m in AROMAS]
    rows.append(steady_in_C(choice))
    rows += [above_oasis(results, DOCUMENTS, m, LARGE_C, ELSEWHERE) for m in AROMAS]
    rows += [fewer_triplets(needed, m, SMALL_R, LARGE_C) for m in AROMAS]
    for name in results.names:
        rows += [] if name == DOCUMENTS else about_images(results, choice, name)
    return rows


def about_images(results: Results, choice: Rows, name: str) -> Rows:
    """What is said of Figure 3."""
    paper = "22 % → 33 % at k = 1 (Figure 3, left)"
    return [
        *(above_oasis(results, name, m, C, paper) for m in AROMAS),
        *(above(results, name, m, other, BETTER) for other in OF_PAIRS for m in AROMAS),
        *(above(results, name, "OASIS", other, SECOND) for other in OF_PAIRS),
        alike(results, name),
        later(results, name),
        *(steady(choice, name, m) for m in AROMAS),
    ]


def claimed(name: str, claim: str, paper: str, ours: str, verdict: str) -> dict[str, str]:
    where = DOCUMENTS if name == DOCUMENTS else f"{name}, a stand-in"
    return {"set": where, "claim": claim, "paper": paper, "ours": ours, "verdict": verdict}


def above_oasis(results: Results, name: str, method: str, c: float, paper: str) -> dict[str, str]:
    """Is the top of the list far better than that of OASIS?"""
    n = results.end(name)
    found = {
        k: (results.each(name, "OASIS", c, n, k), results.finals(name, method, k)) for k in (1, 10)
    }
    text = "; ".join(f"precision@{k} {_gain(*both)}" for k, both in found.items())
    claim = f"{method} far above OASIS at the top{_unlike(c)}"
    return claimed(name, claim, paper, text, _verdict(*found[1]))


def above(results: Results, name: str, method: str, other: str, paper: str) -> dict[str, str]:
    """Is the top of the list better than that of a learner of pairs, as the paper says?"""
    found = {k: tuple(results.finals(name, m, k) for m in (other, method)) for k in (1, 10)}
    text = "; ".join(f"precision@{k} {_gain(*both)}" for k, both in found.items())
    if paper in (BETTER, SECOND):
        won = all(np.all(mine > theirs) for theirs, mine in found.values())
        return claimed(name, f"{method} above {other} at the top", paper, text, YES if won else NO)
    return claimed(name, f"{method} far above {other} at the top", paper, text, _verdict(*found[1]))


def _unlike(c: float) -> str:
    return "" if c == C else f", OASIS with C = {c:g}"


def _gain(oasis: Array, aroma: Array) -> str:
    a, b = oasis.mean(), aroma.mean()
    wins = int((aroma > oasis).sum())
    return (
        f"{a:.3f} → {b:.3f} ({100 * (b / a - 1):+.1f} %), better on {wins} of {len(oasis)} splits"
    )


def _verdict(oasis: Array, aroma: Array) -> str:
    gain = aroma.mean() / oasis.mean() - 1
    if gain >= FAR:
        return YES
    if np.all(aroma > oasis):
        return f"{NO}: better, but not by far"
    return f"{NO}: better in the mean only" if gain > 0 else f"{NO}: not better"


def faster(results: Results, r: float) -> dict[str, str]:
    """Is f-AROMA ahead of d-AROMA on most of the way, and level with it at the end?"""
    d, f = (results.curve(DOCUMENTS, m, r, 10) for m in AROMAS)
    ahead = [n for n in d if f[n] > d[n]]
    n = max(d)
    text = (
        f"f-AROMA has the higher precision@10 after {len(ahead)} of {len(d)} stops"
        f" ({_listed(ahead)}); after {n} d-AROMA {d[n]:.3f}, f-AROMA {f[n]:.3f}"
    )
    level = "the same" if abs(f[n] - d[n]) <= SAME else "not the same"
    verdict = f"{YES if 2 * len(ahead) > len(d) else NO}; {level} at the end"
    claim = f"r = {r:g}: f-AROMA converges faster than d-AROMA, which reaches it at the end"
    return claimed(DOCUMENTS, claim, "yes, at 500 000 (Figure 4, middle, r = 0.01)", text, verdict)


def _listed(stops: list[int]) -> str:
    return ", ".join(map(str, stops)) or "none"


def fewer_triplets(
    needed: Rows, method: str, r: float, c: float, score: str = "precision@10"
) -> dict[str, str]:
    """How many times AROMA's triplets does OASIS need?"""
    wanted = (score, f"{c:g}", method, f"{r:g}")
    keys = ("score", "C", "method", "r")
    rows = [row for row in needed if tuple(row[key] for key in keys) == wanted]
    text, verdict = f"{method} is never better than no learning", NO
    if rows:
        times = [row["times"] for row in rows]
        median = float(np.median(times))
        each = ", ".join(f"{row['triplets']}: {row['bound']}{row['times']:.1f}×" for row in rows)
        text = f"for what {method} has after {each}"
        verdict = (
            f"{YES if median >= TIMES else NO}: median {median:.1f}×, at most {max(times):.1f}×"
        )
    claim = f"r = {r:g}: OASIS needs 10 times the triplets of {method} for the same {score}"
    where = "Figure 4, middle, r = 0.01" if score == "precision@10" else "“also true” for mAP, §5.2"
    paper = f"10× ({where})" if c == C else ELSEWHERE
    return claimed(DOCUMENTS, claim + _unlike(c), paper, text, verdict)


def steady(choice: Rows, name: str, method: str) -> dict[str, str]:
    """How much does precision@10 change over any three decades of r?"""
    found = _by_value(choice, name, method)
    rs = sorted(found)
    windows = {
        (low, high): _spread([found[r] for r in rs if low <= r <= high])
        for low in rs
        for high in rs
        if np.isclose(high, 1000 * low)
    }
    text = ", ".join(f"r = {r:g}: {value:.3f}" for r, value in found.items())
    text += "; change " + ", ".join(
        f"{100 * spread:.1f} % from {low:g} to {high:g}" for (low, high), spread in windows.items()
    )
    good = [f"{low:g} to {high:g}" for (low, high), spread in windows.items() if spread < STEADY]
    verdict = YES if len(good) == len(windows) else f"only from {', '.join(good)}" if good else NO
    claim = f"{method}: precision@10 changes by less than 5 % over three decades of r"
    return claimed(name, claim, "< 5 % (Figures 3 and 4, right)", text, verdict)


def _by_value(choice: Rows, name: str, method: str) -> dict[float, float]:
    rows = [row for row in choice if (row["set"], row["method"]) == (name, method)]
    return {float(row["r or C"]): row["precision@10"] for row in rows}


def _spread(values: list[float]) -> float:
    return 1 - min(values) / max(values)


def preserved(choice: Rows, method: str) -> dict[str, str]:
    """For which r is AROMA ahead of OASIS?"""
    oasis, found = _by_value(choice, DOCUMENTS, "OASIS")[C], _by_value(choice, DOCUMENTS, method)
    ahead = [f"{r:g}" for r, value in found.items() if value > oasis]
    text = f"OASIS {oasis:.3f}; {method} ahead for r = {', '.join(ahead) or 'none'}"
    verdict = YES if len(ahead) == len(found) else f"for {len(ahead)} of {len(found)} values of r"
    n = choice[0]["triplets"]
    claim = f"{method} ahead of OASIS over a large range of r ({n} triplets)"
    return claimed(DOCUMENTS, claim, "yes (Figure 4, right)", text, verdict)


def steady_in_C(choice: Rows) -> dict[str, str]:
    """Does OASIS mind C?"""
    found = _by_value(choice, DOCUMENTS, "OASIS")
    text = ", ".join(f"C = {c:g}: {value:.3f}" for c, value in found.items())
    near = {c: abs(value / found[C] - 1) for c, value in found.items()}
    good = [f"{c:g}" for c, change in near.items() if change < STEADY]
    verdict = YES if len(good) == len(near) else f"only for C = {', '.join(good)}"
    return claimed(DOCUMENTS, "OASIS is robust to the choice of C", "yes", text, verdict)


def alike(results: Results, name: str) -> dict[str, str]:
    """Are d-AROMA and f-AROMA alike, f-AROMA a little better?"""
    curves = [[results.finals(name, m, k).mean() for k in (1, 10)] for m in AROMAS]
    text = "; ".join(
        f"precision@{k}: d-AROMA {d:.3f}, f-AROMA {f:.3f}"
        for k, d, f in zip((1, 10), *curves, strict=True)
    )
    gaps = [f - d for d, f in zip(*curves, strict=True)]
    near = max(map(abs, gaps)) <= 2 * SAME
    verdict = YES if near and min(gaps) > 0 else "alike, f-AROMA not higher" if near else NO
    claim = "d-AROMA and f-AROMA very similar, f-AROMA slightly higher"
    return claimed(name, claim, "yes (Figure 3, left)", text, verdict)


def later(results: Results, name: str) -> dict[str, str]:
    """Is d-AROMA ahead at first and f-AROMA later, and is the end reached?"""
    oasis, d, f = (results.curve(name, m, usual(name, m), 10) for m in LEARNERS)
    ahead = [n for n in d if f[n] > d[n]]
    stops = sorted(d)
    first, (half, last) = stops[0], stops[-2:]
    text = f"f-AROMA ahead after {_listed(ahead)}; precision@10 from {half} to {last} triplets: "
    text += ", ".join(
        f"{m} {curve[half]:.3f} → {curve[last]:.3f}"
        for m, curve in zip(LEARNERS, (oasis, d, f), strict=True)
    )
    turned = first not in ahead and last in ahead
    claim = "d-AROMA slightly better at first, f-AROMA later; converged after 200 000 to 500 000"
    steady_end = all(abs(curve[last] / curve[half] - 1) < STEADY for curve in (d, f))
    verdict = f"{YES if turned else NO}; {'' if steady_end else 'not '}converged"
    return claimed(name, claim, "yes (Figure 3, middle)", text, verdict)
