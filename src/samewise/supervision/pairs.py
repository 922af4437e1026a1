"""Pairs of rows that are the same or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._cards import rows_of, table
from samewise._typing import Indices, Matrix, Signs
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.supervision import sampling
from samewise.supervision.row_numbers import RowNumbers, stacked
from samewise.supervision.supervision_checks import (
    checked_indices,
    checked_matrix,
    checked_signs,
    checked_weights,
    names_of_columns,
)


class Pairs(RowNumbers):
    """Pairs of rows that are the same (+1) or not the same (−1).

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The examples. Kept by reference: float32 and float64 are not copied.
    left, right : int arrays of shape (n_pairs,)
        Row numbers of the two members of each pair.
    y : array of shape (n_pairs,)
        +1 for similar, −1 for dissimilar.
    sample_weight : array of shape (n_pairs,), default=None
        How much each pair counts. A learner multiplies the cost of the pair's slack (its C) with
        it; a pair of weight 0 is passed over.

    Examples
    --------
    >>> from samewise import Pairs
    >>> pairs = Pairs([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], left=[0, 0], right=[1, 2], y=[1, -1])
    >>> pairs
    Pairs(2 pairs, 1 similar, over 3 rows of 2 features)
    >>> pairs.differences()
    array([[-1.,  0.],
           [-5., -5.]])
    """

    __slots__ = ("X", "feature_names", "left", "right", "sample_weight", "y")
    _members = ("left", "right")

    X: Matrix
    left: Indices
    right: Indices
    y: Signs
    sample_weight: NDArray[np.float64] | None
    feature_names: tuple[str, ...] | None

    def __init__(
        self,
        X: Any,
        left: ArrayLike,
        right: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.X, self.feature_names = checked_matrix(X), names_of_columns(X)
        self.left = checked_indices(left, self.X.shape[0], "left")
        self.right = checked_indices(right, self.X.shape[0], "right")
        if len(self.left) != len(self.right):
            raise InvalidInputError(
                "left and right must have the same length, one row number each for every pair. "
                f"Got {len(self.left)} and {len(self.right)}."
            )
        self.y = checked_signs(y, len(self.left))
        self.sample_weight = checked_weights(sample_weight, len(self.left), "pairs")

    def __repr__(self) -> str:
        n, d = self.X.shape
        similar = int(np.count_nonzero(self.y == 1))
        return f"Pairs({len(self)} pairs, {similar} similar, over {n} rows of {d} features)"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        (n, d), similar = self.X.shape, int(np.count_nonzero(self.y == 1))
        counts = [("similar", f"{similar:,}"), ("dissimilar", f"{len(self) - similar:,}")]
        return table("Pairs", [("pairs", f"{len(self):,}"), *counts, ("over", rows_of(n, d))])

    def differences(self) -> Matrix:
        """Differences v = x − x′ of every pair.

        Returns
        -------
        array or CSR matrix of shape (n_pairs, n_features)
            CSR where X is.
        """
        return self.X[self.left] - self.X[self.right]

    @classmethod
    def from_labels(
        cls,
        X: Any,
        y: ArrayLike,
        n_pairs: int | None = None,
        *,
        strategy: str = "balanced",
        n_neighbors: int = 5,
        form: Form | None = None,
        merge_duplicates: bool = False,
        sample_weight: ArrayLike | None = None,
        random_state: Any = None,
    ) -> Pairs:
        """Pairs sampled from labeled examples: two of one class are similar, of two classes not.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        y : array of shape (n_samples,)
            Class labels of any kind.
        n_pairs : int, default=None
            How many; by default 20 per example and at most 100 000. Pairs are distinct; where
            fewer exist than were asked for, all of them are taken, with a warning.
        strategy : {"balanced", "random", "nearest"}, default="balanced"
            "balanced": half similar, half dissimilar. "random": uniformly from all pairs.
            "nearest": for each example its `n_neighbors` nearest of its own class and as many
            of the others, in the order of the examples; `n_pairs` then keeps a
            random part.
        n_neighbors : int, default=5
            For "nearest": neighbors of each kind.
        form : Form, default=None
            For "nearest": what near means; the Euclidean distance by default.
        merge_duplicates : bool, default=False
            Take identical examples of one class as one, with their joint weight, and draw in an
            order that depends on the examples' values only: then neither repeating examples
            instead of weighting them nor reordering them makes a difference. Learners that are
            given labels draw so.
        sample_weight : array of shape (n_samples,), default=None
            A pair's weight is the product of its members' weights, scaled to mean 1.
        random_state : int, RandomState instance or None, default=None
            Seed or generator for the sampling; pass an int for reproducible output.

        Returns
        -------
        Pairs
            The pairs, as row numbers into X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from samewise import Pairs
        >>> Pairs.from_labels(*load_iris(return_X_y=True), n_pairs=100, random_state=0)
        Pairs(100 pairs, 50 similar, over 150 rows of 4 features)
        """
        names, X = names_of_columns(X), checked_matrix(X)
        codes, weights, order = sampling.coded(X, y, sample_weight, merge_duplicates)
        left, right = sampling.draw_pairs(
            X, codes, order, n_pairs, strategy, n_neighbors, form, random_state
        )
        same = np.where(codes[left] == codes[right], 1, -1).astype(np.int8)
        drawn = cls(X, left, right, same, sampling.pair_weights(weights, left, right))
        drawn.feature_names = names
        return drawn

    @classmethod
    def from_arrays(
        cls, pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Pairs:
        """Pairs from an array of two rows each and labels ±1.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The two members of each pair.
        y : array-like of shape (n_pairs,)
            +1 for similar, −1 for dissimilar.
        sample_weight : array-like of shape (n_pairs,), default=None
            How much each pair counts; all equally by default.

        Returns
        -------
        Pairs
            The pairs; rows that occur several times are stored once for each occurrence.

        Examples
        --------
        >>> from samewise import Pairs
        >>> Pairs.from_arrays([[[0.0, 0.0], [1.0, 0.0]]], [1])
        Pairs(1 pairs, 1 similar, over 2 rows of 2 features)
        """
        X = stacked(pairs, 2, "pairs")
        left = np.arange(0, len(X), 2)
        return cls(X, left, left + 1, y, sample_weight)

    @classmethod
    def from_grades(cls, X: Any, grades: Any, relevant: float = 1.0) -> Pairs:
        """Every judged pair: similar where the grade reaches `relevant`, dissimilar below.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        grades : sparse matrix of shape (n_rows, n_rows)
            Its stored entries are the judgments (a stored 0 is "not relevant"); what is not stored
            was not judged.
        relevant : float, default=1.0
            The lowest grade that means "the same".

        Returns
        -------
        Pairs
            A pair for each judgment.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from samewise import Pairs
        >>> grades = sp.coo_array(([2.0, 0.0], ([0, 0], [1, 2])), shape=(3, 3))
        >>> Pairs.from_grades([[0.0], [1.0], [9.0]], grades).y.tolist()
        [1, -1]
        """
        X = checked_matrix(X)
        judged = sampling.checked_grades(grades, X.shape[0], X.shape[0])
        keep = judged.row != judged.col
        y = np.where(judged.data[keep] >= relevant, 1, -1)
        return cls(X, judged.row[keep], judged.col[keep], y)
