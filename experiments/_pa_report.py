"""Tables, figures and the summary of `pa_study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments import _pa_summary
from experiments._common import Rows, plots, save_figure, write_csv
from experiments._pa_data import load_pa_study
from experiments._pa_paper import ERRORS, HOLM, METHODS, RANKS, SECONDS, WITH_ITML
from samewise.scores import friedman, holm_pairwise

POINTS = 60
"""Points of a predictive curve that are kept."""

FIGURE_3 = ("wine", "glass", "iono", "balance", "satellite", "soyL")
"""The kinds of behavior in Figure 3; satellite stands for Art100, which has no file."""

SHOWN = "iono"

Results = dict[str, list[dict[str, Any]]]


def write(
    out: Path, results: Results, scaling: dict[str, dict[str, Any]], scaled: dict[str, str]
) -> None:
    """Everything there is to say about the results, as files in `out`."""
    errors = table_2(results)
    times = table_3(results)
    predictive = predictive_errors(results)
    write_csv(out / "scaling.csv", scaling_rows(scaling, scaled))
    write_csv(out / "table1.csv", table_1(results))
    write_csv(out / "table2.csv", errors)
    write_csv(out / "table3.csv", times)
    write_csv(out / "table4.csv", table_4(results))
    write_csv(out / "table5.csv", table_5(results))
    write_csv(out / "friedman_errors.csv", friedman_rows(errors))
    write_csv(out / "predictive.csv", predictive)
    write_csv(out / "runs.csv", run_rows(results))
    write_csv(out / "itml.csv", itml_rows(results))
    write_csv(out / "fig3_predictive_error.csv", curves(results))
    ranks, leading = closer_looks(results)
    write_csv(out / "fig4_rank.csv", ranks)
    write_csv(out / "fig5_leading.csv", leading)
    draw_predictive(out / "fig3_predictive_error.png", curves(results))
    draw_iono(out / "fig4_fig5_ionosphere.png", ranks, leading)
    text = _pa_summary.text(results, errors, _times(results, WITH_ITML), predictive, ranks, leading)
    (out / "summary.md").write_text(text, encoding="utf-8")


def scaling_rows(scaling: dict[str, dict[str, Any]], scaled: dict[str, str]) -> Rows:
    return [
        {
            "set": name,
            "paper": ERRORS[name]["Euclidean"][0],
            **{kind: float(errors.min()) for kind, errors in both.items()},
            "chosen": scaled[name],
        }
        for name, both in scaling.items()
    ]


def table_1(results: Results) -> Rows:
    """The sets: rows, features, classes and pairs, the paper's and ours."""
    rows = []
    for name in results:
        bunch = load_pa_study(name)
        row: dict[str, Any] = {"set": name}
        for whose, (n, d, c) in (("paper", bunch.paper), ("ours", bunch.ours)):
            row |= {f"{whose}_n": n, f"{whose}_d": d, f"{whose}_c": c}
            row[f"{whose}_pairs"] = 40 * c * (c - 1)
        rows.append(row | {"note": bunch.note})
    return rows


def table_2(results: Results) -> Rows:
    """Least mean error over k, the paper's beside ours."""
    rows = []
    for name, runs in results.items():
        for method, (error, k) in ERRORS[name].items():
            row = {"set": name, "method": method, "paper_error": error, "paper_k": k}
            E = np.array([one[method]["errors"] for one in runs])
            best = int(E.mean(axis=0).argmin())
            ours = {"error": E.mean(axis=0)[best], "k": best + 1, "sd": E[:, best].std(ddof=1)}
            rows.append({**row, **ours})
    return rows


def table_3(results: Results) -> Rows:
    """CPU seconds of learning, and of choosing C before it; of ITML with γ, and of all γ."""
    rows = []
    for name, runs in results.items():
        for method in WITH_ITML:
            seconds = np.array([one[method]["seconds"] for one in runs])
            row = {"set": name, "method": method, "paper_seconds": SECONDS[name][method]}
            tuning = np.mean([one[method]["tuning"] for one in runs])
            rows.append(
                {**row, "seconds": seconds.mean(), "sd": seconds.std(ddof=1), "tuning": tuning}
            )
    return rows


def _times(results: Results, methods: tuple[str, ...] = METHODS) -> np.ndarray:
    return np.array(
        [
            [np.mean([one[m]["seconds"] for one in runs]) for m in methods]
            for runs in results.values()
        ]
    )


def table_4(results: Results) -> Rows:
    """Mean ranks by CPU time, 1 the fastest."""
    six, seven = (
        {
            who: dict(zip(methods, friedman(times).mean_ranks, strict=True))
            for who, times in (
                ("paper", [[SECONDS[name][m] for m in methods] for name in results]),
                ("ours", _times(results, methods)),
            )
        }
        for methods in (METHODS, WITH_ITML)
    )
    rows = [
        {
            "method": method,
            "paper_15_sets_7_methods": RANKS[method],
            "paper_these_sets_6_methods": six["paper"].get(method),
            "ours": six["ours"].get(method),
            "paper_these_sets_7_methods": seven["paper"][method],
            "ours_7_methods": seven["ours"][method],
        }
        for method in WITH_ITML
    ]
    return sorted(rows, key=lambda row: row["ours_7_methods"])


def table_5(results: Results) -> Rows:
    """Holm-adjusted p-values of − against + and ITML, by CPU time, among six and seven methods."""
    six, seven = (
        holm_pairwise(friedman(_times(results, methods)).mean_ranks, len(results))
        for methods in (METHODS, WITH_ITML)
    )
    return [
        {
            "first": a,
            "second": b,
            "paper": value,
            "ours": None if b == "ITML" else six[METHODS.index(a), METHODS.index(b)],
            "ours_7_methods": seven[WITH_ITML.index(a), WITH_ITML.index(b)],
        }
        for (a, b), value in HOLM.items()
    ]


def friedman_rows(errors: Rows) -> Rows:
    """Friedman's test on the errors of Table 2: Euclidean and the six methods."""
    methods = ("Euclidean", *METHODS)
    tests = {
        column: friedman(_matrix(errors, methods, column)) for column in ("paper_error", "error")
    }
    rows = [
        {
            "method": method,
            "paper_mean_rank": tests["paper_error"].mean_ranks[i],
            "our_mean_rank": tests["error"].mean_ranks[i],
        }
        for i, method in enumerate(methods)
    ]
    ends = {
        "paper_mean_rank": tests["paper_error"].p_value,
        "our_mean_rank": tests["error"].p_value,
    }
    return [
        *rows,
        {"method": "p-value", **ends},
        {"method": "p-value, six methods only", **_p_values(errors, METHODS)},
        {"method": "p-value, six methods and ITML", **_p_values(errors, WITH_ITML)},
    ]


def _p_values(errors: Rows, methods: tuple[str, ...]) -> dict[str, float]:
    return {
        f"{who}_mean_rank": friedman(_matrix(errors, methods, column)).p_value
        for who, column in (("paper", "paper_error"), ("our", "error"))
    }


def _matrix(errors: Rows, methods: tuple[str, ...], column: str) -> np.ndarray:
    cells = {(row["set"], row["method"]): row[column] for row in errors}
    names = dict.fromkeys(row["set"] for row in errors)
    return np.array([[cells[name, method] for method in methods] for name in names])


def predictive_errors(results: Results) -> Rows:
    """Predictive 0–1 loss over the whole run, mean over the runs."""
    return [
        {"set": name, **{m: np.mean([one[m]["predictive_end"] for one in runs]) for m in METHODS}}
        for name, runs in results.items()
    ]


def run_rows(results: Results) -> Rows:
    return [
        {"set": name, "run": i, "method": method}
        | {key: one[method][key] for key in ("C", "updates", "rank")}
        | {"predictive_error": one[method]["predictive_end"]}
        for name, runs in results.items()
        for i, one in enumerate(runs)
        for method in METHODS
    ]


def itml_rows(results: Results) -> Rows:
    """γ of ITML; cycles through the pairs, and the gap that they left; pairs with λ > 0."""
    keys = ("gamma", "cycles", "gap", "active", "rank")
    return [
        {"set": name, "run": i, **{key: one["ITML"][key] for key in keys}}
        for name, runs in results.items()
        for i, one in enumerate(runs)
    ]


def curves(results: Results) -> Rows:
    """Predictive error along the run, mean over the runs."""
    rows = []
    for name, runs in results.items():
        rounds = runs[0][METHODS[0]]["rounds"]
        keep = np.unique(np.linspace(0, len(rounds) - 1, POINTS).astype(int))
        means = {m: np.mean([one[m]["predictive"] for one in runs], axis=0) for m in METHODS}
        rows += [
            {"set": name, "step": int(rounds[j]), **{m: means[m][j] for m in METHODS}} for j in keep
        ]
    return rows


def closer_looks(results: Results) -> tuple[Rows, Rows]:
    """Figure 4 and Figure 5 as tables."""
    runs = results[SHOWN]
    mean = {
        (m, key): np.mean([one[m][key] for one in runs], axis=0)
        for m in METHODS
        for key in ("ranks", "leading_train", "leading_test")
    }
    ranks = [
        {"step": int(step), **{m: mean[m, "ranks"][i] for m in METHODS}}
        for i, step in enumerate(runs[0][METHODS[0]]["steps"])
    ]
    n_features = len(mean[METHODS[0], "leading_test"])
    leading = [
        {"data": data, "eigenvectors": i + 1} | {m: mean[m, f"leading_{data}"][i] for m in METHODS}
        for data in ("train", "test")
        for i in range(n_features)
    ]
    return ranks, leading


def draw_predictive(path: Path, rows: Rows) -> None:
    plt = plots()
    figure, axes = plt.subplots(2, 3, figsize=(11, 6))
    for ax, name in zip(axes.flat, FIGURE_3, strict=True):
        part = [row for row in rows if row["set"] == name]
        _lines(ax, part, "step")
        ax.set(title=name, xlabel="step")
    axes[0, 0].set_ylabel("predictive error")
    axes[1, 0].set_ylabel("predictive error")
    axes[0, 0].legend(fontsize=7)
    save_figure(figure, path)


def draw_iono(path: Path, ranks: Rows, leading: Rows) -> None:
    plt = plots()
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    _lines(axes[0], ranks, "step")
    axes[0].set(title=f"{SHOWN}: rank of the metric", xlabel="step")
    for ax, data in zip(axes[1:], ("train", "test"), strict=True):
        _lines(ax, [row for row in leading if row["data"] == data], "eigenvectors")
        ax.set(title=f"{SHOWN}: 2-NN error, {data}", xlabel="leading eigenvectors")
    axes[0].legend(fontsize=7)
    save_figure(figure, path)


def _lines(ax: Any, rows: Rows, x: str) -> None:
    for i, method in enumerate(METHODS):
        style = "-" if method.endswith("+") else "--"
        y = [row[method] for row in rows]
        ax.plot([row[x] for row in rows], y, style, color=f"C{i // 2}", label=method, lw=1.2)
