"""Fisher's discriminants: the solutions a of S_b a = λ S_w a with aᵀS_w a = 1, largest λ first."""

from __future__ import annotations

import numpy as np

from samewise._typing import Array, Indices
from samewise.learners.closed.closed_form import shrunk

RANK = 1e-4
"""Deviations below, of features scaled to deviations of 1, count as none, as in scikit-learn."""


def discriminants(Sw: Array, means: Array, weights: Array) -> tuple[Array, int]:
    """Discriminants as rows, where S_w has rank; and that rank.

    Parameters
    ----------
    Sw : array of shape (d, d)
        The covariance within classes.
    means : array of shape (n_classes, d)
        Less that of all rows.
    weights : array of shape (n_classes,)
        Parts of the rows.
    """
    sizes = np.sqrt(np.diagonal(Sw))
    used = np.flatnonzero(sizes)
    sizes = sizes[used]
    values, axes = np.linalg.eigh(Sw[np.ix_(used, used)] / sizes / sizes[:, None])
    return _separating(values, axes.T, sizes, used, means, weights)


def discriminants_of_rows(within: Array, means: Array, weights: Array) -> tuple[Array, int]:
    """Discriminants of fewer rows than features, without a matrix of all features.

    Parameters
    ----------
    within : array of shape (n, d)
        The rows less the mean of their class.
    means : array of shape (n_classes, d)
        Less that of all rows.
    weights : array of shape (n_classes,)
        Parts of the rows.
    """
    sizes = np.sqrt(np.einsum("ij,ij->j", within, within) / len(within))
    used = np.flatnonzero(sizes)
    sizes = sizes[used]
    scaled = within[:, used] / (sizes * np.sqrt(len(within)))
    values, U = np.linalg.eigh(scaled @ scaled.T)
    values, U = values[values > RANK**2], U[:, values > RANK**2]
    axes = (U / np.sqrt(values)).T @ scaled
    return _separating(values, axes, sizes, used, means, weights)


def shrunk_discriminants(Sw: Array, S: Array, shrinkage: float) -> Array:
    """Those of S_w and the covariance S of all rows, both shrunk towards the identity.

    Those beyond the number of classes less one do not tell classes apart.
    """
    # Imported where it is needed: it loads half of SciPy.
    import scipy.linalg

    Sw, S = shrunk(Sw, shrinkage), shrunk(S, shrinkage)
    L: Array = scipy.linalg.eigh(S - Sw, Sw)[1][:, ::-1].T
    return L


def _separating(
    values: Array, axes: Array, sizes: Array, used: Indices, means: Array, weights: Array
) -> tuple[Array, int]:
    """From the eigenvalues and eigenvectors, as rows, of S_w over `sizes`."""
    kept = values > RANK**2
    W = axes[kept] / np.sqrt(values[kept])[:, None] / sizes
    between = np.sqrt(weights)[:, None] * means[:, used]
    _, spread, V = np.linalg.svd(between @ W.T, full_matrices=False)
    r = np.count_nonzero(spread > RANK * spread[0])
    L = np.zeros((r, means.shape[1]))
    L[:, used] = V[:r] @ W
    return L, int(np.count_nonzero(kept))
