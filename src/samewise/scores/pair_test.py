"""Is a difference on pairs more than chance? Pairs that share an example are not independent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise.exceptions import InvalidInputError
from samewise.scores.significance import marked, verdict

_ENTRIES = 2**20


@dataclass(frozen=True)
class PairTest:
    """Result of `pair_test`.

    Attributes
    ----------
    difference : float
        Balanced error of A minus that of B; negative where A is better.
    interval : (float, float)
        Its 95 % interval over the resamples.
    p_value : float
        Two-sided.
    mark : str
        How A compares with B: "≫" or "≪" for p ≤ 0.01, ">" or "<" for p ≤ 0.05, otherwise "=".
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    mark: str

    @property
    def verdict(self) -> str:
        """What the test says of A against B, in words."""
        return verdict(self.mark, self.p_value)


def pair_test(
    pairs: ArrayLike,
    same: ArrayLike,
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    *,
    n_resamples: int = 2000,
    random_state: Any = 0,
) -> PairTest:
    """Bootstrap test of two metrics that decided the same pairs, by example.

    An example is in many pairs, so that decisions on pairs are not independent and a sign test of
    them finds differences that are chance. Here examples are drawn with replacement; a pair counts
    w_i·w_j times if its examples were drawn w_i and w_j times. With δ* the difference of the
    balanced errors in a resample, p = 2·min(P(δ* ≤ 0), P(δ* ≥ 0)).

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
        Numbers of the two examples of each pair.
    same : array-like of shape (n_pairs,)
        Whether they are of the same class: booleans, or 0 and 1. Both must occur.
    correct_a, correct_b : array-like of shape (n_pairs,)
        Whether A and B decided the pair rightly: booleans, or 0 and 1.
    n_resamples : int, default=2000
        Number of resamples.
    random_state : int, RandomState instance or None, default=0
        For the resamples.

    Returns
    -------
    PairTest
        The difference of the balanced errors, its interval, and the p-value with its mark.

    See Also
    --------
    s_test : For decisions on single examples.

    References
    ----------
    Snijders and Borgatti, *Non-parametric standard errors and tests for network statistics*,
    Connections 22, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.scores import pair_test
    >>> pairs = np.array([[i, j] for i in range(20) for j in range(i)])
    >>> same = (pairs % 2).sum(axis=1) != 1
    >>> one_in_five_wrong = pairs.sum(axis=1) % 5 > 0
    >>> pair_test(pairs, same, np.ones(len(pairs)), one_in_five_wrong).verdict
    'better, p < 0.001'
    >>> pair_test(pairs, same, one_in_five_wrong, one_in_five_wrong).verdict
    'no difference shown, p = 1.000'
    """
    ends = np.asarray(pairs)
    kinds, a, b = (np.asarray(values) for values in (same, correct_a, correct_b))
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InvalidInputError(
            f"pairs must be whole numbers of shape (n_pairs, 2). Got {ends.dtype} {ends.shape}."
        )
    for name, values in (("same", kinds), ("correct_a", a), ("correct_b", b)):
        if values.shape != (len(ends),) or not np.isin(values, (0, 1)).all():
            raise InvalidInputError(
                f"{name} must hold booleans, or 0 and 1, one for each of {len(ends)} pairs."
            )
    kinds = kinds.astype(bool)
    if kinds.all() or not kinds.any():
        raise InvalidInputError("same must name pairs of both kinds.")
    if n_resamples < 100:
        raise InvalidInputError(f"n_resamples must be at least 100. Got {n_resamples}.")
    # Errors that only one of the two makes; what both decide alike cancels.
    excess = b.astype(np.float64) - a.astype(np.float64)
    numbers = np.unique(ends, return_inverse=True)[1].reshape(ends.shape)
    random = check_random_state(random_state)
    drawn = np.concatenate([*_differences(numbers, kinds, excess, n_resamples, random)])
    found = float((excess[kinds].mean() + excess[~kinds].mean()) / 2)
    tail = min(np.sum(drawn <= 0), np.sum(drawn >= 0))
    p_value = min(1.0, 2 * float(tail + 1) / (len(drawn) + 1))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return PairTest(found, (float(low), float(high)), p_value, marked(p_value, found < 0))


def _differences(
    ends: NDArray[np.intp],
    same: NDArray[np.bool_],
    excess: NDArray[np.float64],
    n_resamples: int,
    random: np.random.RandomState,
) -> Iterator[NDArray[np.float64]]:
    """The difference in each resample; those that have lost all pairs of a kind are left out."""
    n = int(ends.max()) + 1
    # For each kind, the excess and the number of its pairs.
    sums = np.stack([same * excess, same, ~same * excess, ~same], axis=1).astype(np.float64)
    step = max(1, _ENTRIES // max(n, len(ends)))
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        counts = random.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        totals = (counts[:, ends[:, 0]] * counts[:, ends[:, 1]]) @ sums
        whole = (totals[:, 1] > 0) & (totals[:, 3] > 0)
        kept = totals[whole]
        yield (kept[:, 0] / kept[:, 1] + kept[:, 2] / kept[:, 3]) / 2
