"""Verification: how well closeness tells similar pairs from dissimilar ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.exceptions import InvalidInputError

Criterion = Literal["accuracy", "balanced_accuracy", "f_beta", "far", "frr"]

_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Roc:
    """A receiver operating characteristic.

    Attributes
    ----------
    fpr, tpr : ndarray of shape (t,)
        False- and true-accept rates when pairs with closeness ≥ threshold are accepted.
    thresholds : ndarray of shape (t,)
        Descending, from accepting none to accepting all.
    auc : float
        Area under the curve: how often a similar pair is closer than a dissimilar one, ties
        counting one half.
    """

    fpr: _Floats
    tpr: _Floats
    thresholds: _Floats
    auc: float


def roc(closeness: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Roc:
    """False- against true-accept rate over every threshold on closeness.

    Thresholds lie midway between neighboring distinct values, the first and the last half a mean
    gap outside them.

    Parameters
    ----------
    closeness : array-like of shape (n_pairs,)
        Larger is closer.
    y : array-like of shape (n_pairs,)
        +1 similar, −1 dissimilar; both kinds must be there.
    sample_weight : array-like of shape (n_pairs,), default=None
        Weight of each pair; all equal by default.

    Returns
    -------
    Roc
        Rates and thresholds, and the area under the curve.

    Examples
    --------
    >>> from samewise.scores import roc
    >>> curve = roc([4.0, 3.0, 2.0, 1.0], [1, -1, 1, -1])
    >>> curve.thresholds
    array([4.375, 3.5  , 2.5  , 1.5  , 0.625])
    >>> curve.tpr
    array([0. , 0.5, 0.5, 1. , 1. ])
    >>> curve.auc
    0.75
    """
    thresholds, tp, fp = _count(closeness, y, sample_weight)
    fpr, tpr = fp / fp[-1], tp / tp[-1]
    auc = float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))
    return Roc(fpr=fpr, tpr=tpr, thresholds=thresholds, auc=auc)


def choose_threshold(
    closeness: ArrayLike,
    y: ArrayLike,
    criterion: Criterion = "accuracy",
    *,
    beta: float = 1.0,
    rate: float = 0.01,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The threshold on closeness that is best for a criterion; the highest of equally good ones.

    Parameters
    ----------
    closeness : array-like of shape (n_pairs,)
        Closeness of each pair; larger is closer.
    y : array-like of shape (n_pairs,)
        +1 similar, −1 dissimilar.
    criterion : {"accuracy", "balanced_accuracy", "f_beta", "far", "frr"}, default="accuracy"
        What to maximize: accuracy; the mean of true-accept and true-reject rate;
        F_β = (1+β²)·tp / ((1+β²)·tp + β²·fn + fp); "far": the true-accept rate while the
        false-accept rate is at most `rate`; "frr": the true-reject rate while the false-reject
        rate is at most `rate`.
    beta : float, default=1.0
        For "f_beta": how much recall weighs against precision.
    rate : float, default=0.01
        For "far" and "frr", in [0, 1].
    sample_weight : array-like of shape (n_pairs,), default=None
        Weight of each pair; all equal by default.

    Returns
    -------
    float
        Accept a pair when its closeness is at least this.

    Examples
    --------
    >>> from samewise.scores import choose_threshold
    >>> closeness, y = [5.0, 4.0, 3.0, 2.0, 1.0], [1, 1, -1, 1, -1]
    >>> choose_threshold(closeness, y, "accuracy")
    3.5
    >>> choose_threshold(closeness, y, "frr", rate=0.0)
    1.5
    """
    thresholds, tp, fp = _count(closeness, y, sample_weight)
    return float(thresholds[np.argmax(_gain(tp, fp, criterion, beta, rate))])


def verification_error(
    closeness: ArrayLike,
    y: ArrayLike,
    threshold: float,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Fraction of pairs on the wrong side: similar below the threshold, dissimilar at or above.

    Parameters
    ----------
    closeness : array-like of shape (n_pairs,)
        Closeness of each pair; larger is closer.
    y : array-like of shape (n_pairs,)
        +1 similar, −1 dissimilar.
    threshold : float
        A pair is accepted as similar when its closeness is at least this.
    sample_weight : array-like of shape (n_pairs,), default=None
        Weight of each pair; all equal by default.

    Returns
    -------
    float
        The (weighted) fraction of pairs that are judged wrongly.

    Examples
    --------
    >>> from samewise.scores import verification_error
    >>> verification_error([3.0, 2.0, 1.0, 0.0], [1, -1, -1, -1], threshold=1.5)
    0.25
    """
    c, signs, weights = _checked(closeness, y, sample_weight)
    return float(np.average((c >= threshold) != (signs > 0), weights=weights))


def equal_error_rate(
    closeness: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The rate at which as many similar pairs are rejected as dissimilar ones are accepted (EER).

    Where no threshold makes the two rates equal, it lies on the line between the two nearest points
    of the ROC curve, as does the rate of pairs that are as close as each other.

    Parameters
    ----------
    closeness : array-like of shape (n_pairs,)
        Larger is closer.
    y : array-like of shape (n_pairs,)
        +1 similar, −1 dissimilar; both kinds must be there.
    sample_weight : array-like of shape (n_pairs,), default=None
        Weight of each pair; all equal by default.

    Returns
    -------
    float
        In [0, 1]; 0.5 is chance.

    Examples
    --------
    >>> from samewise.scores import equal_error_rate
    >>> equal_error_rate([4.0, 3.0, 2.0, 1.0], [1, -1, 1, -1])
    0.5
    """
    curve = roc(closeness, y, sample_weight)
    # From −1, where nothing is accepted, to 1.
    more = curve.fpr - (1 - curve.tpr)
    after = int(np.argmax(more >= 0))
    step = -more[after - 1] / (more[after] - more[after - 1])
    return float(curve.fpr[after - 1] + step * (curve.fpr[after] - curve.fpr[after - 1]))


def fnmr_at_fmr(
    closeness: ArrayLike,
    y: ArrayLike,
    fmr: float = 0.001,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The false-non-match rate at the threshold at which the false-match rate is at most `fmr`.

    Of all thresholds that accept no more than that part of the dissimilar pairs, that which rejects
    the fewest similar ones. With fewer than 1/fmr dissimilar pairs none of them may be accepted,
    and the answer is about their closest pair.

    Parameters
    ----------
    closeness : array-like of shape (n_pairs,)
        Larger is closer.
    y : array-like of shape (n_pairs,)
        +1 similar, −1 dissimilar; both kinds must be there.
    fmr : float, default=0.001
        The false-match rate that is allowed, in [0, 1].
    sample_weight : array-like of shape (n_pairs,), default=None
        Weight of each pair; all equal by default.

    Returns
    -------
    float
        The part of similar pairs that are rejected.

    Examples
    --------
    >>> from samewise.scores import fnmr_at_fmr
    >>> fnmr_at_fmr([5.0, 4.0, 3.0, 2.0, 1.0], [1, 1, -1, 1, -1], fmr=0.0)
    0.33333333333333337
    """
    if not 0 <= fmr <= 1:
        raise InvalidInputError(f"fmr must be a rate from 0 to 1. Got {fmr!r} instead.")
    curve = roc(closeness, y, sample_weight)
    return float(1 - curve.tpr[curve.fpr <= fmr].max())


def balanced_error(
    closeness: ArrayLike,
    y: ArrayLike,
    threshold: float,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean of the false-accept and the false-reject rate.

    Parameters
    ----------
    closeness : array-like of shape (n_pairs,)
        Closeness of each pair; larger is closer.
    y : array-like of shape (n_pairs,)
        +1 similar, −1 dissimilar; both kinds must occur.
    threshold : float
        A pair is accepted as similar when its closeness is at least this.
    sample_weight : array-like of shape (n_pairs,), default=None
        Weight of each pair; all equal by default.

    Returns
    -------
    float
        The mean of the two rates.

    Examples
    --------
    >>> from samewise.scores import balanced_error
    >>> round(balanced_error([3.0, 2.0, 1.0, 0.0], [1, -1, -1, -1], threshold=1.5), 4)
    0.1667
    """
    c, signs, weights = _checked(closeness, y, sample_weight)
    _require_both(signs, weights)
    wrong = (c >= threshold) != (signs > 0)
    rates = [np.average(wrong[signs == s], weights=weights[signs == s]) for s in (1, -1)]
    return float(np.mean(rates))


def _gain(tp: _Floats, fp: _Floats, criterion: str, beta: float, rate: float) -> _Floats:
    """What the criterion wants as large as possible, at each threshold."""
    if not 0 <= rate <= 1:
        raise InvalidInputError(f"rate must be in [0, 1]. Got {rate} instead.")
    if not 0 < beta < np.inf:
        raise InvalidInputError(f"beta must be a positive number. Got {beta} instead.")
    fn, tn = tp[-1] - tp, fp[-1] - fp
    # 1 − 0.9 is a little below 0.1, which one of ten has.
    rate += 4 * np.finfo(np.float64).eps
    match criterion:
        case "accuracy":
            return tp + tn
        case "balanced_accuracy":
            return tp / tp[-1] + tn / fp[-1]
        case "f_beta":
            return (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp)
        case "far":
            return np.where(fp / fp[-1] <= rate, tp, -np.inf)
        case "frr":
            return np.where(fn / tp[-1] <= rate, tn, -np.inf)
    raise InvalidInputError(
        "criterion must be 'accuracy', 'balanced_accuracy', 'f_beta', 'far' or 'frr'. "
        f"Got {criterion!r} instead."
    )


def _count(
    closeness: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[_Floats, _Floats, _Floats]:
    """Thresholds, and the weights of similar and of dissimilar pairs accepted at each.

    The totals are the last sums themselves, so that accepting all leaves no rounding behind.
    """
    c, signs, weights = _checked(closeness, y, sample_weight)
    _require_both(signs, weights)
    values, group = np.unique(-c, return_inverse=True)
    values = -values
    tp = np.cumsum(np.bincount(group, weights * (signs > 0)))
    fp = np.cumsum(np.bincount(group, weights * (signs < 0)))
    return _between(values), np.concatenate([[0.0], tp]), np.concatenate([[0.0], fp])


def _between(values: _Floats) -> _Floats:
    """Midpoints of a descending row of distinct values, and one point beyond either end."""
    high, low = values[:-1], values[1:]
    middle = high / 2 + low / 2
    # The midpoint of two adjacent floats can round to the lower one, which must stay outside.
    middle = np.where(middle > low, middle, high)
    size = np.abs(values).max()
    pad = (values[0] - values[-1]) / (2 * len(values))
    pad = max(pad, 4 * np.finfo(np.float64).eps * size, np.finfo(np.float64).tiny)
    return np.concatenate([[values[0] + pad], middle, [values[-1] - pad]])


def _checked(
    closeness: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[_Floats, NDArray[np.int8], _Floats]:
    c = np.asarray(closeness, dtype=np.float64)
    signs = np.asarray(y)
    if c.ndim != 1 or signs.shape != c.shape or not c.size:
        raise InvalidInputError(
            "closeness and y must be one-dimensional, of the same length and not empty. "
            f"Got shapes {c.shape} and {signs.shape}."
        )
    if not np.all(np.isfinite(c)):
        raise InvalidInputError("closeness must be finite; it contains NaN or infinity.")
    if not np.all((signs == 1) | (signs == -1)):
        raise InvalidInputError("y must be +1 (similar) or -1 (dissimilar) for every pair.")
    if sample_weight is None:
        return c, signs.astype(np.int8), np.ones_like(c)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != c.shape or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InvalidInputError(
            f"sample_weight must hold {c.size} finite, non-negative weights. "
            f"Got shape {weights.shape}."
        )
    if not weights.sum() > 0:
        raise InvalidInputError("sample_weight must not be zero for every pair.")
    return c, signs.astype(np.int8), weights


def _require_both(signs: NDArray[np.int8], weights: _Floats) -> None:
    for sign, kind in ((1, "similar (+1)"), (-1, "dissimilar (-1)")):
        if not weights[signs == sign].sum() > 0:
            raise InvalidInputError(
                f"Both similar and dissimilar pairs are needed; there is no {kind} pair "
                "of positive weight. Add some."
            )
