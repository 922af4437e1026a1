"""What was learned, and what it gains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from samewise.forms import Form
from samewise.protocols import Measured, gain
from samewise.report.drawings import Subject
from samewise.report.page import Html, bullets, escaped, paragraph, table
from samewise.report.sentences import (
    gains_in_words,
    moved,
    percent,
    retrieval_test,
    verification_test,
)
from samewise.scores import Gain, PairTest, SignTest


def results(
    measured: Sequence[Measured],
    gains: Sequence[Gain],
    pair: tuple[Measured, Measured],
    ks: Sequence[int],
    n_neighbors: int,
) -> list[Html]:
    """The table, and what it says in sentences."""
    return [
        _table(measured, ks, n_neighbors),
        bullets(gains_in_words(*pair, n_neighbors)),
        _comparisons(measured, gains, n_neighbors),
        paragraph(
            "Whether a difference is more than chance is decided by the s-test, an exact two-sided "
            "sign test on single decisions, and for verification by a bootstrap test that "
            "resamples test examples: better or worse for p ≤ 0.05, otherwise no difference shown. "
            "The p-values are not adjusted for the number of tests. SkNN is not tested."
        ),
    ]


def _table(measured: Sequence[Measured], ks: Sequence[int], n_neighbors: int) -> Html:
    ks = [k for k in ks if k in measured[0].precision]
    # Precisions are negative here: the least of each column is the best.
    columns = {
        f"{n_neighbors}-NN error": [m.knn_error for m in measured],
        "SkNN error": [m.sknn_error for m in measured],
    }
    for k in ks:
        title = f"precision of the first {k}" if k > 1 else "precision of the first"
        columns[title] = [-m.precision[k] for m in measured]
    columns["mean average precision"] = [-m.mean_average_precision for m in measured]
    columns["verification error"] = [m.verification_error for m in measured]
    values = np.array(list(columns.values())).T
    with np.errstate(invalid="ignore"):
        best = values == np.fmin.reduce(values, axis=0)
    rows = [
        [m.name, *(percent(abs(value)) for value in line)]
        for m, line in zip(measured, values, strict=True)
    ]
    caption = "Lower errors and higher precisions are better; the best of each column is bold."
    titles = ["metric", *columns]
    return table(titles, rows, caption=caption, best=lambda r, c: bool(best[r, c - 1]))


def _comparisons(measured: Sequence[Measured], gains: Sequence[Gain], n_neighbors: int) -> Html:
    by_name = {m.name: m for m in measured}
    rows = []
    for test in gains:
        before, after = by_name[test.before], by_name[test.after]
        found = retrieval_test(before, after)
        verified = verification_test(before, after)
        rows.append(
            [
                f"{test.after} against {test.before}",
                moved(*test.errors),
                f"{test.n_better:,} : {test.n_worse:,}",
                test.verdict,
                moved(before.mean_average_precision, after.mean_average_precision),
                f"{found.n_better:,} : {found.n_worse:,}",
                found.verdict,
                moved(before.verification_error, after.verification_error),
                "–" if verified is None else verified.verdict,
            ]
        )
    columns = [
        "compared",
        f"{n_neighbors}-NN error",
        "won : lost",
        "s-test",
        "mean average precision",
        "won : lost",
        "s-test",
        "verification error",
        "bootstrap test",
    ]
    caption = (
        "Won and lost: test examples that only the one or only the other decides rightly, and "
        "queries whose average precision is higher with the one or the other."
    )
    return table(columns, rows, caption=caption)


def tiles(before: Measured, after: Measured, n_neighbors: int) -> Html:
    """The three numbers that matter most, before and after."""
    numbers: tuple[tuple[str, str, Gain | SignTest | PairTest | None], ...] = (
        ("knn_error", f"{n_neighbors}-NN error", gain(before, after)),
        ("mean_average_precision", "mean average precision", retrieval_test(before, after)),
        ("verification_error", "verification error", verification_test(before, after)),
    )
    made = ""
    for name, what, test in numbers:
        old, new = getattr(before, name), getattr(after, name)
        if np.isnan(old) or np.isnan(new):
            continue
        gained = new > old if name == "mean_average_precision" else new < old
        kind = "good" if gained else "bad"
        if new == old or (test is not None and test.mark == "="):
            kind = ""
        said = _untested(old, new) if test is None else test.verdict
        made += (
            f'<div class="tile"><p class="what">{escaped(what)}, {escaped(before.name)} → '
            f'{escaped(after.name)}</p><p class="value">{escaped(moved(old, new))}</p>'
            f'<p class="verdict {kind}">{escaped(said)}</p></div>'
        )
    return Html(f'<div class="tiles">{made}</div>')


def _untested(before: float, after: float) -> str:
    way = "the same" if after == before else "lower" if after < before else "higher"
    return f"{way}, not tested for chance"


def what_was_learned(named: Iterable[str], subject: Subject) -> Html:
    """Which forms, and what they are measured on."""
    X, y, _, y_test = subject.parts
    described = "; ".join(f"“{name}” is {_form(subject.forms[name])}" for name in named)
    return paragraph(
        f"{described}. Measured with {X.shape[0]:,} stored training examples of "
        f"{len(np.unique(y))} classes and {X.shape[1]:,} features, on {len(y_test):,} test "
        "examples."
    )


def _form(form: Form) -> str:
    kinds = {
        "Mahalanobis": "a Mahalanobis distance",
        "GeneralizedCosine": "a generalized cosine",
        "Bilinear": "a bilinear similarity",
        "NormalizedBilinear": "a normalized bilinear similarity",
        "LowRankBilinear": "a bilinear similarity of low rank",
        "KernelMahalanobis": "a Mahalanobis distance in the space of a kernel",
        "MultiMetric": "a distance with a metric for each group",
    }
    return f"{kinds.get(type(form).__name__, 'a form')}, {form}"
