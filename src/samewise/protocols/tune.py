"""Choosing the aggressiveness C (PA study §3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from samewise.decide.rules import vote
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.search import Index
from samewise.supervision.gate import is_labeled
from samewise.supervision.purposes import sampled_pairs


@dataclass(frozen=True)
class TunedC:
    """The chosen C, and what every value tried gave."""

    C: float
    Cs: NDArray[np.float64]
    values: NDArray[np.float64]
    criterion: str


def tune_C(
    learner: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    Cs: ArrayLike | None = None,
    criterion: str = "loss",
    labeled: tuple[Any, ArrayLike] | None = None,
    max_neighbors: int = 25,
) -> TunedC:
    """One pass over the same pairs for each C; the best by loss or by k-NN accuracy.

    Parameters
    ----------
    learner : a learner of pairs with a parameter C
        It is cloned, never fitted itself.
    X : Pairs, array of shape (n_pairs, 2, n_features), or labeled examples
        What to learn from, as `fit` of the learner takes it.
    y : array, default=None
        Labels, as `fit` of the learner takes them with X.
    Cs : array, default=None
        Values to try; by default 13 from 1e-4 to 1e2, evenly spaced in the exponent.
    criterion : {"loss", "accuracy"}, default="loss"
        "loss": the least hinge loss accumulated along the pass. "accuracy": the best leave-one-out
        k-NN accuracy, over k up to `max_neighbors`, of the metric at the end of the pass.
    labeled : (X, y), default=None
        The examples on which accuracy is measured, where X is given as pairs.
    max_neighbors : int, default=25
        The largest k that is tried.

    Returns
    -------
    TunedC
        With `C`, `Cs` and the `values` of the criterion. Of equally good values, the smallest C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import PassiveAggressive, tune_C
    >>> X, y = load_iris(return_X_y=True)
    >>> tuned = tune_C(PassiveAggressive("pa1", random_state=0), X, y, Cs=[0.01, 1.0, 100.0])
    >>> tuned.C in (0.01, 1.0, 100.0)
    True
    """
    if criterion not in ("loss", "accuracy"):
        raise InvalidInputError(f"criterion must be 'loss' or 'accuracy'. Got {criterion!r}.")
    Cs = np.sort(np.asarray(np.logspace(-4, 2, 13) if Cs is None else Cs, dtype=np.float64))
    if Cs.ndim != 1 or len(Cs) == 0:
        raise InvalidInputError("Cs must be a one-dimensional array of values to try. Got none.")
    if is_labeled(X):
        if y is None:
            raise InvalidInputError(
                "tune_C requires y to be passed with examples, but the target y is None: give "
                "class labels, or Pairs."
            )
        labeled = (X, y) if labeled is None else labeled
        # One draw of pairs for all values of C, so that they are compared on the same stream.
        names = ("purpose", "n_neighbors", "n_pairs", "random_state")
        how = {name: getattr(learner, name) for name in names}
        X, y = sampled_pairs(X, y, **how).learned, None
    if criterion == "accuracy" and labeled is None:
        raise InvalidInputError(
            "criterion='accuracy' needs labeled examples to find neighbors among. Got pairs only; "
            "pass labeled=(X, y)."
        )
    values = np.empty(len(Cs))
    for i, C in enumerate(Cs):
        fitted = clone(learner).set_params(C=float(C), n_passes=1).fit(X, y)
        if criterion == "loss":
            values[i] = fitted.loss_
        else:
            assert labeled is not None
            values[i] = neighbor_accuracies(fitted.metric_, *labeled, max_neighbors).max()
    best = int(np.argmin(values) if criterion == "loss" else np.argmax(values))
    return TunedC(float(Cs[best]), Cs, values, criterion)


def neighbor_accuracies(
    form: Form | None, X: Any, y: ArrayLike, max_neighbors: int = 25
) -> NDArray[np.float64]:
    """Leave-one-out k-NN accuracy for k = 1, …, max_neighbors (fewer if there are fewer rows).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> neighbor_accuracies(None, *load_iris(return_X_y=True), max_neighbors=3).round(3)
    array([0.96, 0.96, 0.96])
    """
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    k = min(max_neighbors, len(codes) - 1)
    neighbors = codes[Index(form, X).query(X, k, exclude_self=True)[1]]
    n_classes = int(codes.max()) + 1
    return np.array([np.mean(vote(neighbors[:, : i + 1], n_classes)[0] == codes) for i in range(k)])
