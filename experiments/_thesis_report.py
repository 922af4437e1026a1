"""Files of `thesis`: accuracies, marks, and the summary."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path
from typing import Any

from experiments import _thesis_tables as tables
from experiments._common import markdown, write_csv
from experiments._thesis_claims import claims, pace, what_hurts
from experiments._thesis_data import SETS
from experiments._thesis_local import FILE as REGIONS
from experiments._thesis_looks import CURVES, FIGURE, LOOKS
from experiments._thesis_paper import ACCURACIES, MARKS
from experiments._thesis_runs import Key, Outcome
from experiments._thesis_tables import Results

FAMILY = ("RELIEF", "RBS", "sRBS")
WITH_PSD = tuple(f"{method}-PSD" for method in FAMILY)
LEARNED = ("SiLA", "gCosLA")
NEAR = 0.025


def write(out: Path, outcomes: dict[Key, Outcome]) -> None:
    """Everything in `out` that is made of results."""
    results = Results(outcomes)
    looks, curves, regions = (_numbers(out / name) for name in (LOOKS, CURVES, REGIONS))
    made = claims(results, curves, regions)
    write_csv(out / "accuracies.csv", _accuracies(results))
    write_csv(out / "marks.csv", _marks(results))
    write_csv(out / "claims.csv", made)
    (out / "summary.md").write_text(
        _summary(results, made, looks, curves, regions), encoding="utf-8"
    )


def _numbers(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, numbers as numbers."""
    with path.open(encoding="utf-8") as file:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _accuracies(results: Results) -> list[dict[str, Any]]:
    rows = []
    for at in sorted(results.outcomes, key=lambda at: (results.sets.index(at.name), at)):
        outcome = results.outcomes[at]
        binary = at.mode == "binary" or results.get(at.name, at.method, at.rule) is outcome
        printed = ACCURACIES.get((at.name, at.method, at.rule)) if binary else None
        row = dict(zip(("set", "method", "rule", "mode"), at, strict=True))
        rows.append(row | {"accuracy": outcome.mean, "std": outcome.std, "thesis": printed})
    return rows


def _marks(results: Results) -> list[dict[str, Any]]:
    """All pairs of methods under one rule, and of rules under one method."""
    rows = []
    for name in results.sets:
        mine = [at for at in results.outcomes if at.name == name]
        which = [
            (at.method, at.rule) for at in mine if results.get(*at[:3]) is results.outcomes[at]
        ]
        for a, b in combinations(sorted(set(which)), 2):
            if a[1] == b[1] or a[0] == b[0]:
                there = MARKS.get((name, a, b))
                turned = MARKS.get((name, b, a), "").translate(str.maketrans("≫><≪", "≪<>≫"))
                row = {"set": name, "a": tables.label_of(a), "b": tables.label_of(b)}
                rows.append(row | {"a / b": results.mark(name, a, b), "thesis": there or turned})
    return rows


def _summary(
    results: Results,
    made: list[dict[str, Any]],
    looks: list[dict[str, Any]],
    curves: list[dict[str, Any]],
    regions: list[dict[str, Any]],
) -> str:
    parts = [
        "# The thesis: similarities from labels",
        "`python -m experiments thesis`. Accuracy ± standard deviation over the folds, and the "
        "thesis' number beside it. A mark after a number compares it with the first method of the "
        "table; columns `a / b` have the mark of a against b. The protocol, and what is not said "
        f"in the thesis, is in `experiments/thesis.py`.{_part(results)}",
        "## What the thesis says, and what is found here",
        markdown(made),
        f"{_baselines(results)} Marks that both have: {_agreement(results)}.",
        "## What helps and what hurts in the RELIEF family",
        "The family against the cosine without learning, and against always answering the larger "
        "side; and what RBS does to neighbors:",
        what_hurts(results, looks),
    ]
    sections: list[tuple[str, list[dict[str, Any]]]] = [
        ("RBS in other forms, kNN", tables.variants(results)),
        ("Neighbors and margins of RBS and sRBS, k = 1 (`looks.csv`)", looks),
        ("The sets", tables.overview(results)),
        ("Table 5.4: cosine and Euclidean distance, kNN", _table_5_4(results)),
    ]
    for number, rule in (("5.5", "knn"), ("5.6", "sknn")):
        title = f"Table {number}: cosine, SiLA and gCosLA, {tables.RULES[rule]}"
        if rule == "knn":
            title += " (News: Table 5.7)"
        sections.append((title, tables.accuracies(results, ("cosine", *LEARNED), rule)))
    distant, similar = tables.error_tables(results)
    pairs = [((a, rule), (b, "knn" if b == "Euclidean" else rule)) for a, b, rule in _COMPARED]
    sections += [
        ("Tables 5.8, 5.9 and 5.10: SiLA, gCosLA and the Euclidean distance", _turned(results)),
        ("Table 5.13: the RELIEF family, kNN", tables.family(results, FAMILY, "knn")),
        ("Table 5.14: the RELIEF family, SkNN", tables.family(results, FAMILY, "sknn")),
        ("Tables 5.15 and 5.20: RBS and sRBS", tables.marks(results, pairs)),
        ("Table 5.16: the RELIEF family with PSD, kNN", tables.family(results, WITH_PSD, "knn")),
        ("Tables 5.17 and 5.19: RELIEF without and with PSD", tables.marks(results, _PSD)),
        ("Table 5.18: the RELIEF family with PSD, SkNN", tables.family(results, WITH_PSD, "sknn")),
        ("Table 5.21: multiclass, kNN", tables.multiclass(results)),
        ("Table 5.22 and part of 5.23: distances, multiclass, kNN, errors in percent", distant),
        ("Table 5.23, the rest: similarities, multiclass, kNN, errors in percent", similar),
        ("Table 5.24: from the best to the worst", tables.ranking(results)),
        ("Table 5.25: kNN and SkNN", tables.rules(results, ("cosine", *LEARNED, "sRBS"))),
        (f"Figure 5.7: where accuracy settles (`{CURVES}`, `{FIGURE}`)", pace(curves)),
        (f"Beside the thesis: one matrix for each region, k = 3 (`{REGIONS}`)", regions),
    ]
    for title, rows in sections:
        if rows:
            parts += [f"## {title}", markdown(rows), *_NOTES.get(title.split(":")[0], ())]
    return "\n\n".join(parts) + "\n"


_COMPARED = [(f"RBS{psd}", f"sRBS{psd}", rule) for psd in ("", "-PSD") for rule in ("knn", "sknn")]
_PSD = [(("RELIEF", rule), ("RELIEF-PSD", rule)) for rule in ("knn", "sknn")]
_NOTES = {
    "Beside the thesis": (
        "Regions are three cells found by k-means, each with its own matrix for the queries in it, "
        "or the classes, each with its own matrix and calibrated (`experiments/_thesis_local.py`). "
        "Marks are against one matrix for all.",
    ),
    "Table 5.4": ("The mark is that of the cosine against the Euclidean distance.",),
    "Table 5.22 and part of 5.23": (
        "The thesis' distances are copied from Wang and Jin, with other splits and k = 4.",
    ),
    "Table 5.23, the rest": (
        "The thesis prints 1.0 ± 0.0 for the cosine and SiLA on Soybean: an accuracy, it seems, in "
        "a table of errors. In Table 5.24 it ranks both first.",
    ),
    "Table 5.25": ("The last columns are the marks of kNN against SkNN for learned metrics.",),
    "Figure 5.7": (
        "Examples (SiLA) or pairs (gCosLA) shown, and updates made, before the accuracy stays "
        "where it is in the end, to one example of the held-out part; and shown before it is for "
        "the first time at that of the cosine or above, to one example.",
    ),
}


def _table_5_4(results: Results) -> list[dict[str, Any]]:
    rows = tables.accuracies(results, ("cosine", "Euclidean"), "knn")
    cosine, euclidean = ("cosine", "knn"), ("Euclidean", "knn")
    for row in rows:
        # The mark goes to the cosine here.
        row["Euclidean"] = tables.shown(results.get(row["set"], *euclidean))
        row["cosine / Euclidean"] = results.mark(row["set"], cosine, euclidean)
        row["thesis"] = MARKS.get((row["set"], cosine, euclidean), "")
        row["Euclidean, thesis"] = tables.printed(row["set"], euclidean)
    return rows


def _turned(results: Results) -> list[dict[str, Any]]:
    first, second = LEARNED
    compared = [((first, rule), (second, rule)) for rule in ("knn", "sknn")]
    return tables.marks(results, [*compared, (("Euclidean", "knn"), (second, "knn"))])


def _part(results: Results) -> str:
    missing = [name for name in SETS if name not in results.sets]
    return f" Not run here: {', '.join(missing)}." if missing else ""


def _baselines(results: Results) -> str:
    """Where nothing is learned, differences are those of data and splits."""
    near, far = 0, []
    for (name, method, rule), value in ACCURACIES.items():
        outcome = results.get(name, method, rule) if name in results.sets else None
        if method not in ("cosine", "Euclidean") or outcome is None:
            continue
        if abs(outcome.mean - value) <= NEAR:
            near += 1
        else:
            label = tables.label_of((method, rule))
            far.append(f"{name} {label} ({outcome.mean:.3f}, thesis {value:.3f})")
    return (
        f"Without learning (cosine and Euclidean distance), {near} of {near + len(far)} accuracies "
        f"are within {NEAR} of the thesis'; the others: {', '.join(far) or 'none'}."
    )


def _agreement(results: Results) -> str:
    """How often the s-test comes to the same, over all marks that the thesis prints."""
    same = opposite = total = 0
    for name, a, b in MARKS:
        if name not in results.having(a, b):
            continue
        ours, theirs = (_side(mark) for mark in (results.mark(name, a, b), MARKS[name, a, b]))
        total += 1
        same += ours == theirs
        opposite += ours * theirs < 0
    return f"{same} of {total} on the same side (better, equal, worse), {opposite} on opposite ones"


def _side(mark: str) -> int:
    return (mark in "≫>") - (mark in "≪<")
