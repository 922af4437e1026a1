"""The claims of the passive–aggressive study beside what we found, as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._common import Rows, markdown
from experiments._pa_paper import METHODS, SECONDS, WITH_ITML
from samewise.scores import friedman, holm_pairwise

ONE_SIDED = ("glass", "iono", "breast", "spam", "nist16")
"""Where the paper's worst − method predicts better than its best +."""

NOTES = """\
## Where it differs, and why

- **Scaling.** Standardized features come nearer to the paper's Euclidean errors than raw ones on 11
  of the 12 sets (on balance both are equal), within 0.02 on nine. So the paper scaled its features,
  probably in a like but not the same way.
- **glass and balance.** The paper's Euclidean errors (0.510 and 0.335) are those of the UCI files
  under neither scaling, so its versions of these sets must be others; how six kinds of glass became
  four classes is not said, and balance is a grid, where equal distances decide much.
- **nist16** is another, easier set of digit images (15×16 averages of mfeat). Of **soyL** only the
  size is known to agree; there all methods gain less on the Euclidean distance than in the paper.
- **Errors of the six methods.** The paper finds no difference, we find one: least squares errs more
  than the others (mean ranks in `friedman_errors.csv`).
- **ionosphere.** The + methods reach the paper's errors, the − methods only about the Euclidean
  one. Their ranks, half of those of +, and that ten eigenvectors are enough, are as in the paper.
- **Prediction of pairs.** − is clearly better on four of the paper's five sets, and + on several
  where the paper has − ahead (`predictive.csv`). C is chosen here, as there, for neighbors and not
  for prediction, which may be a part of it; why the paper has it otherwise we do not know.
- **k.** On a tie of votes our rule drops the farthest neighbor, so k = 2 decides as k = 1 does, and
  the smaller is named.
- **Times** are those of compiled loops on a current machine; only their order can be compared, and
  it is the paper's: every − before every +, PALS+ last.
"""


def text(
    results: Any, errors: Rows, times: np.ndarray, predictive: Rows, ranks: Rows, leading: Rows
) -> str:
    """The summary in Markdown."""
    n_runs = len(next(iter(results.values())))
    claims = [
        *_about_errors(errors),
        *_about_itml(errors),
        *_about_prediction(predictive),
        *_about_ionosphere(ranks, leading),
        *_about_times(list(results), times[:, 1:]),
        _itml_slower(list(results), times),
    ]
    return (
        "# Passive–aggressive study: what the paper found, and what we found\n\n"
        f"{len(results)} sets, {n_runs} runs each. Made by `python -m experiments pa_study`; the "
        f"protocol is in `experiments/pa_study.py`.\n\n{markdown(claims)}\n\n{NOTES}\n"
        f"## Table 2: errors, paper → ours (best k in brackets)\n\n{markdown(_wide(errors))}\n\n"
        "## Table 3: CPU seconds of learning, paper → ours\n\n"
        f"{markdown(_wide_times(list(results), times))}\n"
    )


def _claim(what: str, paper: str, ours: str) -> dict[str, str]:
    return {"claim": what, "paper": paper, "ours": ours}


def _about_errors(errors: Rows) -> Rows:
    names = list(dict.fromkeys(row["set"] for row in errors))
    cells = {(row["set"], row["method"]): row for row in errors}

    def table(column: str) -> np.ndarray:
        return np.array([[cells[name, m][column] for m in METHODS] for name in names])

    def helped(column: str) -> str:
        euclidean = np.array([cells[name, "Euclidean"][column] for name in names])
        E = table(column)
        best, all_six = (E.min(axis=1) < euclidean).sum(), (E.max(axis=1) < euclidean).sum()
        return f"some method on {best} of {len(names)} sets, all six on {all_six}"

    def p_value(column: str) -> str:
        return f"p = {friedman(table(column)).p_value:.3f}"

    return [
        _claim("better than Euclidean", helped("paper_error"), helped("error")),
        _claim(
            "errors of the six methods differ (Friedman)",
            f"no; from its table, {p_value('paper_error')}",
            p_value("error"),
        ),
    ]


def _about_itml(errors: Rows) -> Rows:
    names = list(dict.fromkeys(row["set"] for row in errors))
    cells = {(row["set"], row["method"]): row for row in errors}

    def found(column: str) -> str:
        E = np.array([[cells[name, m][column] for m in WITH_ITML] for name in names])
        test = friedman(E)
        p = holm_pairwise(test.mean_ranks, len(names))[0, 1:]
        least = int(p.argmin())
        ranks = test.mean_ranks
        return (
            f"mean ranks: ITML {ranks[0]:.1f}, the six {ranks[1:].min():.1f} to "
            f"{ranks[1:].max():.1f}; least p against one of them {p[least]:.2f} ({METHODS[least]})"
        )

    def helped(column: str) -> str:
        worse = [n for n in names if cells[n, "ITML"][column] >= cells[n, "Euclidean"][column]]
        return (
            f"{len(names) - len(worse)} of {len(names)} sets; not on {', '.join(worse) or 'none'}"
        )

    return [
        _claim("ITML better than Euclidean", helped("paper_error"), helped("error")),
        _claim(
            "ITML's errors do not differ from those of the six (Holm)",
            f"yes; from its table, {found('paper_error')}",
            found("error"),
        ),
    ]


def _about_prediction(predictive: Rows) -> Rows:
    P = np.array([[row[m] for m in METHODS] for row in predictive])
    plus, minus = P[:, ::2], P[:, 1::2]
    names = [row["set"] for row in predictive]
    each = int((minus < plus).all(axis=1).sum())
    mean = int((minus.mean(axis=1) < plus.mean(axis=1)).sum())
    clear = [name for name, row in zip(names, minus.max(1) < plus.min(1), strict=True) if row]
    squares = int((plus[:, 2] > plus[:, :2].max(axis=1)).sum())
    squares_minus = int((minus[:, 2] > minus[:, :2].max(axis=1)).sum())
    n = len(names)
    return [
        _claim(
            "− predicts pairs better than +",
            "12 of 15 sets",
            f"in the mean of the three rules {mean} of {n} sets; for each of the three {each}",
        ),
        _claim(
            "worst − better than every +",
            ", ".join(ONE_SIDED),
            ", ".join(clear) or "none",
        ),
        _claim(
            "least squares predicts worst",
            "9 or 10 of 15 sets, more so for +",
            f"+: {squares} of {n} sets; −: {squares_minus} of {n}",
        ),
    ]


def _about_ionosphere(ranks: Rows, leading: Rows) -> Rows:
    last = ranks[-1]
    tests = [row for row in leading if row["data"] == "test"]
    ten, full = (np.mean([row[m] for m in METHODS]) for row in (tests[9], tests[-1]))
    return [
        _claim(
            "ionosphere: − ends with lower rank",
            "yes (Figure 4)",
            ", ".join(f"{m} {last[m]:.1f}" for m in METHODS),
        ),
        _claim(
            "ionosphere: ten eigenvectors are enough",
            "yes (Figure 5)",
            f"2-NN test error, mean of the six: {ten:.3f} with ten, {full:.3f} with all",
        ),
    ]


def _about_times(names: list[str], times: np.ndarray) -> Rows:
    paper = np.array([[SECONDS[name][m] for m in METHODS] for name in names])

    def faster(T: np.ndarray) -> str:
        ratio = T[:, ::2] / T[:, 1::2]
        count = int((ratio > 1).sum())
        return f"{count} of {ratio.size} cases; + takes {np.median(ratio):.1f}× (median)"

    return [_claim("− is faster than +", faster(paper), faster(times))]


def _itml_slower(names: list[str], times: np.ndarray) -> dict[str, str]:
    """Do the − methods take less than 40 % of ITML's time?"""
    paper = np.array([[SECONDS[name][m] for m in WITH_ITML] for name in names])

    def below(T: np.ndarray) -> str:
        part = T[:, 2::2] / T[:, :1]
        return f"{int((part < 0.4).sum())} of {part.size} cases; {np.median(part):.2f}× (median)"

    ours = f"{below(times)}; γ is known then, as C is"
    return _claim("− takes less than 40 % of ITML's time", f"“in all cases”; {below(paper)}", ours)


def _wide(errors: Rows) -> Rows:
    rows: dict[str, dict[str, Any]] = {}
    for row in errors:
        ours = "paper only" if row["error"] is None else f"{row['error']:.3f} ({row['k']})"
        cell = f"{row['paper_error']:.3f} ({row['paper_k']}) → {ours}"
        rows.setdefault(row["set"], {"set": row["set"]})[row["method"]] = cell
    return list(rows.values())


def _wide_times(names: list[str], times: np.ndarray) -> Rows:
    return [
        {"set": name}
        | {m: f"{SECONDS[name][m]:.2f} → {t:.3f}" for m, t in zip(WITH_ITML, row, strict=True)}
        for name, row in zip(names, times, strict=True)
    ]
