"""Which of the thesis' statements `thesis` confirms, computed from the results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from experiments._thesis_local import REGIONS
from experiments._thesis_looks import settled
from experiments._thesis_paper import ITERATIONS, MARKS, MEANT, MULTICLASS, NEWS
from experiments._thesis_tables import SIMILARITIES, Results, Which, errors, floor

OTHER_FILES = ("German",)
"""Sets whose features are not the thesis' here: they are shown, and do not count."""

YES, PARTLY, NO = "confirmed", "in part", "not confirmed"
Row = dict[str, Any]


def claims(results: Results, curves: Sequence[Row], regions: Sequence[Row] = ()) -> list[Row]:
    """All claims that the sets at hand can speak about."""
    found: list[Row] = []
    found += _cosine_and_euclidean(results)
    for method in ("SiLA", "gCosLA"):
        for rule in ("knn", "sknn"):
            found += _better(
                results, f"{method} is better than the cosine", (method, rule), ("cosine", rule)
            )
    found += _better(results, "gCosLA is better than SiLA", ("gCosLA", "knn"), ("SiLA", "knn"))
    euclidean = ("Euclidean", "knn")
    found += _better(
        results, "gCosLA is better than the Euclidean distance", ("gCosLA", "knn"), euclidean
    )
    for psd in ("", "-PSD"):
        for other in ("RELIEF", "RBS"):
            for rule in ("knn", "sknn"):
                a, b = ("sRBS" + psd, rule), (other + psd, rule)
                found += _better(results, f"sRBS{psd} is far above {other}{psd}", a, b, "≫")
    for rule in ("knn", "sknn"):
        a, b = ("RELIEF-PSD", rule), ("RELIEF", rule)
        found += _better(results, "RELIEF gains by PSD", a, b)
    found += _better(
        results, "SkNN is better than kNN (cosine)", ("cosine", "sknn"), ("cosine", "knn")
    )
    found += _news(results)
    found += _multiclass(results)
    found += _by_cosine(results)
    found += _rapidity(curves)
    found += _regions(regions)
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _row(claim: str, thesis: str, ours: str, verdict: str) -> Row:
    return {"claim": claim, "thesis": thesis, "ours": ours, "verdict": verdict}


def printed_better(a: Which, b: Which, marks: str = "≫>") -> list[str]:
    """Sets on which the thesis has a better than b."""
    turned = marks.translate(str.maketrans("≫>", "≪<"))
    names = dict.fromkeys(name for name, *pair in MARKS if set(pair) == {a, b})
    return [
        name
        for name in names
        if MARKS.get((name, a, b), "=") in marks or MARKS.get((name, b, a), "=") in turned
    ]


def _better(results: Results, claim: str, a: Which, b: Which, marks: str = "≫>") -> list[Row]:
    """Where a is better than b, and where it is the other way round."""
    here = results.having(a, b)
    compared = [n for n in here if (n, a, b) in MARKS or (n, b, a) in MARKS]
    if not compared:
        return []
    theirs = [name for name in printed_better(a, b, marks) if name in compared]
    ours = results.better(a, b, here, marks)
    against = results.better(b, a, here, marks)
    counted = [name for name in theirs if name not in OTHER_FILES]
    both = [name for name in counted if name in ours]
    verdict = YES if len(both) == len(counted) else PARTLY if both else NO
    verdict = (
        f"{verdict}: {len(both)} of {len(counted)}" if counted else "not claimed on these sets"
    )
    if left_out := [name for name in theirs if name in OTHER_FILES]:
        verdict += f", {_listed(left_out)} left out"
    how = "≫" if marks == "≫" else "≫ or >"
    return [
        _row(
            f"{claim}, {_rule(a, b)} ({how})",
            f"{len(theirs)} of {len(compared)}: {_listed(theirs)}",
            f"{len(ours)} of {len(here)}: {_listed(ours)}; the other way round: {_listed(against)}",
            verdict,
        )
    ]


def _rule(a: Which, b: Which) -> str:
    names = {"knn": "kNN", "sknn": "SkNN"}
    return names[a[1]] if a[1] == b[1] else f"{names[a[1]]} and {names[b[1]]}"


def _cosine_and_euclidean(results: Results) -> list[Row]:
    cosine, euclidean = ("cosine", "knn"), ("Euclidean", "knn")
    rows = _better(results, "The cosine is better than the Euclidean distance", cosine, euclidean)
    return rows + _better(
        results, "The Euclidean distance is better than the cosine", euclidean, cosine
    )


def _news(results: Results) -> list[Row]:
    if "News" not in results.having(("SiLA", "knn"), ("SiLA", "sknn")):
        return []
    ours = {which: results.get("News", *which).mean for which in NEWS}
    rows = []
    for rule, name in (("knn", "kNN"), ("sknn", "SkNN")):
        a, b = ("SiLA", rule), ("cosine", rule)
        agree = (NEWS[a] > NEWS[b]) == (ours[a] > ours[b])
        better = "above" if NEWS[a] > NEWS[b] else "below"
        rows.append(
            _row(
                f"News: SiLA is {better} the cosine, {name}",
                f"{NEWS[a]:.3f}, {NEWS[b]:.3f}",
                f"{ours[a]:.3f}, {ours[b]:.3f} ({results.mark('News', a, b)})",
                YES if agree else NO,
            )
        )
    return rows


def _multiclass(results: Results) -> list[Row]:
    """Table 5.21: SiLA and gCosLA against each of the others."""
    rows = []
    for rival in ("SNN", "MCML", "LMNN", "ITML", "SVM"):
        ours: dict[tuple[str, str], int] = {}
        theirs: dict[tuple[str, str], int] = {}
        for name, printed in MULTICLASS.items():
            other = results.get(name, rival, mode="multiclass")
            for method in ("SiLA", "gCosLA"):
                mine = results.get(name, method, mode="multiclass")
                if mine and other:
                    ours[method, name] = _sign(mine.mean - other.mean)
                    theirs[method, name] = _sign(printed[method] - printed[rival])
        if not ours:
            continue
        same = sum(ours[at] == theirs[at] for at in ours)
        verdict = YES if same == len(ours) else PARTLY if 2 * same >= len(ours) else NO
        rows.append(
            _row(
                f"SiLA and gCosLA against {rival}, multiclass kNN",
                _sides(theirs),
                _sides(ours),
                f"{verdict}: {same} of {len(ours)}",
            )
        )
    return rows


def _sign(difference: float) -> int:
    return (difference > 1e-6) - (difference < -1e-6)


def _sides(signs: dict[tuple[str, str], int]) -> str:
    """For example "SiLA above on Wine, below on Iris; gCosLA equal on Wine, Iris"."""
    parts = []
    for method in dict.fromkeys(method for method, _ in signs):
        words = []
        for sign, word in ((1, "above"), (0, "equal"), (-1, "below")):
            names = [name for (m, name), value in signs.items() if (m, value) == (method, sign)]
            if names:
                words.append(f"{word} on {_listed(names)}")
        parts.append(f"{method} {', '.join(words)}")
    return "; ".join(parts)


def _by_cosine(results: Results) -> list[Row]:
    """Whether cosine against Euclidean tells which kind of learning to use."""
    here = errors(results)
    if not here:
        return []
    ours, of_ours = _told({n: {m: 1 - o.mean for m, o in row.items()} for n, row in here.items()})
    theirs, of_theirs = _told({n: {m: MEANT[n][m] for m in row} for n, row in here.items()})
    right = len(ours) == len(of_ours)
    return [
        _row(
            "The better of cosine and Euclidean distance tells whether the best of three "
            "similarities or of eight distances is ahead, multiclass kNN",
            f"{len(theirs)} of {len(of_theirs)}: {_listed(theirs)}",
            f"{len(ours)} of {len(of_ours)}: {_listed(ours)}",
            YES if right else PARTLY if set(ours) & set(theirs) else NO,
        )
    ]


def _told(table: dict[str, dict[str, float]]) -> tuple[list[str], list[str]]:
    """Of a table of errors: the sets for which it holds, and all with a difference."""
    differ = [name for name, row in table.items() if row["cosine"] != row["Euclidean"]]
    right = []
    for name in differ:
        row = table[name]
        similar = min(row[method] for method in SIMILARITIES)
        distant = min(error for method, error in row.items() if method not in SIMILARITIES)
        if (row["cosine"] < row["Euclidean"]) == (similar < distant):
            right.append(name)
    return right, differ


def pace(curves: Sequence[Row]) -> list[Row]:
    """Where SiLA and gCosLA settled, and where they came up to the cosine, by set and k."""
    rows = []
    for name, k in dict.fromkeys((row["set"], row["k"]) for row in curves):
        row: Row = {"set": name, "k": k}
        for method in ("SiLA", "gCosLA"):
            mine = [r for r in curves if (r["set"], r["k"], r["method"]) == (name, k, method)]
            end, last = settled(mine), mine[-1]
            row["cosine"] = last["cosine"]
            row[f"{method}: accuracy"] = last["accuracy"]
            row[f"{method}: settled after"] = end["shown"]
            row[f"{method}: updates"] = end["updates"]
            level = [r["shown"] for r in mine if r["accuracy"] >= r["cosine"] - _little(r)]
            row[f"{method}: at the cosine after"] = level[0] if level else None
        rows.append(row)
    return rows


def _little(row: Row) -> float:
    """One example of the held-out part."""
    return 1.001 * row["one example"]


def _rapidity(curves: Sequence[Row]) -> list[Row]:
    rows = pace(curves)
    if not rows:
        return []
    fewer = [row for row in rows if row["gCosLA: settled after"] < row["SiLA: settled after"]]
    ratios = [row["SiLA: settled after"] / row["gCosLA: settled after"] for row in rows]
    one = {row["set"]: _little(row) for row in curves}
    near = [row for row in rows if abs(row["gCosLA: accuracy"] - row["cosine"]) <= one[row["set"]]]
    never = [row for row in rows if row["SiLA: at the cosine after"] is None]
    verdict = YES if len(fewer) == len(rows) else PARTLY if 2 * len(fewer) > len(rows) else NO
    at_wine = "".join(
        f"; Wine, k = {row['k']}: {row['gCosLA: settled after']:,} pairs, "
        f"{row['SiLA: settled after']:,} examples"
        for row in rows
        if row["set"] == "Wine"
    )
    return [
        _row(
            "gCosLA settles after far fewer iterations than SiLA",
            f"all sets; Wine: fewer than {ITERATIONS['gCosLA']:,}, SiLA more than "
            f"{ITERATIONS['SiLA']:,}",
            f"{len(fewer)} of {len(rows)} cases, by a median factor of {median(ratios):.1f}"
            f"{at_wine}. But gCosLA starts at the cosine, and in {len(near)} of {len(rows)} cases "
            "ends within one example of it; SiLA starts at 0, and in "
            f"{len(never)} does not come up to it",
            verdict,
        )
    ]


def _regions(rows: Sequence[Row]) -> list[Row]:
    """What the thesis hopes for: one matrix for each region."""
    if not rows:
        return []
    parts, gained = [], 0
    for how in REGIONS:
        marks = [row[f"by {how} / one"] for row in rows]
        better, worse = (sum(mark in side for mark in marks) for side in ("≫>", "≪<"))
        gain = sum(row[f"by {how}"] - row["one matrix"] for row in rows) / len(rows)
        gained += better > worse
        parts.append(
            f"by {how}: better in {better} of {len(rows)} cases, worse in {worse}, accuracy "
            f"{gain:+.3f} on average"
        )
    return [
        _row(
            "One matrix for each region is better than one for all (SiLA and gCosLA)",
            "left open (§6.2): promising",
            "; ".join(parts),
            (NO, PARTLY, YES)[gained],
        )
    ]


def what_hurts(results: Results, looks: Sequence[Row]) -> str:
    """Why RBS is below, in a paragraph."""
    lines = []
    for rule, name in (("knn", "kNN"), ("sknn", "SkNN")):
        have = results.having(("cosine", rule), ("RBS", rule), ("sRBS", rule), ("RELIEF", rule))
        if not have:
            continue
        cosine, counts = ("cosine", rule), {}
        for method in ("RELIEF", "RBS", "sRBS"):
            a = (method, rule)
            up = results.better(a, cosine, have)
            down = results.better(cosine, a, have)
            low = [n for n in have if results.get(n, *a).mean <= floor(n) + 0.005]
            counts[method] = (
                f"{method} is better than the plain cosine on {len(up)} ({_listed(up)}), worse on "
                f"{len(down)}, and no better than always answering the larger side (to 0.005) on "
                f"{len(low)}"
            )
        lines.append(f"- {name}, of {len(have)} sets: " + "; ".join(counts.values()) + ".")
    return "\n".join([*lines, *_hubs(looks), *_centered(results)])


def _hubs(looks: Sequence[Row]) -> list[str]:
    if not looks:
        return []
    middle = {
        key: f"{100 * median(row[key] for row in looks):.1f} %" for key in looks[0] if key != "set"
    }
    return [
        f"- Medians of {len(looks)} sets (`looks.csv`): the first singular value has "
        f"{middle['rank one (RBS)']} of ‖A‖² for RBS, {middle['rank one (sRBS)']} for sRBS. With "
        "A ≈ uvᵀ, xᵀAx' ranks the stored examples by v·x' alone, in one order for all x whose u·x "
        "has the same sign. One and the same example is the nearest of "
        f"{middle['popular (RBS)']} of the others under RBS, of {middle['popular (sRBS)']} under "
        f"sRBS, and of {middle['popular (cosine)']} under the cosine.",
        "- The thesis blames negative margins in spite of a large sum of margins. Against the "
        f"neighbors that the cosine finds, {middle['negative, given (RBS)']} of the margins are "
        f"negative under RBS, {middle['negative (cosine)']} under the cosine; against the "
        f"neighbors that each finds itself, {middle['negative (RBS)']} under RBS, "
        f"{middle['negative (sRBS)']} under sRBS.",
    ]


def _centered(results: Results) -> list[str]:
    a, b, plain = ("centered RBS", "knn"), ("RBS", "knn"), ("centered cosine", "knn")
    have = results.having(a, b, plain)
    if not have:
        return []
    up = results.better(a, b, have)
    level = [name for name in have if results.mark(name, a, plain) in "=>≫"]
    return [
        f"- With the mean taken away from the features, RBS is better than before on {len(up)} of "
        f"{len(have)} sets ({_listed(up)}), and not worse than the cosine of the same features on "
        f"{len(level)} ({_listed(level)})."
    ]
