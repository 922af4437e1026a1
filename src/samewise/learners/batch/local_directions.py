"""Directions that tell examples apart in some place: what SCML chooses from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from samewise._typing import Array, Indices
from samewise.kernels.pairwise import row_slices, squared_distances
from samewise.learners.batch.comparison_learner import ComparedRows

Vector = NDArray[np.float64]

RIDGE = 0.1
"""What a local scatter gets on its diagonal, relative to its mean: there are few examples."""

BLOCK_BYTES = 2**22


def unit_rows(B: Vector) -> Vector:
    """Rows of unit length, those of length 0 left out.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8]])
    """
    sizes = np.abs(B).max(axis=1, initial=0)
    B = B[sizes > 0] / sizes[sizes > 0, None]
    return B / np.linalg.norm(B, axis=1)[:, None]


def local_discriminants(
    X: Array, labels: Indices, n_directions: int, random: np.random.RandomState
) -> Vector:
    """Fisher's discriminants among the examples of each class that are nearest to sampled ones.

    Each sampled example is looked at with 10 neighbors of each class and with 20 (beyond 50
    features with 20 and 50), as in the paper's code.
    """
    n, d = X.shape
    sizes = np.bincount(labels)
    each = min(np.count_nonzero(sizes) - 1, d)
    scales = (20, 50) if d > 50 else (10, 20)
    n_centers = min(-(-n_directions // (2 * each)), n)
    centers = np.sort(random.permutation(n)[:n_centers])
    members = [np.flatnonzero(labels == number) for number in np.flatnonzero(sizes)]
    near = [_nearest(X, centers, rows, scales[-1]) for rows in members]
    found = [
        _discriminants(X, [rows[place, :k] for rows in near], each)
        for k in scales
        for place in range(n_centers)
    ]
    return unit_rows(np.concatenate(found))[:n_directions]


def _nearest(X: Array, centers: Indices, rows: Indices, k: int) -> Indices:
    """The k of some rows that are nearest to each center, nearest first."""
    k, found = min(k, len(rows)), []
    for some in row_slices(len(centers), 8 * len(rows), BLOCK_BYTES):
        D = squared_distances(X[centers[some]], X[rows])
        part = np.argpartition(D, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(D, part, axis=1), axis=1, kind="stable")
        found.append(rows[np.take_along_axis(part, order, axis=1)])
    return np.concatenate(found)


def _discriminants(X: Array, classes: list[Indices], each: int) -> Vector:
    """The leading discriminants of some rows of each class, as rows."""
    means = np.array([X[rows].mean(axis=0) for rows in classes])
    inner = np.concatenate([X[rows] - mean for rows, mean in zip(classes, means, strict=True)])
    counts = np.array([len(rows) for rows in classes])
    outer = (means - np.average(means, axis=0, weights=counts)) * np.sqrt(counts)[:, None]
    within, between, d = inner.T @ inner, outer.T @ outer, X.shape[1]
    ridge = RIDGE * np.trace(within) / d or float(np.trace(between)) / d
    if not ridge > 0:
        return np.zeros((0, d))
    within[np.diag_indices(d)] += ridge
    return np.asarray(eigh(between, within, subset_by_index=[d - each, d - 1])[1].T[::-1])


def contrasts(rows: ComparedRows, n_directions: int, random: np.random.RandomState) -> Vector:
    """Directions in which far pairs of some sampled quadruplets are longer than their near pairs.

    Of d quadruplets at a time, or of all if there are fewer, the eigenvectors of Σ v vᵀ − Σ u uᵀ
    with positive eigenvalues, u and v being the differences of near and of far pairs.
    """
    n, d = len(rows), rows.Z.shape[1]
    found: list[Vector] = []
    # Most groups give half as many directions as features; one that gives none is no reason to go
    # on for ever.
    for _ in range(2 * n_directions):
        near, far = rows.differences(random.randint(0, n, min(d, n)))
        values, axes = np.linalg.eigh(far.T @ far - near.T @ near)
        found.extend(axes.T[values > 1e-12 * np.abs(values).max()][::-1])
        if len(found) >= n_directions:
            break
    return unit_rows(np.array(found).reshape(-1, d))[:n_directions]
