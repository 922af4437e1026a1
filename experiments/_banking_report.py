"""Tables, figures and the summary of `banking77`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments._common import Rows, markdown, plots, save_figure, write_csv
from samewise._typing import Array

MEASURES = ("P@1", "P@10", "mAP")
COLORS = {"OASIS": "tab:orange", "d-AROMA": "tab:green", "f-AROMA": "tab:blue"}
LINES = (
    ("margin 1, start at zero", "tab:red", {"margin": "1", "start": "zero"}),
    ("margin 1", "tab:orange", {"margin": "1", "start": "identity", "average": "last"}),
    ("margin auto", "tab:olive", {"margin": "auto", "average": "last", "negatives": "random"}),
    ("auto, averaged", "tab:green", {"margin": "auto", "average": "survival", "form": ""}),
    (
        "auto, semi-hard",
        "tab:blue",
        {"margin": "auto", "average": "last", "negatives": "semi-hard", "form": "current"},
    ),
)
"""Of the settings with the papers' C or r, those that are drawn as curves."""

Settings = Mapping[Any, list[dict[int, Array]]]

NOTES = """\
- **Margin 1 hurts.** Similarities of these vectors differ by tenths. With a margin of 1 every
  learner loses precision@1 at every number of triplets, and most of the rest; from a start at zero,
  the AROMAs' own, still more. With margin="auto" and the identity little is lost, and mAP is won.
- **The last hypothesis is noisy.** With random negatives and margin="auto" it costs up to two
  points of precision@1 at 50 000 triplets. An average ("survival", "uniform") costs some tenths at
  most, and is what to use where nothing may get worse.
- **Semi-hard negatives help most,** above all drawn again under what was learned so far: with
  50 000 of them the last hypothesis reaches the mAP of shrinkage LDA, which is given all labels,
  and f-AROMA's passes it; an average stays somewhat below. f-AROMA keeps its precision@1 with them
  even without an average; OASIS needs one.
- **The hardest negatives, taken once, ruin everything.**
- **Triplets are not labels.** Logistic regression, told the 77 labels themselves, is far ahead of
  all of them: where the classes are known and stay, use it.
- What is safe on held-out questions may still be worse on the test part, by some tenths of a point
  of precision@1 and once by nearly a whole one (f-AROMA with r = 0.1 and 1 500 triplets).

"""


def write(
    out: Path,
    *,
    validation: Settings,
    chosen: Mapping[tuple[str, str], Any],
    tested: Settings,
    baselines: Mapping[str, Array],
    facts: Mapping[str, float],
) -> None:
    """All files."""
    before = baselines["cosine"]
    write_csv(out / "validation.csv", validation_rows(validation, chosen))
    write_csv(out / "test.csv", test_rows(tested))
    write_csv(out / "runs.csv", run_rows(tested))
    methods = [{"method": name} | _named(100 * values) for name, values in baselines.items()]
    write_csv(out / "baselines.csv", methods)
    draw_curves(out / "fig_triplets.png", tested, baselines)
    draw_trade(out / "fig_trade.png", tested, baselines)
    draw_margins(out / "fig_margins.png", validation, facts["auto"])
    text = (
        "# Sentence embeddings: what triplets do to a frozen encoder\n\n"
        "Made by `python -m experiments banking77`; the protocol is in "
        "`experiments/banking77.py`. Test part: every question against the others. Percent, means "
        f"over {len(next(iter(tested.values())))} seeds ± standard deviation.\n\n"
        f'margin="auto" is {facts["auto"]:.3f} here, with a start at the identity.\n\n'
        f"{NOTES}"
        "## Before, and what all labels of the training part give\n\n"
        f"{markdown(methods, 1)}\n\n"
        f"Logistic regression: C = {facts['C']:g}.\n\n"
        "## After: settings chosen on held-out training questions\n\n"
        f"{markdown(chosen_rows(chosen, tested))}\n\n"
        "## What helps and what hurts\n\n"
        "Change against the cosine in points of P@1 / P@10 / mAP; in how many of the nine it is "
        "for the worse.\n\n"
        f"{markdown(change_rows(tested, before))}\n\n"
        "## The held-out questions\n\n"
        "Change against the cosine there, in points, for the papers' C and r (`validation.csv` "
        "has all). Safe: none of the nine is below zero.\n\n"
        f"{markdown(safety_rows(validation, chosen))}\n"
    )
    (out / "summary.md").write_text(text, encoding="utf-8")


def _named(values: Array) -> dict[str, float]:
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def _described(setting: Any) -> dict[str, str]:
    """The setting in columns, under names that say what they are."""
    drawn = f", {setting.form}" if setting.form else ""
    return {
        "learner": setting.learner,
        "start": setting.start,
        "margin": setting.margin,
        "C or r": f"{setting.step:g}",
        "average": setting.average,
        "negatives": setting.negatives + drawn,
    }


def _stacked(curves: list[dict[int, Array]]) -> Array:
    """Percent: seeds × numbers of triplets × measures."""
    return 100 * np.array([list(curve.values()) for curve in curves])


def validation_rows(validation: Settings, chosen: Mapping[Any, Any]) -> Rows:
    """A row for each setting and number of triplets: mean and lowest change."""
    rows = []
    for setting, curves in validation.items():
        changes = _stacked(curves)
        safe = bool(changes.mean(axis=0).min() >= 0)
        for i, n in enumerate(curves[0]):
            row: dict[str, Any] = {**_described(setting), "triplets": n}
            for j, name in enumerate(MEASURES):
                row[name] = float(changes[:, i, j].mean())
                row[f"lowest {name}"] = float(changes[:, i, j].min())
            rows.append(row | {"safe": safe, "chosen": setting in chosen.values()})
    return rows


def test_rows(tested: Settings) -> Rows:
    """A row for each setting and number of triplets: mean and standard deviation."""
    rows = []
    for setting, curves in tested.items():
        values = _stacked(curves)
        for i, n in enumerate(curves[0]):
            row: dict[str, Any] = {**_described(setting), "triplets": n}
            for j, name in enumerate(MEASURES):
                row[name] = float(values[:, i, j].mean())
                row[f"sd {name}"] = float(values[:, i, j].std(ddof=1))
            rows.append(row)
    return rows


def run_rows(tested: Settings) -> Rows:
    """A row for each run and number of triplets."""
    return [
        {**_described(setting), "seed": seed, "triplets": n} | _named(100 * values)
        for setting, curves in tested.items()
        for seed, curve in enumerate(curves)
        for n, values in curve.items()
    ]


def chosen_rows(chosen: Mapping[tuple[str, str], Any], tested: Settings) -> Rows:
    """The chosen settings on the test part."""
    return [
        {
            "among": "random negatives" if kind == "random" else "all tried",
            **_described(setting),
            **_cells(_stacked(tested[setting]), list(tested[setting][0]), "{:.1f} ± {:.1f}"),
        }
        for (_, kind), setting in chosen.items()
    ]


def change_rows(tested: Settings, before: Array) -> Rows:
    """All settings on the test part, against the cosine."""
    rows = []
    for setting, curves in tested.items():
        changes = _stacked(curves) - 100 * before
        worse = int((changes.mean(axis=0) < 0).sum())
        cells = _cells(changes, list(curves[0]), "{:+.1f} ± {:.1f}")
        rows.append({**_described(setting), **cells, "worse": worse})
    return rows


def safety_rows(validation: Settings, chosen: Mapping[Any, Any]) -> Rows:
    """Settings with the papers' C or r, and the chosen ones, on the held-out questions."""
    rows = []
    for setting, curves in validation.items():
        if not (_usual(setting) or setting in chosen.values()):
            continue
        changes = _stacked(curves)
        safe = changes.mean(axis=0).min() >= 0
        cells = _cells(changes, list(curves[0]), "{:+.1f}")
        row = {**_described(setting), **cells, "safe": "yes" if safe else "no"}
        rows.append({key: value for key, value in row.items() if key != "start"})
    return rows


def _usual(setting: Any) -> bool:
    return bool(setting.step == type(setting)(setting.learner).step)


def _cells(values: Array, sizes: list[int], template: str) -> dict[str, str]:
    """One cell for each number of triplets, with the three measures."""
    means, sds = values.mean(axis=0), values.std(axis=0, ddof=1)
    cells = {}
    for n, row, sd in zip(sizes, means, sds, strict=True):
        parts = (template.format(*two) for two in zip(row, sd, strict=True))
        cells[str(n)] = " / ".join(parts).replace("-", "−")
    return cells


def draw_curves(path: Path, tested: Settings, baselines: Mapping[str, Array]) -> None:
    """Each measure of each learner as the triplets grow."""
    plt = plots()
    names = list(dict.fromkeys(s.learner for s in tested))
    figure, axes = plt.subplots(
        3, len(names), figsize=(4 * len(names), 9), sharey="row", squeeze=False
    )
    levels = (("cosine", "-"), ("shrinkage LDA, cosine", "--"))
    for (row, column), ax in np.ndenumerate(axes):
        for name, style in levels:
            ax.axhline(100 * baselines[name][row], color="black", ls=style, lw=0.9, label=name)
        for label, color, wanted in LINES:
            for setting, curves in tested.items():
                same = all(getattr(setting, key) == value for key, value in wanted.items())
                if same and setting.learner == names[column] and _usual(setting):
                    mean = _stacked(curves).mean(axis=0)[:, row]
                    ax.plot(list(curves[0]), mean, "o-", ms=3, color=color, label=label)
        ax.set(title=names[column], xscale="log", xlabel="triplets", ylabel=f"{MEASURES[row]}, %")
        sizes = list(next(iter(tested.values()))[0])
        ax.set_xticks(sizes, [str(n) for n in sizes])
        ax.minorticks_off()
    axes[0, 0].legend(fontsize=7)
    save_figure(figure, path)


def draw_trade(path: Path, tested: Settings, baselines: Mapping[str, Array]) -> None:
    """P@1 against mAP at the most triplets, a point for each setting."""
    plt = plots()
    figure, ax = plt.subplots(figsize=(7, 5.5))
    seen = set()
    for setting, curves in tested.items():
        if setting.negatives == "hardest":
            continue
        x, _, y = _stacked(curves).mean(axis=0)[-1]
        mark = "x" if setting.margin == "1" else "o" if setting.negatives == "random" else "^"
        kind = {"x": "margin 1", "o": "smaller margin", "^": "semi-hard negatives"}[mark]
        label = f"{setting.learner}, {kind}"
        ax.plot(x, y, mark, color=COLORS[setting.learner], label=None if label in seen else label)
        seen.add(label)
    for name, values in baselines.items():
        x, _, y = 100 * values
        ax.plot(x, y, "ks", ms=5)
        # Neighbors on the right have their names on either side of the mark.
        place = (-4, -12) if "cosine of" in name else (-4, 6)
        ax.annotate(name, (x, y), place, textcoords="offset points", fontsize=7, ha="right")
    before = 100 * baselines["cosine"]
    ax.axvline(before[0], color="gray", lw=0.8)
    ax.axhline(before[2], color="gray", lw=0.8)
    ax.set(
        xlabel="P@1, %", ylabel="mAP, %", title=f"{max(next(iter(tested.values()))[0])} triplets"
    )
    ax.legend(fontsize=7)
    save_figure(figure, path)


def draw_margins(path: Path, validation: Settings, auto: float) -> None:
    """Held-out questions: the change by the margin, random negatives, the papers' C and r."""
    plt = plots()
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8))
    for j, (ax, measure) in enumerate(zip(axes, MEASURES, strict=True)):
        ax.axhline(0, color="gray", lw=0.8)
        ax.axvline(auto, color="gray", lw=0.8, ls="--")
        for name, color in COLORS.items():
            for average, style in (("last", ":"), ("survival", "-")):
                points = [
                    (_margin(s.margin, auto), _stacked(curves).mean(axis=0)[-1, j])
                    for s, curves in validation.items()
                    if (s.learner, s.average, s.negatives) == (name, average, "random")
                    and _usual(s)
                ]
                if points:
                    ax.plot(
                        *zip(*points, strict=True),
                        "o",
                        ls=style,
                        ms=3,
                        color=color,
                        label=f"{name}, {average}",
                    )
        ax.set(xlabel="margin", ylabel=f"change of {measure}, points", xscale="log")
    axes[0].legend(fontsize=7)
    save_figure(figure, path)


def _margin(name: str, auto: float) -> float:
    number, automatic, _ = name.partition("auto")
    return float(number or 1) * (auto if automatic else 1.0)
