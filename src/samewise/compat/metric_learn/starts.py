"""metric-learn's names for where a learner starts, and for priors, as samewise takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_spd_matrix
from sklearn.utils import check_random_state

from samewise.compat.metric_learn.exceptions import NonPSDError
from samewise.exceptions import InvalidInputError
from samewise.learners.closed.classical import LDA


def start(
    init: Any, X: NDArray[np.float64], y: Any, n_components: int | None, random_state: Any
) -> Any:
    """`init` of samewise: "lda" and "random" are arrays there. Without classes (y is None) no LDA.

    Examples
    --------
    >>> import numpy as np
    >>> start("random", np.eye(3), None, 2, 0).shape
    (2, 3)
    """
    if not isinstance(init, str):
        return np.asarray(init)
    names = ["auto", "pca", "identity", "random", *(() if y is None else ("lda",))]
    if init not in names:
        raise InvalidInputError(
            f"init must be one of {', '.join(map(repr, names))}, or an array. Got {init!r}."
        )
    rows = n_components or X.shape[1]
    if init == "random":
        return check_random_state(random_state).normal(size=(rows, X.shape[1]))
    if init == "lda":
        L = LDA(shrinkage=1e-3).fit(X, y).components_
        # What LDA leaves out starts small.
        more = check_random_state(random_state).normal(size=(max(rows - len(L), 0), X.shape[1]))
        return np.vstack([L[:rows], 1e-3 * np.abs(L).mean() * more])
    return init


def prior_of(
    prior: Any, n_features: int, random_state: Any, name: str = "prior", definite: bool = True
) -> Any:
    """`prior` of samewise: "random" is an array there, and arrays are checked.

    Examples
    --------
    >>> prior_of("random", 2, 0).shape
    (2, 2)
    >>> prior_of([[1, 2], [2, 1]], 2, 0)
    Traceback (most recent call last):
    samewise.compat.metric_learn.exceptions.NonPSDError: prior must be positive definite. ...
    """
    if isinstance(prior, str):
        names = ("identity", "covariance", "random")
        if prior not in names:
            raise InvalidInputError(
                f"{name} must be one of {', '.join(map(repr, names))}, or an array. Got {prior!r}."
            )
        if prior == "random":
            return make_spd_matrix(n_features, random_state=check_random_state(random_state))
        return prior
    A = np.asarray(prior, dtype=np.float64)
    if A.shape != (n_features, n_features) or not np.isfinite(A).all() or not np.allclose(A, A.T):
        raise InvalidInputError(
            f"{name} must be a finite symmetric array of shape ({n_features}, {n_features}), as "
            f"there are {n_features} features. Got one of shape {A.shape}."
        )
    values = np.linalg.eigvalsh(A)
    rounding = np.abs(values).max() * len(A) * np.finfo(np.float64).eps
    if values[0] < -rounding or (definite and values[0] <= rounding):
        raise NonPSDError(
            f"{name} must be positive {'' if definite else 'semi-'}definite. Its least eigenvalue "
            f"is {values[0]:.3g}."
        )
    return A
