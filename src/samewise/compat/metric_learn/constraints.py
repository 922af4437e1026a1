"""Constraints sampled from labels, by metric-learn's names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._typing import Indices
from samewise.compat.metric_learn.former_names import formerly
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.supervision import Pairs, Triplets
from samewise.supervision.chunklets import draw_chunklets
from samewise.supervision.supervision_checks import checked_matrix

__all__ = ["Constraints", "wrap_pairs"]


class Constraints:
    """Pairs, triplets and chunks of labeled points.

    Parameters
    ----------
    partial_labels : int array of shape (n,)
        Labels; negative ones are unknown.

    Examples
    --------
    >>> a, b, c, d = Constraints([0, 0, 1, 1, -1]).positive_negative_pairs(2, random_state=0)
    >>> sorted(zip(*np.sort([a, b], axis=0).tolist()))
    [(0, 1), (2, 3)]
    """

    def __init__(self, partial_labels: ArrayLike) -> None:
        self.partial_labels = np.asanyarray(partial_labels, dtype=int)

    def _known(self) -> Indices:
        return np.flatnonzero(self.partial_labels >= 0)

    @formerly(num_constraints="n_constraints")
    def positive_negative_pairs(
        self, n_constraints: int, same_length: bool = False, random_state: Any = None
    ) -> tuple[Indices, Indices, Indices, Indices]:
        """Random pairs of one class, and of two.

        Parameters
        ----------
        n_constraints : int
            How many of each kind. Pairs are distinct; where fewer exist, all are taken, with a
            warning.
        same_length : bool, default=False
            As many of one kind as of the other.
        random_state : int, RandomState instance or None, default=None
            Seed or generator of every random choice. Pass an int for reproducible output.

        Returns
        -------
        a, b, c, d : int arrays
            Row numbers: a and b are of one class, c and d are not.
        """
        known, random = self._known(), check_random_state(random_state)
        labels = self.partial_labels[known]
        drawn = []
        for sign, what in ((1, "similar"), (-1, "dissimilar")):
            pairs = self._of_a_kind(labels, n_constraints, sign, random)
            if len(pairs) < n_constraints:
                warnings.warn(
                    f"{n_constraints} {what} pairs were asked for, but there are {len(pairs)}.",
                    SamewiseWarning,
                    stacklevel=2,
                )
            drawn.append(pairs)
        if same_length:
            least = min(map(len, drawn))
            drawn = [pairs[:least] for pairs in drawn]
        return tuple(known[side] for pairs in drawn for side in pairs.T)

    @staticmethod
    def _of_a_kind(
        labels: NDArray[Any], count: int, sign: int, random: np.random.RandomState
    ) -> Indices:
        """Pairs that are similar (1) or not (−1), as rows of two."""
        points = np.zeros((len(labels), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamewiseWarning)
            # Half of them are of each kind, unless there are too few of one.
            pairs = Pairs.from_labels(points, labels, 2 * count, random_state=random)
        of_kind = pairs[pairs.y == sign][:count]
        return np.stack([of_kind.left, of_kind.right], axis=1)

    def generate_knntriplets(
        self, X: ArrayLike, k_genuine: int, k_impostor: int
    ) -> NDArray[np.intp]:
        """Each point with each of its nearest of its class and each of its nearest of the others.

        Parameters
        ----------
        X : array of shape (n, d)
            The points.
        k_genuine, k_impostor : int
            How many of each; where there are fewer, all are taken, with a warning.

        Returns
        -------
        int array of shape (n_triplets, 3)
            Row numbers of anchors, positives and negatives.
        """
        known = self._known()
        warn_of_few(self.partial_labels[known], k_genuine, k_impostor)
        found = Triplets.from_neighbors(
            checked_matrix(X)[known],
            self.partial_labels[known],
            n_triplets=len(known) * k_genuine * k_impostor,
            n_neighbors=k_genuine,
            n_impostors=k_impostor,
        )
        return known[np.stack([found.anchor, found.positive, found.negative], axis=1)]

    @formerly(num_chunks="n_chunks")
    def chunks(
        self, n_chunks: int = 100, chunk_size: int = 2, random_state: Any = None
    ) -> NDArray[np.intp]:
        """Chunks of points of one class; no point is in two of them.

        Parameters
        ----------
        n_chunks : int, default=100
            How many.
        chunk_size : int, default=2
            Points in each.
        random_state : int, RandomState instance or None, default=None
            Seed or generator of every random choice. Pass an int for reproducible output.

        Returns
        -------
        int array of shape (n,)
            The number of the chunk of each point; −1 for none.
        """
        known = self._known()
        codes = np.unique(self.partial_labels[known], return_inverse=True)[1]
        most = int((np.bincount(codes) // chunk_size).sum()) if len(codes) else 0
        if most < n_chunks:
            raise InvalidInputError(
                f"There are not enough points for n_chunks={n_chunks} chunks of {chunk_size}: at "
                f"most {most} are possible. Lower n_chunks or chunk_size."
            )
        chunks = np.full(len(self.partial_labels), -1)
        drawn = draw_chunklets(codes, n_chunks, chunk_size, check_random_state(random_state))
        chunks[known] = drawn
        return chunks


def wrap_pairs(X: ArrayLike, constraints: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Similar and dissimilar pairs as one array of rows, and ±1.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    constraints : tuple of four int arrays
        As `Constraints.positive_negative_pairs` returns them.

    Returns
    -------
    pairs : array of shape (n_pairs, 2, d)
        The similar ones first.
    y : int array of shape (n_pairs,)
        +1 for similar, −1 for dissimilar.
    """
    a, b, c, d = (np.asarray(side) for side in constraints)
    rows = np.vstack([np.column_stack([a, b]), np.column_stack([c, d])])
    return np.asarray(X)[rows], np.repeat([1, -1], [len(a), len(c)])


def known_codes(y: ArrayLike) -> Indices:
    """Classes by number; −1 where the label is a negative number, which says that it is unknown.

    Examples
    --------
    >>> known_codes(["b", "a", "b"]), known_codes([3, -1, 5])
    (array([1, 0, 1]), array([ 0, -1,  1]))
    """
    labels = np.asarray(y)
    known = labels >= 0 if labels.dtype.kind in "if" else np.ones(len(labels), dtype=bool)
    codes = np.full(len(labels), -1)
    codes[known] = np.unique(labels[known], return_inverse=True)[1]
    return codes


def constrained_pairs(
    y: NDArray[Any], n_constraints: int | None, random_state: Any, same_length: bool = False
) -> tuple[Indices, Indices, Indices, Indices]:
    """Those that the `_Supervised` classes learn from: 20 c² of each kind by default."""
    codes = known_codes(y)
    if codes.max(initial=-1) < 1:
        raise InvalidInputError(
            "Learning what is similar needs examples of at least two classes. Got one class "
            f"(n_samples = {np.sum(codes >= 0)}); negative labels are unknown."
        )
    many = 20 * (int(codes.max()) + 1) ** 2 if n_constraints is None else n_constraints
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamewiseWarning)
        return Constraints(codes).positive_negative_pairs(many, same_length, random_state)


def warn_of_few(labels: NDArray[Any], k_genuine: int, k_impostor: int) -> None:
    """Warn of the classes whose examples have too few neighbors of either kind."""
    classes, sizes = np.unique(labels, return_counts=True)
    for label, size in zip(classes.tolist(), sizes.tolist(), strict=True):
        for wanted, there, name, what in (
            (k_genuine, size - 1, "k_genuine", "of its own"),
            (k_impostor, len(labels) - size, "k_impostor", "of other classes"),
        ):
            if there < wanted:
                warnings.warn(
                    f"An example of class {label} has only {there} others {what}, fewer than "
                    f"{name}={wanted}: all are taken.",
                    SamewiseWarning,
                    stacklevel=3,
                )
