"""Metrics to stay near to: the identity, the inverse of the covariance, or a given one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Mahalanobis
from samewise.learners.batch.batch_learner import regularized
from samewise.learners.dense_rows import dense_rows

Vector = NDArray[np.float64]


def prior_metric(prior: Any, X: Matrix, owner: str) -> tuple[Vector, Vector]:
    """A₀⁻¹ and A₀ for examples X, if the prior is "identity", "covariance", or a metric."""
    d = X.shape[1]
    if isinstance(prior, str) and prior == "covariance":
        rows = dense_rows(X, owner).astype(np.float64)
        # From the first row on, what is constant is exactly zero.
        C = np.cov((rows - rows[0]).T).reshape(d, d)
        sizes = np.sqrt(np.diagonal(C))
        unit = np.outer(*[np.where(sizes > 0, sizes, sizes.mean() or 1.0)] * 2)
        C = unit * regularized(C / unit, "the covariance of the examples", owner)
        return C, _inverse(C)
    A = definite(prior, d, "prior")
    return _inverse(A), A


def _inverse(A: Vector) -> Vector:
    B = np.linalg.inv(A).astype(np.float64)
    return (B + B.T) / 2


def definite(given: Any, d: int, name: str) -> Vector:
    """A positive definite matrix of d features: the identity, an array or a form."""
    if isinstance(given, str):
        return np.eye(d)
    try:
        form = given if isinstance(given, Mahalanobis) else Mahalanobis(given)
    except InvalidInputError as error:
        raise type(error)(f"The '{name}' parameter is not a metric. {error}") from error
    A = form.matrix.astype(np.float64)
    if len(A) != d:
        raise InvalidInputError(
            f"{name} has {len(A)} features, but the data have {d}; give a matrix of shape "
            f"({d}, {d})."
        )
    values = np.linalg.eigvalsh(A)
    if not values[0] > 1e-12 * max(values[-1], 0.0):
        raise InvalidInputError(
            f"The '{name}' parameter must be positive definite, because the LogDet divergence from "
            f"a singular matrix is infinite. Got eigenvalues from {values[0]:.3g} to "
            f"{values[-1]:.3g}; add a small multiple of the identity."
        )
    return A
