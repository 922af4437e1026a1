"""Chunklets: small sets of points known to be of one class, though not of which."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.supervision.pairs import Pairs
from samewise.supervision.supervision_checks import parameter_array


def checked_chunklets(chunklets: ArrayLike, n: int) -> Indices:
    """The chunklet of each of n points as given: a number from 0, or −1 for none."""
    numbers = parameter_array(chunklets, "chunklets")
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InvalidInputError(
            f"chunklets must hold one integer for each of the {n} points, −1 for none. Got "
            f"{numbers.dtype} of shape {numbers.shape} instead."
        )
    if numbers.min(initial=0) < -1:
        raise InvalidInputError(
            f"chunklets must be numbered from 0, with −1 for none. Got {numbers.min()}."
        )
    return numbers


def is_known(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are known: a number −1 stands for none, as in scikit-learn."""
    return y != -1 if y.dtype.kind in "ifO" else np.ones(len(y), dtype=bool)


def linked_chunklets(pairs: Pairs) -> Indices:
    """The chunklet of each row of `pairs.X`: what similar pairs link, directly or not; or −1.

    Pairs of weight 0 are passed over.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [2.0], [3.0]], [0, 3, 1], [1, 2, 3], y=[1, -1, 1])
    >>> linked_chunklets(pairs).tolist()
    [0, 0, -1, 0]
    """
    n = pairs.X.shape[0]
    similar = pairs.y == 1
    if pairs.sample_weight is not None:
        similar &= pairs.sample_weight > 0
    left, right = pairs.left[similar], pairs.right[similar]
    links = sp.coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n))
    _, numbers = connected_components(links, directed=False)
    alone = np.bincount(numbers)[numbers] < 2
    return np.where(alone, -1, numbers)


def draw_chunklets(
    labels: Indices,
    n_chunklets: int,
    chunk_size: int,
    random: np.random.RandomState,
    stacklevel: int = 2,
) -> Indices:
    """Chunklets of `chunk_size` points of one class, no point in two; −1 for the others.

    Where fewer exist than were asked for, all of them are taken, with a warning.

    Parameters
    ----------
    labels : array of class numbers from 0
    n_chunklets, chunk_size : int
    random : RandomState
    stacklevel : int, default=2
        For the warning.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array([0, 0, 0, 0, 1, 1])
    >>> drawn = draw_chunklets(labels, 2, 2, np.random.RandomState(0))
    >>> [labels[drawn == chunklet].tolist() for chunklet in range(2)]
    [[1, 1], [0, 0]]
    """
    mixed = random.permutation(len(labels))
    mixed = mixed[np.argsort(labels[mixed], kind="stable")]
    sizes = np.bincount(labels)
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    whole = rank < np.repeat(sizes // chunk_size * chunk_size, sizes)
    rows = mixed[whole].reshape(-1, chunk_size)
    if not len(rows):
        raise InvalidInputError(
            f"No class has the chunk_size={chunk_size} points of a chunklet. Lower chunk_size, or "
            "give more points."
        )
    if len(rows) < n_chunklets:
        warnings.warn(
            f"The classes have {len(rows)} chunklets of {chunk_size} points only; all are taken. "
            f"Lower n_chunklets={n_chunklets} or chunk_size, or give more points.",
            SamewiseWarning,
            stacklevel=stacklevel,
        )
    chosen = random.permutation(len(rows))[:n_chunklets]
    chunklets = np.full(len(labels), -1)
    chunklets[rows[chosen]] = np.arange(len(chosen))[:, None]
    return chunklets
