"""The tables of `thesis`, ours beside the printed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from experiments._thesis_data import DIMENSIONS, SETS, examples, n_classes
from experiments._thesis_paper import ACCURACIES, ERRORS, MARKS, MEANT, MULTICLASS
from experiments._thesis_runs import Key, Outcome, key
from samewise.scores import s_test

Which = tuple[str, str]
"""A method and a rule."""
Row = dict[str, Any]

RULES = {"knn": "kNN", "sknn": "SkNN"}
SIMILARITIES = ("cosine", "gCosLA", "SiLA")


class Results:
    """What was measured, by set, method and rule."""

    def __init__(self, outcomes: dict[Key, Outcome]) -> None:
        self.outcomes = outcomes
        self.sets = [name for name in SETS if any(at.name == name for at in outcomes)]
        self._marks: dict[tuple[str, Which, Which], str] = {}

    def get(self, name: str, method: str, rule: str = "knn", mode: str = "binary") -> Any:
        """The outcome, or None."""
        return self.outcomes.get(key(name, method, rule, mode))

    def having(self, *which: Which) -> list[str]:
        """Sets on which all of these were run."""
        return [name for name in self.sets if all(self.get(name, *one) for one in which)]

    def mark(self, name: str, a: Which, b: Which) -> str:
        """How a compares with b by the s-test on single decisions."""
        at = (name, a, b)
        if at not in self._marks:
            one, other = self.get(name, *a), self.get(name, *b)
            self._marks[at] = s_test(one.correct, other.correct, method="thesis").mark
        return self._marks[at]

    def better(self, a: Which, b: Which, among: Sequence[str], marks: str = "≫>") -> list[str]:
        """Of these sets, those on which a is marked as better than b."""
        have = self.having(a, b)
        return [name for name in among if name in have and self.mark(name, a, b) in marks]


def shown(outcome: Outcome, mark: str = "") -> str:
    """Accuracy ± standard deviation, and a mark unless it is "="."""
    return f"{outcome.mean:.3f} ± {outcome.std:.3f} {mark.strip('=')}".strip()


def printed(name: str, which: Which, against: Which | None = None) -> str:
    """What the thesis has."""
    value = ACCURACIES.get((name, *which))
    if value is None:
        return ""
    mark = MARKS.get((name, which, against), "=") if against else ""
    return f"{value:.3f} {mark.strip('=')}".strip()


def floor(name: str) -> float:
    """Mean accuracy of always answering what is more frequent, of one class against the rest."""
    y = examples(name)[1]
    part = np.bincount(y) / len(y)
    return float(np.maximum(part, 1 - part).mean())


def overview(results: Results) -> list[Row]:
    """The sets."""
    rows: list[Row] = []
    for name in results.sets:
        row: Row = {"set": name, "classes": n_classes(name), "folds": SETS[name].n_folds}
        if name == "News":
            # Without reducing all documents again.
            row |= {"examples": SETS[name].drawn, "features": DIMENSIONS}
            rows.append(row | {"smallest class": None, "always the larger side": None})
            continue
        X, y = examples(name)
        row |= {"examples": len(y), "features": X.shape[1]}
        row |= {"smallest class": int(np.bincount(y).min())}
        rows.append(row | {"always the larger side": floor(name)})
    return rows


def accuracies(
    results: Results, methods: Sequence[str], rule: str, beside: Sequence[str] = ()
) -> list[Row]:
    """Accuracies with marks against the first method; then those `beside`, without the thesis."""
    first = (methods[0], rule)
    rows = []
    for name in results.having(*((method, rule) for method in (*methods, *beside))):
        row: Row = {"set": name}
        for method in beside:
            row[method] = shown(results.get(name, method, rule))
        for method in methods:
            which = (method, rule)
            against = None if which == first else first
            mark = results.mark(name, which, first) if against else ""
            row[method] = shown(results.get(name, method, rule), mark)
            row[f"{method}, thesis"] = printed(name, which, against)
        rows.append(row)
    return rows


def family(results: Results, methods: Sequence[str], rule: str) -> list[Row]:
    """The RELIEF family with what it must be seen against: the cosine, and no learning at all."""
    rows = accuracies(results, methods, rule, beside=["cosine"])
    for row in rows:
        name = row["set"]
        row |= {
            f"{method} / cosine": results.mark(name, (method, rule), ("cosine", rule))
            for method in methods
        }
        row["larger side"] = floor(name)
    return rows


def marks(results: Results, compared: Sequence[tuple[Which, Which]]) -> list[Row]:
    """How the one method compares with the other, ours and the thesis'."""
    rows = []
    run = {pair: results.having(*pair) for pair in compared}
    for name in results.sets:
        if not any(name in names for names in run.values()):
            continue
        row: Row = {"set": name}
        for a, b in compared:
            label = f"{label_of(a)} / {label_of(b)}"
            row[label] = results.mark(name, a, b) if name in run[a, b] else ""
            row[f"{label}, thesis"] = MARKS.get((name, a, b), "")
        rows.append(row)
    return rows


def label_of(which: Which) -> str:
    """For example "SkNN-cosine"."""
    return f"{RULES[which[1]]}-{which[0]}"


def rules(results: Results, methods: Sequence[str]) -> list[Row]:
    """kNN beside SkNN (Table 5.25), and the marks of other methods."""
    rows = []
    for name in results.having(*((method, rule) for method in methods[:1] for rule in RULES)):
        knn, sknn = ("cosine", "knn"), ("cosine", "sknn")
        row: Row = {"set": name}
        for which in (knn, sknn):
            row[label_of(which)] = shown(results.get(name, *which))
            row[f"{label_of(which)}, thesis"] = printed(name, which)
        row["kNN / SkNN"] = results.mark(name, knn, sknn)
        row["thesis"] = MARKS.get((name, knn, sknn), "")
        for method in methods[1:]:
            have = name in results.having((method, "knn"), (method, "sknn"))
            row[method] = results.mark(name, (method, "knn"), (method, "sknn")) if have else ""
        rows.append(row)
    return rows


def multiclass(results: Results) -> list[Row]:
    """Table 5.21."""
    rows = []
    for name, values in MULTICLASS.items():
        found = {method: results.get(name, method, mode="multiclass") for method in values}
        if not any(found.values()):
            continue
        row: Row = {"set": name}
        for method, value in values.items():
            row[method] = shown(found[method]) if found[method] else ""
            row[f"{method}, thesis"] = f"{value:.3f}"
        rows.append(row)
    return rows


def errors(results: Results) -> dict[str, dict[str, Outcome]]:
    """Of Tables 5.22 and 5.23: the outcomes of the methods that were run, by set."""
    found = {}
    for name, printed in ERRORS.items():
        row = {method: results.get(name, method, mode="multiclass") for method in printed}
        if row["SiLA"] and row["LMNN"]:
            found[name] = {method: outcome for method, outcome in row.items() if outcome}
    return found


def error_tables(results: Results) -> list[list[Row]]:
    """Tables 5.22 and 5.23: errors in percent, of distances and of similarities."""
    tables = []
    for similar in (False, True):
        rows: list[Row] = []
        for name, found in errors(results).items():
            row: Row = {"set": name}
            for method, value in ERRORS[name].items():
                if (method in SIMILARITIES) == similar:
                    row[method] = _percent(found[method]) if method in found else ""
                    row[f"{method}, thesis"] = f"{value:.1f}"
            rows.append(row)
        tables.append(rows)
    return tables


def _percent(outcome: Outcome) -> str:
    return f"{100 * (1 - outcome.mean):.1f} ± {100 * outcome.std:.1f}"


def ranking(results: Results) -> list[Row]:
    """Table 5.24, for the methods that were run."""
    rows = []
    for name, found in errors(results).items():
        ours = _order({method: 1 - outcome.mean for method, outcome in found.items()})
        theirs = _order({method: MEANT[name][method] for method in found})
        rows.append({"set": name, "ours": ours, "thesis": theirs})
    return rows


def _order(values: dict[str, float]) -> str:
    """From the best to the worst, equal ones with a comma."""
    ranks = rankdata(np.round(list(values.values()), 6), method="min")
    groups = [
        ", ".join(method for method, r in zip(values, ranks, strict=True) if r == rank)
        for rank in np.unique(ranks)
    ]
    return " · ".join(groups)


def variants(results: Results) -> list[Row]:
    """RBS in other forms, with kNN."""
    methods = ("cosine", "RBS", "RBS diagonal", "centered cosine", "centered RBS", "sRBS")
    rows = []
    for name in results.having(*((method, "knn") for method in methods)):
        row: Row = {"set": name, "larger side": floor(name)}
        row |= {method: results.get(name, method).mean for method in methods}
        against = ("centered RBS", "knn"), ("centered cosine", "knn")
        row["centered RBS / centered cosine"] = results.mark(name, *against)
        rows.append(row)
    return rows
