"""How much closer each example is to its own class than to the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form, Mahalanobis
from samewise.search.distance_search import BLOCK_BYTES, items_of
from samewise.search.hits import hits_and_misses
from samewise.supervision.supervision_checks import labeled_rows


def margins(
    form: Form | None, X: Matrix, y: ArrayLike, n_neighbors: int = 1, *, base: Form | None = None
) -> NDArray[np.float64]:
    """Closeness to the targets minus closeness to the impostors, for each example.

    With targets y_i^q, the k nearest of the same class, and impostors z_i^q, the k nearest of the
    other classes, the margin of x_i is Σ_q s(x_i, y_i^q) − s(x_i, z_i^q); for a bilinear similarity
    x_iᵀA Σ_q(y_i^q − z_i^q), and for a distance D, Σ_q D(x_i, z_i^q) − D(x_i, y_i^q).

    Parameters
    ----------
    form : Form or None
        What closeness means. None is the Euclidean distance.
    X : array or CSR matrix of shape (n, d)
        Examples, one row each.
    y : array of shape (n,)
        Class labels, of at least two classes.
    n_neighbors : int, default=1
        Number k of targets, and of impostors.
    base : Form, default=None
        Under which targets and impostors are found. By default it is the form itself: with k = 1
        a margin is then positive exactly where the nearest neighbor has the right label. Learners
        that keep the neighbors of a base similarity reach their margins under that one.

    Returns
    -------
    array of shape (n,)
        For a histogram: ``np.histogram(margins(form, X, y), bins=20)``. In a class of k members or
        fewer, an example has fewer targets and as many impostors; with no target the margin is
        NaN.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, section 4.4 and
    figures 4.3–4.26.

    Examples
    --------
    >>> from samewise import margins
    >>> margins(None, [[0.0], [1.0], [3.0], [7.0]], [0, 0, 1, 1])
    array([ 2.,  1., -2.,  2.])
    """
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, int | np.integer):
        raise InvalidInputError(f"n_neighbors must be an integer. Got {n_neighbors!r} instead.")
    if n_neighbors < 1:
        raise InvalidInputError(f"n_neighbors must be at least 1. Got {n_neighbors} instead.")
    X = items_of(form, X)
    classes, labels = np.unique(labeled_rows(X, y)[1], return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError("Margins need labels of at least two classes. Got one class.")
    form = Mahalanobis.identity(X.shape[1]) if form is None else form
    under = form if base is None else base

    def blocks(asked: Any, order: Any) -> Any:
        return under.blocks(X[asked], X[order], block_bytes=BLOCK_BYTES)

    hits, misses = hits_and_misses(blocks, labels, min(int(n_neighbors), len(labels)))
    total, counted = np.zeros(len(labels)), np.zeros(len(labels), dtype=np.intp)
    for hit, miss in zip(hits.T, misses.T, strict=True):
        both = np.flatnonzero((hit >= 0) & (miss >= 0))
        own = form.pair_closeness(X[both], X[hit[both]])
        total[both] += own - form.pair_closeness(X[both], X[miss[both]])
        counted[both] += 1
    total[counted == 0] = np.nan
    return total
