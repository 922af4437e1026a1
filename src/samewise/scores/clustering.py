"""Clusters in a learned space: how far they are the classes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class ClusteringScores:
    """Result of `clustering_scores`.

    Attributes
    ----------
    nmi : float
        Normalized mutual information of clusters and classes, 2 I(C; Y) / (H(C) + H(Y)). It grows
        with the number of clusters, also by chance.
    ami : float
        The same less what is expected by chance: 0 for random clusters, 1 for the classes.
    adjusted_rand : float
        Of all pairs of examples, on how many clusters and classes agree, less what is expected by
        chance: 0 for random clusters, 1 for the classes.
    clusters : int array of shape (n,)
        The cluster of each example.
    """

    nmi: float
    ami: float
    adjusted_rand: float
    clusters: NDArray[np.int64]


def clustering_scores(
    Z: ArrayLike,
    y: ArrayLike,
    n_clusters: int | None = None,
    *,
    n_init: int = 10,
    random_state: Any = None,
) -> ClusteringScores:
    """Cluster examples by k-means in the learned space, and compare clusters with classes.

    Labels are used to judge the clusters, not to find them: give examples that nothing was learned
    from.

    Parameters
    ----------
    Z : array-like of shape (n, n_components)
        Examples in the learned space, such as ``form.embed(X)`` or ``learner.transform(X)``.
    y : array-like of shape (n,)
        Their classes.
    n_clusters : int, default=None
        By default as many as classes.
    n_init : int, default=10
        Starts of k-means, of which the best by its own objective is kept.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Returns
    -------
    ClusteringScores
        Mutual information, normalized and adjusted, adjusted Rand index, and the clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import LDA
    >>> from samewise.scores import clustering_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = LDA().fit(X[::2], y[::2])
    >>> plain = clustering_scores(X[1::2], y[1::2], random_state=0)
    >>> learned = clustering_scores(lda.transform(X[1::2]), y[1::2], random_state=0)
    >>> learned.adjusted_rand > plain.adjusted_rand + 0.1
    True
    """
    # Here, because other scores need none of it, and it takes long to load.
    from sklearn.cluster import KMeans
    from sklearn.metrics import (
        adjusted_mutual_info_score,
        adjusted_rand_score,
        normalized_mutual_info_score,
    )

    Z, labels = np.asarray(Z), np.asarray(y)
    if Z.ndim != 2 or Z.dtype.kind not in "bfiu" or not np.isfinite(Z).all():
        raise InvalidInputError(
            "Z must be a dense array of finite numbers of shape (n, n_components). Got "
            f"{Z.ndim} dimension(s) of {Z.dtype}; map sparse rows first (form.embed)."
        )
    if labels.shape != (len(Z),):
        raise InvalidInputError(
            f"y must have one label for each of the {len(Z)} rows of Z. Got shape {labels.shape}."
        )
    k = len(np.unique(labels)) if n_clusters is None else n_clusters
    if not isinstance(k, Integral) or not 1 <= k <= len(Z):
        raise InvalidInputError(
            f"n_clusters must be an integer from 1 to {len(Z)}, the number of rows. Got {k!r}."
        )
    clusters = KMeans(k, n_init=n_init, random_state=random_state).fit_predict(Z)
    return ClusteringScores(
        float(normalized_mutual_info_score(labels, clusters)),
        float(adjusted_mutual_info_score(labels, clusters)),
        float(adjusted_rand_score(labels, clusters)),
        clusters.astype(np.int64),
    )
