"""metric-learn's names for where a learner starts, and for priors, as samewise takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_spd_matrix
from sklearn.utils import check_random_state

from samewise.learners.closed.classical import LDA


def start(
    init: Any, X: NDArray[np.float64], y: Any, n_components: int | None, random_state: Any
) -> Any:
    """`init` of samewise: "lda" and "random" are arrays there."""
    if not isinstance(init, str):
        return np.asarray(init)
    rows = n_components or X.shape[1]
    if init == "random":
        return check_random_state(random_state).normal(size=(rows, X.shape[1]))
    if init == "lda":
        L = LDA(shrinkage=1e-3).fit(X, y).components_
        # What LDA leaves out starts small.
        more = check_random_state(random_state).normal(size=(max(rows - len(L), 0), X.shape[1]))
        return np.vstack([L[:rows], 1e-3 * np.abs(L).mean() * more])
    return init


def prior_of(prior: Any, n_features: int, random_state: Any) -> Any:
    """`prior` of samewise: "random" is an array there."""
    if isinstance(prior, str):
        if prior == "random":
            return make_spd_matrix(n_features, random_state=check_random_state(random_state))
        return prior
    return np.asarray(prior)
