"""Pairs that a known metric and threshold separate with margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from samewise._typing import Array, Signs
from samewise.datasets._parameter_checks import check_count, check_real

# Distances stay this fraction off the margin, so that rounding cannot push a pair across it.
_CLEAR = 0.01


def make_separable_pairs(
    n_pairs: int = 200,
    n_features: int = 5,
    *,
    rank: int | None = None,
    similar: float = 0.5,
    b: float = 2.0,
    nuisance: float = 4.0,
    random_state: Any = None,
) -> tuple[Array, Signs, Array, float]:
    """Make pairs (x, x') that a known (M*, b*) separates with margin 1.

    Every pair satisfies ``y (b* − vᵀM*v) ≥ 1`` with ``v = x − x'``: the squared distance is
    uniform in ``[0, b* − 1]`` for similar pairs and in ``[b* + 1, 2(b* + 1)]`` for dissimilar
    ones, up to 1 % that keeps it clear of the margin, in a uniform direction of M*'s metric.

    Parameters
    ----------
    n_pairs : int, default=200
        Number of pairs.
    n_features : int, default=5
        Dimension d.
    rank : int, default=None
        Rank of M*, at most d; d if not given. Along the other d − rank directions the two points
        differ at random, and the label does not depend on it.
    similar : float, default=0.5
        Share of similar pairs, in [0, 1].
    b : float, default=2.0
        The threshold b*, above 1: at 1 a similar pair would have to be one point twice.
    nuisance : float, default=4.0
        Expected squared length of the part of v that M* does not see.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible pairs.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2, n_features)
        The two points of each pair.
    y : int8 ndarray of shape (n_pairs,)
        +1 for similar, −1 for dissimilar.
    M : ndarray of shape (n_features, n_features)
        M*, positive semi-definite, with eigenvalues in [0.5, 2] and zeros.
    b : float
        b*.

    Examples
    --------
    >>> from samewise.datasets import make_separable_pairs
    >>> pairs, y, M, b = make_separable_pairs(6, 4, rank=2, random_state=0)
    >>> v = pairs[:, 0] - pairs[:, 1]
    >>> bool((y * (b - ((v @ M) * v).sum(axis=1)) >= 1).all())
    True
    >>> int(np.linalg.matrix_rank(M)), int((y == 1).sum())
    (2, 3)
    """
    n, d = check_count("n_pairs", n_pairs, 1), check_count("n_features", n_features, 1)
    r = d if rank is None else check_count("rank", rank, 1, d)
    share = check_real("similar", similar, 0, 1, open_low=False)
    b = check_real("b", b, 1, open_low=True)
    nuisance = check_real("nuisance", nuisance, 0, open_low=False)
    rng = check_random_state(random_state)

    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    eigenvalues = rng.uniform(0.5, 2.0, size=r)
    y = np.full(n, -1, dtype=np.int8)
    y[rng.permutation(n)[: round(share * n)]] = 1
    distances = _distances(y, b, rng)
    u = rng.standard_normal((n, r))
    u *= np.sqrt(distances / (u * u).sum(axis=1))[:, None]
    unseen = rng.standard_normal((n, d - r)) * np.sqrt(nuisance / max(d - r, 1))
    v = np.hstack([u / np.sqrt(eigenvalues), unseen]) @ Q.T

    left = rng.standard_normal((n, d))
    M = (Q[:, :r] * eigenvalues) @ Q[:, :r].T
    return np.stack([left, left - v], axis=1), y, (M + M.T) / 2, b


def _distances(y: Signs, b: float, rng: np.random.RandomState) -> NDArray[np.float64]:
    near = rng.uniform(0, (b - 1) * (1 - _CLEAR), size=y.size)
    far = rng.uniform((b + 1) * (1 + _CLEAR), 2 * (b + 1), size=y.size)
    return np.where(y == 1, near, far)
