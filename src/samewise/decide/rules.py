"""Decision rules: functions of the neighbors' labels or of closeness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices


def vote(labels_of_neighbors: Indices, n_classes: int) -> tuple[Indices, NDArray[np.float64]]:
    """Majority of the k nearest; on a tie, k shrinks by one until the tie breaks.

    Parameters
    ----------
    labels_of_neighbors : ndarray of shape (n, k)
        Class numbers of each row's neighbors, nearest first.
    n_classes : int

    Returns
    -------
    winners : ndarray of shape (n,)
        Class numbers.
    probabilities : ndarray of shape (n, n_classes)
        Fractions of the votes at the k where the tie broke, so that their largest is the winner.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.decide import vote
    >>> winners, probabilities = vote(np.array([[1, 0, 0], [1, 0, 2]]), 3)
    >>> winners
    array([0, 1])
    >>> probabilities.round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 1.  , 0.  ]])
    """
    labels_of_neighbors = labels_of_neighbors.astype(np.intp, copy=False)
    n, k = labels_of_neighbors.shape
    cells = labels_of_neighbors + n_classes * np.arange(n)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n * n_classes).reshape(n, n_classes)
    voters = np.full(n, k)
    open_rows = np.arange(n)
    while open_rows.size:
        tallies = counts[open_rows]
        leaders = (tallies == tallies.max(axis=1, keepdims=True)).sum(axis=1)
        open_rows = open_rows[leaders > 1]
        voters[open_rows] -= 1
        counts[open_rows, labels_of_neighbors[open_rows, voters[open_rows]]] -= 1
    return counts.argmax(axis=1), counts / voters[:, None]


def sum_closeness(closeness: Array) -> tuple[Indices, Array]:
    """SkNN: the class with the largest sum of closeness to its own k nearest members.

    Parameters
    ----------
    closeness : ndarray of shape (n, n_classes, k)
        Closeness of each row to the k nearest members of each class; larger is closer.

    Returns
    -------
    winners : ndarray of shape (n,)
        Class numbers; the smaller one if sums are equal.
    sums : ndarray of shape (n, n_classes)

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.decide import sum_closeness
    >>> winners, sums = sum_closeness(np.array([[[0.9, 0.1], [0.7, 0.6]]]))
    >>> winners, sums
    (array([1]), array([[1. , 1.3]]))
    """
    sums = closeness.sum(axis=2)
    return sums.argmax(axis=1), sums
