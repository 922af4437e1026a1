"""Tables, the figures made from them, and the summary of `lmnn_table1`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _lmnn_summary
from experiments._common import Rows, plots, save_figure, write_csv
from experiments._lmnn_data import SETS
from experiments._lmnn_paper import SECONDS, TABLE
from experiments._lmnn_records import Records

N_PASSES = 3
"""Passes of the row of Table 1."""

ROWS = {
    "Euclidean": "Euclidean",
    "PCA": "PCA",
    "LDA": "LDA",
    "RCA": "RCA",
    "MCC": "MCC",
    "NCA": "NCA",
    "LMNN": "LMNN",
    "LMNN after LDA": "LMNN after LDA",
    "energy": "energy",
    "energy (printed)": "energy (printed)",
    "passes": f"passes {N_PASSES}",
    "metrics": "metrics",
    "metrics (energy)": "metrics (energy)",
    "SVM": "SVM",
    "active": "active",
    "candidates": "candidates",
    "active metrics": "active metrics",
}
"""The rows of Table 1, and the name of the records of each."""

SMALL_ONLY = ("MCC", "NCA")
"""Run where the paper has them."""

LARGEST = ("mnist", "mnist_sheared", "letters", "20news", "isolet", "yFaces")


def write(out: Path, records: Records) -> None:
    """Everything there is to say about the records, as files in `out`."""
    found = {name: values for name in SETS if (values := records.values(name))}
    table, passes, metrics = table_1(found), figure_6(found), figure_9(found)
    if table:
        write_csv(out / "table1.csv", table)
        write_csv(out / "sets.csv", sets(found))
    for name, rows, draw in (
        ("fig6_passes", passes, draw_passes),
        ("fig9_metrics", metrics, draw_metrics),
    ):
        if rows:
            write_csv(out / f"{name}.csv", rows)
            draw(out / f"{name}.png", rows)
    times = seconds(found, records)
    if times:
        write_csv(out / "times.csv", times)
    figures = {path.stem: _read(path) for path in sorted(out.glob("fig*.csv"))}
    text = _lmnn_summary.text(
        table, sets(found), passes, times, figures, _chosen(found), missing(found)
    )
    (out / "summary.md").write_text(text, encoding="utf-8")


def paper(name: str, row: str) -> float | None:
    """The paper's number, for the second MNIST too."""
    return TABLE.get(row, {}).get("mnist" if name == "mnist_sheared" else name)


def missing(found: dict[str, dict[str, list[Any]]]) -> list[str]:
    """The sets, and rows of Table 1, that have not been run on all splits."""
    out = []
    for name, spec in SETS.items():
        counts = {
            row: len(found.get(name, {}).get(key, ()))
            for row, key in ROWS.items()
            if row not in SMALL_ONLY or paper(name, row) is not None
        }
        lacking = [
            f"{row} ({n} of {spec.n_splits} splits)" if n else row
            for row, n in counts.items()
            if n < spec.n_splits
        ]
        if len(lacking) == len(counts) and not any(counts.values()):
            out.append(name)
        elif lacking:
            out.append(f"{name}: {', '.join(lacking)}")
    return out


def table_1(found: dict[str, dict[str, list[Any]]]) -> Rows:
    """Mean and standard deviation over the splits, beside the paper's number."""
    rows = []
    for name, values in found.items():
        for row, key in ROWS.items():
            ours = np.array(values[key]) if key in values else None
            if ours is None and paper(name, row) is None:
                continue
            rows.append(
                {
                    "set": name,
                    "row": row,
                    "paper": paper(name, row),
                    "ours": None if ours is None else ours.mean(),
                    "sd": None if ours is None or len(ours) < 2 else ours.std(ddof=1),
                    "splits": 0 if ours is None else len(ours),
                }
            )
    return rows


def sets(found: dict[str, dict[str, list[Any]]]) -> Rows:
    keys = ("inputs", "dimensions", "training", "testing", "classes")
    return [
        {"set": name, **{key: int(values[key][0]) for key in keys}, "splits": len(values["PCA"])}
        for name, values in found.items()
        if "PCA" in values
    ]


def figure_6(found: dict[str, dict[str, list[Any]]]) -> Rows:
    """Mean error after each pass, and relative to that after one."""
    rows = []
    for name, values in found.items():
        first = None
        for key, errors in values.items():
            if not key.startswith("passes "):
                continue
            error = float(np.mean(errors))
            first = error if first is None else first
            row = {"set": name, "passes": int(key.split()[1]), "error": error}
            rows.append(row | {"relative": error / first if first else None})
    return rows


def figure_9(found: dict[str, dict[str, list[Any]]]) -> Rows:
    """Errors of several metrics relative to those of one, ours and the paper's."""
    rows = []
    for name, values in found.items():
        if name not in LARGEST or "metrics" not in values or "LMNN" not in values:
            continue
        one, several = float(np.mean(values["LMNN"])), float(np.mean(values["metrics"]))
        theirs = TABLE["metrics"], TABLE["LMNN"]
        known = "mnist" if name == "mnist_sheared" else name
        rows.append(
            {
                "set": name,
                "single": one,
                "several": several,
                "relative": several / one,
                "paper_relative": theirs[0][known] / theirs[1][known],
            }
        )
    return rows


def seconds(found: dict[str, Any], records: Records) -> Rows:
    """Mean wall and CPU seconds of a split."""
    rows = []
    for name in found:
        for what, (wall, cpu) in sorted(records.seconds(name).items()):
            theirs = None
            if name in TABLE["PCA"] and what in SECONDS:
                theirs = SECONDS[what][list(TABLE["PCA"]).index(name)]
            rows.append({"set": name, "what": what, "wall": wall, "cpu": cpu, "paper_cpu": theirs})
    return rows


def _chosen(found: dict[str, dict[str, list[Any]]]) -> Rows:
    """The kernels that cross validation took, most frequent first."""
    rows = []
    for name, values in found.items():
        if "SVM chosen" in values:
            kinds, counts = np.unique(values["SVM chosen"], return_counts=True)
            order = np.argsort(-counts, kind="stable")[:3]
            often = ", ".join(f"{kinds[i]} ({counts[i]})" for i in order)
            rows.append({"set": name, "chosen": often})
    return rows


def draw_passes(path: Path, rows: Rows) -> None:
    figure, panel = plots().subplots(figsize=(6, 4))
    for name in LARGEST:
        points = [(row["passes"], row["relative"]) for row in rows if row["set"] == name]
        if points:
            panel.plot(*zip(*points, strict=True), marker="o", label=name)
    panel.axhline(1, color="gray", linestyle=":")
    panel.set_xlabel("passes")
    panel.set_ylabel("test error relative to one pass")
    if panel.get_legend_handles_labels()[0]:
        panel.legend()
    save_figure(figure, path)


def draw_metrics(path: Path, rows: Rows) -> None:
    figure, panel = plots().subplots(figsize=(6, 4))
    at = np.arange(len(rows))
    panel.bar(at - 0.2, [row["relative"] for row in rows], 0.4, label="ours")
    panel.bar(at + 0.2, [row["paper_relative"] for row in rows], 0.4, label="paper")
    panel.axhline(1, color="gray", linestyle=":")
    panel.set_xticks(at, [row["set"] for row in rows], rotation=20)
    panel.set_ylabel("error of several metrics / of one")
    panel.legend()
    save_figure(figure, path)


def _read(path: Path) -> Rows:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
