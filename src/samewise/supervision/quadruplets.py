"""Quadruplets: one pair of rows is closer than another; what pairs and triplets say, and more."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.pairwise import dense
from samewise.supervision import sampling
from samewise.supervision.row_numbers import RowNumbers, stacked
from samewise.supervision.supervision_checks import (
    checked_indices,
    checked_matrix,
    checked_weights,
    names_of_columns,
)
from samewise.supervision.triplets import Triplets


class Quadruplets(RowNumbers):
    """Quadruplets (a, b, c, d): a and b are closer to each other than c and d are.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The examples. Kept by reference: float32 and float64 are not copied.
    a, b : int arrays of shape (n_quadruplets,)
        Row numbers of the pair that is closer.
    c, d : int arrays of shape (n_quadruplets,)
        Row numbers of the pair that is farther apart.
    sample_weight : array of shape (n_quadruplets,), default=None
        How much each quadruplet counts; all equally by default.

    Examples
    --------
    >>> from samewise import Quadruplets
    >>> Quadruplets([[0.0], [1.0], [5.0], [9.0]], a=[0], b=[1], c=[2], d=[3])
    Quadruplets(1 quadruplets over 4 rows of 1 features)
    """

    __slots__ = ("X", "a", "b", "c", "d", "feature_names", "sample_weight")
    _members = ("a", "b", "c", "d")

    X: Matrix
    feature_names: tuple[str, ...] | None
    a: Indices
    b: Indices
    c: Indices
    d: Indices
    sample_weight: NDArray[np.float64] | None

    def __init__(
        self,
        X: Any,
        a: ArrayLike,
        b: ArrayLike,
        c: ArrayLike,
        d: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.X, self.feature_names = checked_matrix(X), names_of_columns(X)
        for name, rows in zip(self._members, (a, b, c, d), strict=True):
            setattr(self, name, checked_indices(rows, self.X.shape[0], name))
        lengths = [len(getattr(self, name)) for name in self._members]
        if len(set(lengths)) > 1:
            raise InvalidInputError(
                "a, b, c and d must have the same length, one row number each for every "
                f"quadruplet. Got {', '.join(map(str, lengths))}."
            )
        self.sample_weight = checked_weights(sample_weight, lengths[0], "quadruplets")

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Quadruplets({len(self)} quadruplets over {n} rows of {d} features)"

    @classmethod
    def from_labels(
        cls,
        X: Any,
        y: ArrayLike,
        n_quadruplets: int | None = None,
        *,
        strategy: str = "balanced",
        n_neighbors: int = 5,
        form: Form | None = None,
        merge_duplicates: bool = False,
        random_state: Any = None,
    ) -> Quadruplets:
        """Quadruplets sampled from labeled examples: two of one class, and two of two classes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        y : array of shape (n_samples,)
            Class labels of any kind.
        n_quadruplets : int, default=None
            At most so many; by default all nearest ones, or 20 random ones per example, and at most
            100 000.
        strategy : {"balanced", "nearest"}, default="balanced"
            "balanced": a random similar pair beside a random dissimilar one. "nearest": the k-th
            nearest example of its own class beside the k-th nearest of the others, for each
            example and each k up to `n_neighbors`.
        n_neighbors : int, default=5
            For "nearest": neighbors of each kind.
        form : Form, default=None
            For "nearest": what near means; the Euclidean distance by default.
        merge_duplicates : bool, default=False
            Take identical examples of one class as one, and draw in an order that depends on the
            examples' values only. Learners that are given labels draw so.
        random_state : int, RandomState instance or None, default=None
            Seed or generator for the sampling; pass an int for reproducible output.

        Returns
        -------
        Quadruplets
            The quadruplets, as row numbers into X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from samewise import Quadruplets
        >>> Quadruplets.from_labels(*load_iris(return_X_y=True), 100, random_state=0)
        Quadruplets(100 quadruplets over 150 rows of 4 features)
        """
        names, X = names_of_columns(X), checked_matrix(X)
        codes, _, order = sampling.coded(X, y, None, merge_duplicates)
        rng = check_random_state(random_state)
        if strategy == "nearest":
            triplets = sampling.nearest_triplets(X, codes, n_neighbors, None, form)
            most = sampling.AT_MOST if n_quadruplets is None else n_quadruplets
            chosen = sampling.some_of(triplets[0], order, most, rng)
            a, b, d = (rows[chosen] for rows in triplets)
            drawn = cls(X, a, b, a, d)
            drawn.feature_names = names
            return drawn
        if strategy != "balanced":
            raise InvalidInputError(
                f"The strategy must be 'balanced' or 'nearest'. Got {strategy!r}."
            )
        drawn = cls(X, *sampling.draw_quadruplets(codes, order, n_quadruplets, rng))
        drawn.feature_names = names
        return drawn

    @classmethod
    def from_arrays(
        cls, quadruplets: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Quadruplets:
        """Quadruplets from an array of four rows each.

        Parameters
        ----------
        quadruplets : array-like of shape (n_quadruplets, 4, n_features)
            a, b, c and d of each quadruplet.
        sample_weight : array-like of shape (n_quadruplets,), default=None
            How much each quadruplet counts; all equally by default.

        Returns
        -------
        Quadruplets
            The quadruplets; rows that occur several times are stored once for each occurrence.

        Examples
        --------
        >>> from samewise import Quadruplets
        >>> Quadruplets.from_arrays([[[0.0], [1.0], [5.0], [9.0]]])
        Quadruplets(1 quadruplets over 4 rows of 1 features)
        """
        X = stacked(quadruplets, 4, "quadruplets")
        a = np.arange(0, len(X), 4)
        return cls(X, a, a + 1, a + 2, a + 3, sample_weight=sample_weight)

    @classmethod
    def from_triplets(cls, triplets: Triplets) -> Quadruplets:
        """Triplets as quadruplets: anchor and positive are closer than anchor and negative.

        Parameters
        ----------
        triplets : Triplets
            Their items must have the features of the anchors.

        Returns
        -------
        Quadruplets
            One for each triplet, with its weight.

        Examples
        --------
        >>> from samewise import Quadruplets, Triplets
        >>> Quadruplets.from_triplets(Triplets([[0.0], [1.0], [5.0]], [0], [1], [2]))
        Quadruplets(1 quadruplets over 3 rows of 1 features)
        """
        X, items, before = triplets.X, triplets.items, 0
        if items is not X:
            if items.shape[1] != X.shape[1]:
                raise InvalidInputError(
                    "A distance is between rows of the same features. Got triplets of queries of "
                    f"{X.shape[1]} features and items of {items.shape[1]}; use OASIS, which learns "
                    "a similarity of the two."
                )
            before = X.shape[0]
            both_sparse = sp.issparse(X) and sp.issparse(items)
            X = sp.vstack([X, items], "csr") if both_sparse else np.vstack([dense(X), dense(items)])
        positive, negative = triplets.positive + before, triplets.negative + before
        anchor = triplets.anchor
        made = cls(X, anchor, positive, anchor, negative, sample_weight=triplets.sample_weight)
        made.feature_names = triplets.feature_names
        return made
