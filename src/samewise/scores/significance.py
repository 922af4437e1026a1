"""Are the differences between methods more than chance?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, ndtr

from samewise.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Friedman:
    """Result of `friedman`.

    Attributes
    ----------
    statistic : float
        χ² with k − 1 degrees of freedom, corrected for ties.
    p_value : float
    mean_ranks : ndarray of shape (n_methods,)
        1 is best; ties share the mean of their ranks.
    """

    statistic: float
    p_value: float
    mean_ranks: NDArray[np.float64]


def friedman(table: ArrayLike, *, higher_is_better: bool = False) -> Friedman:
    """Friedman's test that all methods perform alike over several data sets.

    Parameters
    ----------
    table : array-like of shape (n_datasets, n_methods)
        Results, by default errors. At least 2 data sets and 3 methods.
    higher_is_better : bool, default=False
        True if the table holds accuracies or the like.

    Returns
    -------
    Friedman
        The statistic, its p-value, and the mean rank of each method.

    Examples
    --------
    >>> from samewise.scores import friedman
    >>> result = friedman([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.0, 0.1, 0.1], [0.3, 0.4, 0.6]])
    >>> result.mean_ranks
    array([1.   , 2.125, 2.875])
    >>> round(result.p_value, 3)
    0.022
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 3:
        raise InvalidInputError(
            "table must have at least 2 rows (data sets) and 3 columns (methods). "
            f"Got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise InvalidInputError("table must be finite; leave out data sets with missing results.")
    # Imported where it is needed: it takes as long to load as all else here.
    from scipy import stats

    ranks = stats.rankdata(-values if higher_is_better else values, axis=1)
    mean_ranks = ranks.mean(axis=0)
    if np.all(ranks == ranks[0, 0]):
        return Friedman(0.0, 1.0, mean_ranks)
    statistic, p_value = stats.friedmanchisquare(*ranks.T)
    return Friedman(float(statistic), float(p_value), mean_ranks)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjustment of p-values, in the order given.

    The i-th smallest of m p-values (i = 1 … m) becomes max over j ≤ i of (m − j + 1)·p_(j), at
    most 1. Rejecting where the adjusted value is ≤ α keeps the chance of any false rejection ≤ α.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        P-values of m tests, in any order.

    Returns
    -------
    ndarray of shape (m,)
        The adjusted p-values, in the same order.

    Examples
    --------
    >>> from samewise.scores import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise InvalidInputError("p_values must be a one-dimensional array of values in [0, 1].")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(np.arange(p.size, 0, -1) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def holm_pairwise(mean_ranks: ArrayLike, n_datasets: int) -> NDArray[np.float64]:
    """Holm-adjusted p-values of all pairwise comparisons of mean ranks.

    z = (R_i − R_j) / √(k(k+1)/(6N)) for k methods over N data sets, two-sided, and Holm's
    adjustment over the k(k−1)/2 pairs.

    Parameters
    ----------
    mean_ranks : array-like of shape (k,)
        From `friedman`.
    n_datasets : int
        Number N of data sets the ranks are means of.

    Returns
    -------
    ndarray of shape (k, k)
        Symmetric, 1 on the diagonal.

    Examples
    --------
    >>> from samewise.scores import holm_pairwise
    >>> holm_pairwise([1.4, 2.0, 2.6], n_datasets=10).round(3)
    array([[1.   , 0.359, 0.022],
           [0.359, 1.   , 0.359],
           [0.022, 0.359, 1.   ]])
    """
    R = np.asarray(mean_ranks, dtype=np.float64)
    if R.ndim != 1 or R.size < 2 or not np.all(np.isfinite(R)):
        raise InvalidInputError("mean_ranks must be a one-dimensional, finite array of at least 2.")
    if n_datasets < 1:
        raise InvalidInputError(f"n_datasets must be at least 1. Got {n_datasets} instead.")
    k = R.size
    i, j = np.triu_indices(k, 1)
    z = np.abs(R[i] - R[j]) / np.sqrt(k * (k + 1) / (6 * n_datasets))
    adjusted = np.eye(k)
    adjusted[i, j] = adjusted[j, i] = holm(2 * ndtr(-z))
    return adjusted


@dataclass(frozen=True)
class SignTest:
    """Result of `s_test`.

    Attributes
    ----------
    p_value : float
        How often chance alone makes a difference as large as the observed one.
    mark : str
        How A compares with B: "≫" or "≪" for p ≤ 0.01, ">" or "<" for p ≤ 0.05, otherwise "=".
    n_better, n_worse : int
        Decisions in which only A was right, and in which only B was.
    """

    p_value: float
    mark: str
    n_better: int
    n_worse: int

    @property
    def verdict(self) -> str:
        """What the test says of A against B, in words."""
        return verdict(self.mark, self.p_value)


def s_test(
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    *,
    method: Literal["exact", "thesis"] = "exact",
) -> SignTest:
    """The sign test of two classifiers on the same decisions (micro sign test, s-test).

    Of the m decisions in which exactly one of A and B is right, A has k. If neither is better,
    k is binomial with p = ½, and the p-value is the chance of a k at least as far from m/2, on
    either side.

    Parameters
    ----------
    correct_a, correct_b : array-like of the same shape
        Whether A and B were right, decision by decision: booleans, or 0 and 1. In one-vs-rest mode
        there is a decision for each example and class.
    method : {"exact", "thesis"}, default="exact"
        "thesis" is the test of the second reference: one-sided, in the direction that was observed,
        and for m > 12 by the tail of the normal distribution at |k − m/2|/(√m/2).

    Returns
    -------
    SignTest
        The p-value, its mark, and the decisions in which only one was right.

    References
    ----------
    Yang and Liu, *A re-examination of text categorization methods*, SIGIR 1999. Qamar, *Generalized
    Cosine and Similarity Metrics*, thesis, Grenoble 2010, section 2.5.2, and 5.3.1 for the marks.

    Examples
    --------
    >>> from samewise.scores import s_test
    >>> s_test([1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1, 0])
    SignTest(p_value=0.0625, mark='=', n_better=5, n_worse=0)
    """
    if method not in ("exact", "thesis"):
        raise InvalidInputError(f"method must be 'exact' or 'thesis'. Got {method!r} instead.")
    a, b = _decisions(correct_a, "correct_a"), _decisions(correct_b, "correct_b")
    if a.shape != b.shape:
        raise InvalidInputError(
            "correct_a and correct_b must judge the same decisions. Got shapes "
            f"{a.shape} and {b.shape}."
        )
    k, worse = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    m = k + worse
    if method == "thesis" and m > 12:
        p_value = float(ndtr(-abs(k - 0.5 * m) / (0.5 * np.sqrt(m))))
    else:
        # Both tails are those of the larger of k and m − k; they meet at m/2.
        tail = float(bdtrc(max(k, worse) - 1, m, 0.5))
        p_value = tail if method == "thesis" else min(1.0, 2 * tail)
    return SignTest(p_value, marked(p_value, k > worse), k, worse)


def marked(p_value: float, better: bool) -> str:
    """The mark of a p-value: "≫" or "≪" for p ≤ 0.01, ">" or "<" for p ≤ 0.05, otherwise "="."""
    marks = "≫>" if better else "≪<"
    return marks[0] if p_value <= 0.01 else marks[1] if p_value <= 0.05 else "="


def verdict(mark: str, p_value: float) -> str:
    """What the s-test says of a change, in words.

    Parameters
    ----------
    mark : {"≫", ">", "=", "<", "≪"}
        The mark of the test.
    p_value : float
        Its p-value.

    Returns
    -------
    str
        "better" or "worse" for p ≤ 0.05, otherwise "no difference shown", each with the p-value.

    Examples
    --------
    >>> from samewise.scores import s_test, verdict
    >>> test = s_test([1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0])
    >>> verdict(test.mark, test.p_value)
    'better, p = 0.031'
    """
    words = {"=": "no difference shown", "<": "worse", "≪": "worse"}
    p = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    return f"{words.get(mark, 'better')}, {p}"


def _decisions(correct: ArrayLike, name: str) -> NDArray[np.bool_]:
    values = np.asarray(correct)
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise InvalidInputError(f"{name} must hold booleans, or 0 and 1, one for each decision.")
    return values.astype(bool)
