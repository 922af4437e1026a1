"""Features as memberships in fuzzy sets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from samewise._typing import Array

__all__ = ["Fuzzify"]

_NAMES = ("low", "med", "high")


class Fuzzify(TransformerMixin, BaseEstimator):
    """Each feature becomes three: how low, how medium and how high its value is, in [0, 1].

    With q₁ and q₂ the quantiles of a feature at 33 % and 66 %, a₁ = (min + q₁)/2,
    a₂ = (q₁ + q₂)/2 and a₃ = (q₂ + max)/2,

        low   falls from 1 at a₁ to 0 at q₂,
        med   rises from 0 at q₁ to 1 at a₂, and falls to 0 at q₂,
        high  rises from 0 at q₁ to 1 at a₃,

    in straight lines, and stays at its last value outside.

    Attributes
    ----------
    knots_ : array of shape (5, n_features)
        a₁, q₁, a₂, q₂ and a₃ of each feature.
    n_features_in_ : int

    Notes
    -----
    The thesis prints the rising side of med as (a₂ − x)/(a₂ − q₁), which falls from 1 at q₁ to 0 at
    a₂ and then jumps to 1; here it is (x − q₁)/(a₂ − q₁).

    Where quantiles coincide, because a value is frequent, a line becomes a step: low is 1 up to a₁,
    high is 1 from a₃ on, and med is 0 where q₁ = q₂.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, section 2.4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments._fuzzy import Fuzzify
    >>> X = np.arange(101.0)[:, None]
    >>> fuzzy = Fuzzify().fit(X)
    >>> fuzzy.transform([[0.0], [49.5], [100.0]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.33, 1.  , 0.33],
           [0.  , 0.  , 1.  ]])
    >>> fuzzy.get_feature_names_out()
    array(['x0_low', 'x0_med', 'x0_high'], dtype=object)
    """

    def fit(self, X: Any, y: object = None) -> Self:
        """Find the fuzzy sets of each feature.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored, default=None
        """
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        lowest, q1, q2, highest = np.quantile(X, [0, 0.33, 0.66, 1], axis=0)
        # Halves first: the sum of two large numbers may overflow.
        a1, a2, a3 = lowest / 2 + q1 / 2, q1 / 2 + q2 / 2, q2 / 2 + highest / 2
        self.knots_ = np.stack([a1, q1, a2, q2, a3])
        return self

    def transform(self, X: Any) -> Array:
        """Memberships of each value.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        array of shape (n, 3d)
            low, med and high of the first feature, then of the second, and so on.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        a1, q1, a2, q2, a3 = self.knots_.astype(X.dtype, copy=False)
        low = np.where(X <= a1, 1, 1 - _rise(X, a1, q2))
        med = np.where(X < a2, _rise(X, q1, a2), 1 - _rise(X, a2, q2))
        high = np.where(X >= a3, 1, _rise(X, q1, a3))
        return np.stack([low, med, high], axis=2).reshape(len(X), -1).astype(X.dtype, copy=False)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the features with "_low", "_med" and "_high"."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([f"{name}_{part}" for name in names for part in _NAMES], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _rise(X: Array, start: Array, end: Array) -> Array:
    """0 up to start, 1 from end on, and a straight line between; a step to 1 if they coincide."""
    width = end - start
    flat = width == 0
    rising = np.clip((X - start) / np.where(flat, 1, width), 0, 1)
    return np.where(flat, X >= start, rising)
