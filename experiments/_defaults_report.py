"""The tables of `defaults`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._common import markdown, write_csv
from experiments._defaults_data import DEVELOPMENT
from samewise.catalog import LEARNERS
from samewise.scores import s_test

LEVEL = 0.05
TABLES = ("errors", "marks")
BASELINES = ("Euclidean", "Cosine")
RECORD = {entry.name for entry in LEARNERS if entry.record}


def write(
    out: Path,
    names: Sequence[str],
    answers: Sequence[dict[str, Any]],
    chosen: Sequence[dict[str, Any]],
    thresholds: Sequence[dict[str, float]],
) -> None:
    """Errors, counts, what was tried, thresholds, and the summary."""
    errors = [_errors(name, found) for name, found in zip(names, answers, strict=True)]
    write_csv(out / "errors.csv", errors)
    marks = {name: _marks(found) for name, found in zip(names, answers, strict=True)}
    write_csv(out / "marks.csv", [{"set": name, **row} for name, row in marks.items()])
    counts = _counts(errors, marks)
    write_csv(out / "counts.csv", counts)
    judged = [{"set": name, **row} for name, row in zip(names, thresholds, strict=True)]
    write_csv(out / "verification.csv", judged)
    tried = _tried(chosen)
    write_csv(out / "choice.csv", tried)
    _summary(out, errors, marks, counts, tried, judged)


def write_again(
    out: Path, names: Sequence[str], answers: Sequence[dict[str, Any]], learners: Sequence[str]
) -> None:
    """The tables with the columns of a few learners anew, or added in the order of `learners`."""
    errors, marks = ({row["set"]: row for row in _read(out / f"{t}.csv")} for t in TABLES)
    for name, found in zip(names, answers, strict=True):
        errors[name] |= _errors(name, found)
        marks[name] |= _marks(found)
    rows: list[dict[str, Any]] = [
        {"set": name, "chosen on": errors[name]["chosen on"]}
        | {learner: float(errors[name][learner]) for learner in learners}
        for name in names
    ]
    signs = {name: {learner: marks[name][learner] for learner in learners} for name in names}
    write_csv(out / "errors.csv", rows)
    write_csv(out / "marks.csv", [{"set": name, **row} for name, row in signs.items()])
    counts = _counts(rows, signs)
    write_csv(out / "counts.csv", counts)
    tried, judged = (_numbers(_read(out / f"{t}.csv")) for t in ("choice", "verification"))
    _summary(out, rows, signs, counts, tried, judged)


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as they were written: the first column is a text, counts are integers."""
    return [
        {
            key: text if n == 0 else float(text) if "." in text else int(text)
            for n, (key, text) in enumerate(row.items())
        }
        for row in rows
    ]


def _errors(name: str, found: dict[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {"set": name, "chosen on": "yes" if name in DEVELOPMENT else ""}
    return rows | {learner: 100 * float(np.mean(~right)) for learner, right in found.items()}


def _marks(found: dict[str, Any]) -> dict[str, str]:
    """How each compares with the better baseline: "+", "-" or nothing."""
    best = max((found[name] for name in BASELINES), key=np.mean)
    marks = {}
    for learner, right in found.items():
        test = s_test(right, best)
        sure = test.p_value <= LEVEL
        marks[learner] = ("+" if test.n_better > test.n_worse else "-") if sure else ""
    return marks


def _counts(errors: Sequence[dict[str, Any]], marks: dict[str, dict[str, str]]) -> list[dict]:
    rows = []
    others = [name for name in marks if name not in DEVELOPMENT]
    for learner in next(iter(marks.values())):
        every, unseen = ([marks[name][learner] for name in some] for some in (list(marks), others))
        rows.append(
            {
                "learner": learner,
                "mean error": float(np.mean([row[learner] for row in errors])),
                "better": every.count("+"),
                "no difference": every.count(""),
                "worse": every.count("-"),
                "better, other sets": unseen.count("+"),
                "worse, other sets": unseen.count("-"),
                "at most one in ten": "yes" if 10 * every.count("-") <= len(every) else "no",
                "has a record": "yes" if learner in RECORD else "",
            }
        )
    return rows


def _tried(chosen: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each choice the mean error over the development sets, and its counts."""
    marks = [_marks(found) for found in chosen]
    return [
        {
            "choice": choice,
            "mean error": float(np.mean([100 * np.mean(~found[choice]) for found in chosen])),
            "better": [row[choice] for row in marks].count("+"),
            "worse": [row[choice] for row in marks].count("-"),
        }
        for choice in chosen[0]
    ]


def _summary(
    out: Path,
    errors: Sequence[dict[str, Any]],
    marks: dict[str, dict[str, str]],
    counts: Sequence[dict[str, Any]],
    tried: Sequence[dict[str, Any]],
    judged: Sequence[dict[str, Any]],
) -> None:
    learners = list(next(iter(marks.values())))
    table = [
        {
            "set": f"{row['set']}{' *' if row['chosen on'] else ''}",
            **{name: f"{row[name]:.1f}{marks[row['set']][name]}" for name in learners},
        }
        for row in errors
    ]
    text = f"""# Every learner with its defaults

`python -m experiments defaults`: 3-NN errors in percent on {len(errors)} sets with standardized
features, with the settings of `compare`. What is done, and why, stands at the top of
`experiments/defaults.py`.

## Counts

Against the better of the Euclidean distance and the cosine on each set, by the exact sign test at
5 %. "Other sets" are those that had no part in the choice of defaults. Learners that are worse on
more than one set in ten have a `record` in `samewise.catalog`, and `compare` warns of them.

{markdown(counts, 2)}

## Errors

\\* a set on whose training part defaults were chosen; + and - significantly better and worse.

{markdown(table)}

## What was tried

Two folds of the training parts of the sets with a star: mean error, and on how many of them a
choice is significantly better or worse than the better of Euclidean and cosine. "nearest" is
purpose="neighbors", "random" is purpose="verification".

{markdown(tried, 2)}

## The threshold

Accuracy of `PassiveAggressive` on random pairs of test rows, half of them similar, at `threshold_`
(calibrated on pairs of training rows that were not learned from), recalibrated on pairs of the
other half of the test rows, and at the b that was learned along; and of the Euclidean distance, at
the best threshold for pairs of training rows. {_losses(judged)}

{markdown(judged)}
"""
    (out / "summary.md").write_text(text, encoding="utf-8")


def _losses(judged: Sequence[dict[str, Any]]) -> str:
    """What `threshold_` loses against recalibration, in words."""
    lost = {
        row["set"]: [
            100 * (row[f"{name}, recalibrated"] - row[f"{name}, {own}"])
            for name, own in (("neighbors", "threshold_"), ("Euclidean", "threshold"))
        ]
        for row in judged
    }
    mean = round(float(np.mean([ours for ours, _ in lost.values()])), 2) + 0.0
    most = {name: both for name, both in lost.items() if both[0] > 1}
    text = f"""For purpose="neighbors"
`threshold_` loses {mean:.2f} points against recalibration in the mean"""
    if not most:
        return f"{text}, and nowhere more than one."
    listed = "; ".join(f"{name} {ours:.1f} ({plain:.1f})" for name, (ours, plain) in most.items())
    shortest = min(judged, key=lambda row: row["length"])
    where = f"{shortest['set']}: {shortest['length']:.2f}"
    return f"""{text}, and more than one on {len(most)} sets (in
parentheses what the Euclidean distance loses, for which nothing was learned): {listed}. Sets with
few test rows differ by chance, either way. Test rows are shorter than training rows where PCA has
fitted the latter ("length", by the median), most of all on {where} as long;
then distances that were learned do not keep their threshold."""
