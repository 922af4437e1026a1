"""What a metric is good for: neighbors, retrieval and verification on examples it has not seen."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._cards import Card, share
from samewise._typing import Matrix
from samewise.decide import KNNClassifier, Verifier
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.forms import Form, Mahalanobis
from samewise.scores import Gain, balanced_error, retrieval_scores
from samewise.supervision import Pairs


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Card):
    """Result of `measure`.

    Attributes
    ----------
    name : str
        What was measured, for tables.
    knn_error : float
        Of the majority of the nearest training examples, over the test examples.
    sknn_error : float
        Of the class with the largest sum of closeness to its nearest members.
    precision : dict of int to float
        For each k, the part of a test example's k closest training examples that have its label,
        on average.
    mean_average_precision : float
        Of test examples as queries that rank all training examples.
    verification_error : float
        The mean of the false-accept and the false-reject rate over pairs of test examples, at the
        threshold that is best for pairs of training examples. NaN where there are no such pairs
        (a part whose classes have one member each, or one class), and for a form that needs the
        class of an example to measure it.
    correct : array of booleans of shape (n_test,)
        Which decisions behind `knn_error` are right.
    average_precision : array of shape (n_test,)
        NaN for a test example whose label no training example has; means leave it out.
    decided_pairs : array of shape (n_pairs, 4), or None
        The pairs behind `verification_error`: the numbers of the two test examples, whether they
        are of the same class, and whether that was decided rightly.
    """

    name: str
    knn_error: float
    sknn_error: float
    precision: dict[int, float]
    mean_average_precision: float
    verification_error: float
    correct: NDArray[np.bool_]
    average_precision: NDArray[np.float64]
    decided_pairs: NDArray[np.intp] | None = None

    def _card(self) -> list[tuple[str, str]]:
        precision = ", ".join(f"{share(value)} at {k}" for k, value in self.precision.items())
        return [
            ("of", self.name),
            ("k-NN error", share(self.knn_error)),
            ("SkNN error", share(self.sknn_error)),
            ("precision", precision),
            ("mAP", share(self.mean_average_precision)),
            ("verification error", share(self.verification_error)),
        ]

    def as_dict(self) -> dict[str, Any]:
        """The measures in plain values, without those of single examples."""
        single = ("correct", "average_precision", "decided_pairs")
        return {name: value for name, value in vars(self).items() if name not in single}


def measure(
    form: Form | None,
    X: Matrix,
    y: ArrayLike,
    X_test: Matrix,
    y_test: ArrayLike,
    *,
    name: str = "",
    n_neighbors: int = 3,
    ks: Iterable[int] = (1, 5, 10),
    n_pairs: int = 10_000,
    random_state: Any = 0,
) -> Measured:
    """Measure a form on test examples, which are compared with training examples.

    Parameters
    ----------
    form : Form or None
        None is the Euclidean distance.
    X : array or CSR matrix of shape (n, d)
        Training examples: what neighbors are found among.
    y : array of shape (n,)
        Their labels.
    X_test : array or CSR matrix of shape (n_test, d)
    y_test : array of shape (n_test,)
    name : str
        What to call it in tables.
    n_neighbors : int, default=3
        Neighbors that decide; for SkNN in each class, and at most the size of the smallest.
    ks : iterable of int, default=(1, 5, 10)
        Ranks at which precision is measured. Those beyond n are left out.
    n_pairs : int, default=10_000
        Pairs sampled from each part for verification, half of them of one class; fewer where fewer
        exist.
    random_state : int, RandomState instance or None, default=0
        For the draw of pairs. The same number gives the same pairs to every form.

    Returns
    -------
    Measured

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise.protocols import measure
    >>> X, y = load_iris(return_X_y=True)
    >>> measured = measure(None, X[::2], y[::2], X[1::2], y[1::2], name="Euclidean")
    >>> round(measured.knn_error, 3), round(measured.precision[5], 3)
    (0.04, 0.949)
    """
    y, y_test = np.asarray(y), np.asarray(y_test)
    n, d = X.shape
    if len(y_test) != X_test.shape[0] or len(y_test) == 0:
        raise InvalidInputError(
            f"X_test and y_test must have the same number of rows, at least one. Got "
            f"{X_test.shape[0]} rows and {len(y_test)} labels."
        )
    form = Mahalanobis.identity(d) if form is None else form
    correct = knn_correct(form, X, y, X_test, y_test, n_neighbors)
    smallest = int(np.unique(y, return_counts=True)[1].min())
    sknn = KNNClassifier(form, min(n_neighbors, smallest), rule="sknn").fit(X, y)
    blocks = form.bind(X, y).blocks(X_test, X)
    ks = [k for k in ks if k <= n]
    retrieved = retrieval_scores(blocks, y_test, y, ks)
    means = retrieved.means
    verification_error, decided = math.nan, None
    threshold = calibrate_threshold(form, X, y, n_pairs=n_pairs, random_state=random_state)
    if threshold is not None and has_both_kinds(y_test):
        unseen = sampled_pairs(X_test, y_test, n_pairs, random_state)
        closeness = form.pair_closeness(X_test[unseen.left], X_test[unseen.right])
        verification_error = balanced_error(closeness, unseen.y, threshold)
        same = unseen.y > 0
        correct_pairs = (closeness >= threshold) == same
        decided = np.stack([unseen.left, unseen.right, same, correct_pairs], axis=1)
    return Measured(
        name=name,
        knn_error=float(np.mean(~correct)),
        sknn_error=float(np.mean(sknn.predict(X_test) != y_test)),
        precision={k: means[f"precision@{k}"] for k in ks},
        mean_average_precision=means["map"],
        verification_error=verification_error,
        correct=correct,
        average_precision=retrieved.per_query["map"],
        decided_pairs=decided,
    )


def gain(before: Measured, after: Measured) -> Gain:
    """Compare two metrics on the same test examples by the s-test of their k-NN decisions.

    Parameters
    ----------
    before, after : Measured
        The two metrics, measured on the same test examples.

    Returns
    -------
    Gain
        The errors, and whether the difference is more than chance.

    See Also
    --------
    samewise.scores.s_test : The test.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from samewise import LDA, gain
    >>> from samewise.protocols import measure
    >>> X, y = load_wine(return_X_y=True)
    >>> parts = X[::2], y[::2], X[1::2], y[1::2]
    >>> plain = measure(None, *parts, name="Euclidean")
    >>> learned = measure(LDA().fit(*parts[:2]).metric_, *parts, name="LDA")
    >>> gain(plain, learned).mark
    '≫'
    """
    if len(before.correct) != len(after.correct):
        raise InvalidInputError(
            "A gain needs the same test examples before and after. Got "
            f"{len(before.correct)} and {len(after.correct)}."
        )
    return Gain.of(before.name, before.correct, after.name, after.correct)


def knn_correct(
    form: Form | None,
    X: Matrix,
    y: ArrayLike,
    X_test: Matrix,
    y_test: ArrayLike,
    n_neighbors: int = 3,
) -> NDArray[np.bool_]:
    """Which test examples k-NN decides rightly: array of shape (n_test,).

    Of fewer training examples than neighbors, all are asked.

    Examples
    --------
    >>> knn_correct(None, [[0.0], [1.0]], [0, 1], [[0.2], [0.9]], [0, 0], n_neighbors=1)
    array([ True, False])
    """
    k = min(n_neighbors, len(np.asarray(y)))
    return KNNClassifier(form, k).fit(X, y).predict(X_test) == np.asarray(y_test)


def calibrate_threshold(
    form: Form, X: Matrix, y: ArrayLike, *, n_pairs: int = 10_000, random_state: Any = 0
) -> float | None:
    """The threshold on closeness that tells pairs of one class from others best.

    None where there are no pairs of both kinds, or where the form needs the class of an example.

    Parameters
    ----------
    form : Form
    X : array or CSR matrix of shape (n, d)
    y : array of shape (n,)
    n_pairs : int, default=10_000
        Pairs sampled, half of them of one class; fewer where fewer exist.
    random_state : int, RandomState instance or None, default=0

    Examples
    --------
    >>> from samewise import Mahalanobis
    >>> calibrate_threshold(Mahalanobis.identity(1), [[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1])
    -3.0
    """
    y = np.asarray(y)
    if form.needs_labels or not has_both_kinds(y):
        return None
    pairs = sampled_pairs(X, y, n_pairs, random_state)
    return float(Verifier(form, criterion="balanced_accuracy").fit(pairs).threshold_)


def sampled_pairs(X: Matrix, y: NDArray[Any], n_pairs: int, random_state: Any) -> Pairs:
    """Pairs of both kinds; of few examples, all pairs, and no warning that these are fewer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamewiseWarning)
        return Pairs.from_labels(X, y, n_pairs, random_state=random_state)


def has_both_kinds(y: NDArray[Any]) -> bool:
    """Whether there are pairs of one class, and of two."""
    sizes = np.unique(y, return_counts=True)[1]
    return bool(len(sizes) > 1 and sizes.max() > 1)
