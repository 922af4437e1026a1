"""What a model is good for, beside the Euclidean distance and the cosine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._cards import Card, share
from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.learners import Cosine
from samewise.model import Model, as_model
from samewise.protocols.measuring import Measured, gain, measure
from samewise.scores import Gain
from samewise.supervision.holding_out import hold_out
from samewise.supervision.supervision_checks import labeled_rows

_PART = 0.3


@dataclass(frozen=True, eq=False, repr=False)
class ModelEvaluation(Card):
    """Result of `evaluate`.

    Attributes
    ----------
    measured : list of Measured
        Of the Euclidean distance, the cosine and the model.
    gains : list of Gain
        Of the model over the Euclidean distance, and over the cosine.
    judged_by : str
        Which rows it was judged by, in words.
    n_items, n_queries : int
        Numbers of rows that neighbors were found among, and that the model was judged by.
    """

    measured: list[Measured]
    gains: list[Gain]
    judged_by: str
    n_items: int
    n_queries: int

    def _card(self) -> list[tuple[str, str]]:
        judged = f"{self.n_queries:,} rows, {self.judged_by}"
        lines = [("judged by", judged), ("neighbors among", f"{self.n_items:,} rows")]
        for each in self.measured:
            values = (each.knn_error, each.mean_average_precision, each.verification_error)
            error, mean, verification = map(share, values)
            text = f"k-NN error {error}, mAP {mean}, verification error {verification}"
            lines.append((each.name, text))
        return [*lines, *((f"against {gain.before}", gain.verdict) for gain in self.gains)]


def evaluate(
    model: Any,
    X: Any,
    y: ArrayLike,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    *,
    name: str | None = None,
    feature_names: Sequence[str] | None = None,
    n_neighbors: int = 3,
    random_state: Any = 0,
    watch: Callable[[str], object] | None = None,
) -> ModelEvaluation:
    """Measure a model against the Euclidean distance and the cosine, on the same rows.

    Parameters
    ----------
    model : Model, Form or fitted learner
        What to measure. A Model scales the rows first, for all three.
    X : array or CSR matrix of shape (n, d)
        Rows that neighbors are found among; without `X_test` also the rows to judge by.
    y : array of shape (n,)
        Their labels.
    X_test : array or CSR matrix of shape (n_test, d), default=None
        Rows to judge by. By default those rows of X that a Model was not learned from, or else
        30 % of X.
    y_test : array of shape (n_test,), default=None
        Their labels.
    name : str, default=None
        What to call the model in tables; by default the name of its learner.
    feature_names : sequence of str, default=None
        Names of the columns, by which a Model finds its own.
    n_neighbors : int, default=3
        Neighbors that decide.
    random_state : int, RandomState instance or None, default=0
        Seed for reproducible pairs and splits.
    watch : callable, default=None
        Called with a line of text about what is done.

    Returns
    -------
    ModelEvaluation
        The measures of all three, and what the model gains.

    See Also
    --------
    samewise.protocols.measure : Measures one form.
    fit_model : Learns a model.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from samewise import evaluate, fit_model
    >>> X, y = load_wine(return_X_y=True)
    >>> found = evaluate(fit_model(X, y, "lda"), X, y)
    >>> found.judged_by
    'the rows that the model was not trained on'
    >>> [measured.name for measured in found.measured]
    ['euclidean', 'cosine', 'lda']
    """
    known = as_model(model)
    rows, y = labeled_rows(X, y)
    if X_test is None:
        queries, judged_by = rows_to_judge_by(known, rows, y, feature_names, random_state)
        rows = known.prepare(rows, feature_names)
        parts = rows[~queries], y[~queries], rows[queries], y[queries]
    elif y_test is None:
        raise InvalidInputError("y_test must be given with X_test: the labels of its rows.")
    else:
        tests, y_test = labeled_rows(X_test, y_test)
        judged_by = f"the rows that were given{learned_from(known, tests, feature_names)}"
        prepared = (known.prepare(part, feature_names) for part in (rows, tests))
        parts = next(prepared), y, next(prepared), y_test
    forms = {
        "euclidean": None,
        "cosine": Cosine().fit(parts[0]).metric_,
        name or known.learner or type(known.form).__name__: known.form,
    }
    measured = []
    for which, form in forms.items():
        if watch is not None:
            watch(f"measuring {which} on {len(parts[3]):,} rows")
        measured.append(
            measure(form, *parts, name=which, n_neighbors=n_neighbors, random_state=random_state)
        )
    *plain, learned = measured
    gains = [gain(before, learned) for before in plain]
    return ModelEvaluation(measured, gains, judged_by, len(parts[1]), len(parts[3]))


def rows_to_judge_by(
    model: Model,
    X: Matrix,
    y: ArrayLike,
    feature_names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> tuple[NDArray[np.bool_], str]:
    """Which of the rows to judge a model by, and how they were found.

    Parameters
    ----------
    model : Model
        What is judged; it knows the rows it was learned from.
    X : array or CSR matrix of shape (n, d)
        The rows, not scaled.
    y : array of shape (n,)
        Their labels.
    feature_names : sequence of str, default=None
        Names of the columns, by which the model finds its own.
    random_state : int, RandomState instance or None, default=0
        Seed for reproducible splits.

    Returns
    -------
    queries : array of booleans of shape (n,)
        True for the rows to judge by.
    judged_by : str
        How they were found, in words.
    """
    seen = model.has_seen(X, feature_names)
    if seen.any() and not seen.all():
        return ~seen, "the rows that the model was not trained on"
    queries = hold_out(y, _PART, random_state)
    if seen.all():
        return queries, (
            "30 % of the rows; the model was learned from all of them, which flatters it: give "
            "other rows to judge by, or hold some out when learning"
        )
    return queries, "30 % of the rows; none of them is known to the model"


def learned_from(model: Model, X: Matrix, feature_names: Sequence[str] | None = None) -> str:
    """A warning if the model was learned from some of the rows it is judged by, else nothing."""
    seen = int(model.has_seen(X, feature_names).sum())
    if not seen:
        return ""
    return f"; the model was learned from {seen} of them, which flatters it"
