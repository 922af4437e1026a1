"""Constraints sampled from labels, by metric-learn's names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.supervision import Pairs, Triplets
from samewise.supervision.chunklets import draw_chunklets
from samewise.supervision.supervision_checks import checked_matrix


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
            How many of each; of small classes fewer.

        Returns
        -------
        int array of shape (n_triplets, 3)
            Row numbers of anchors, positives and negatives.
        """
        known = self._known()
        found = Triplets.from_neighbors(
            checked_matrix(X)[known],
            self.partial_labels[known],
            n_triplets=len(known) * k_genuine * k_impostor,
            n_neighbors=k_genuine,
            n_impostors=k_impostor,
        )
        return known[np.stack([found.anchor, found.positive, found.negative], axis=1)]

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


def constrained_pairs(
    y: NDArray[Any], n_constraints: int | None, random_state: Any, same_length: bool = False
) -> tuple[Indices, Indices, Indices, Indices]:
    """Those that the `_Supervised` classes learn from: 20 c² of each kind by default."""
    codes = np.unique(y, return_inverse=True)[1]
    n_classes = int(codes.max()) + 1
    if n_classes < 2:
        raise InvalidInputError(
            "Learning what is similar needs examples of at least two classes. Got one class "
            f"(n_samples = {len(y)})."
        )
    many = 20 * n_classes**2 if n_constraints is None else n_constraints
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamewiseWarning)
        return Constraints(codes).positive_negative_pairs(many, same_length, random_state)
