"""What the distances have in common, and those that are Euclidean after an embedding."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from samewise._typing import Array, Matrix
from samewise.forms.form import MAX_BYTES, Form, unchanged
from samewise.kernels.pairwise import squared_distances, squared_norms


class DistanceForm(Form, storable=False):
    """A distance, whose values are computed as squares.

    Examples
    --------
    >>> from samewise import Mahalanobis
    >>> isinstance(Mahalanobis.identity(2), DistanceForm)
    True
    """

    is_distance = True

    def pairs(self, X: Matrix, Y: Matrix, *, squared: bool = False) -> Array:
        """Distance of row i of X to row i of Y, by explicit differences.

        Parameters
        ----------
        X, Y : array or CSR matrix of shape (n, n_features_in)
            First and second member of each pair, one row each.
        squared : bool, default=False
            Give the squared distances.

        Returns
        -------
        array of shape (n,)
            The value of each pair.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> Mahalanobis.identity(2).pairs([[0.0, 0.0]], [[3.0, 4.0]], squared=True)
        array([25.])
        """
        values = self._all_pair_values(X, Y)
        return values if squared else _root(values)

    def cross(
        self,
        X: Matrix,
        Y: Matrix | None = None,
        *,
        squared: bool = False,
        max_bytes: float = MAX_BYTES,
    ) -> Array:
        """Distance of every row of X to every row of Y, by ‖a‖² + ‖b‖² − 2aᵀb.

        Fast, but two rows that lie much nearer to each other than to the mean of Y lose digits;
        `pairs` does not. Without Y the diagonal is exactly zero.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            Rows to compare.
        Y : array or CSR matrix of shape (m, n_features_in), default=None
            X itself by default.
        squared : bool, default=False
            Give the squared distances.
        max_bytes : float, default=2**32
            The largest result that may be allocated; beyond it, a TooLargeError.

        Returns
        -------
        array of shape (n, m)
            The value of every row of X with every row of Y.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> Mahalanobis.identity(1).cross([[0.0], [2.0]])
        array([[0., 2.],
               [2., 0.]])
        """
        finish = unchanged if squared else _root
        return self._gather("cross", X, Y, max_bytes, finish)

    def _oriented(self, values: Array) -> Array:
        values = _root(values)
        # 0 − D and not −D: a zero distance must not become a negative zero.
        return np.subtract(0, values, out=values)

    def _value_blocks(
        self, X: Matrix, Y: Matrix | None, block_bytes: int
    ) -> Iterator[tuple[slice, Array]]:
        for rows, values in super()._value_blocks(X, Y, block_bytes):
            if Y is None:
                np.fill_diagonal(values[:, rows], 0)
            yield rows, values


class EuclideanForm(DistanceForm, storable=False):
    """A distance ‖embed(x) − embed(x')‖.

    Examples
    --------
    >>> from samewise import Mahalanobis
    >>> isinstance(Mahalanobis.identity(2), EuclideanForm)
    True
    """

    @abstractmethod
    def embed(self, X: Matrix) -> Array:
        """Map rows to where the distance is Euclidean.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            Examples, one row each.

        Returns
        -------
        array of shape (n, n_components)
            The embedded rows.
        """

    @abstractmethod
    def _embed(self, X: Matrix) -> Array:
        """`embed` for rows that are checked."""

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The matrix of the distance."""

    @property
    def spaces(self) -> tuple[EuclideanForm, ...]:
        """The form itself."""
        return (self,)

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        F = self._embed(Y)
        # The expansion loses digits with the distance from the origin: put the origin amid Y.
        center = F.mean(axis=0) if len(F) else np.zeros(F.shape[1], dtype=F.dtype)
        F = F - center
        F_sq = squared_norms(F)
        return lambda X: squared_distances(self._embed(X) - center, F, F_sq)


def _root(values: Array) -> Array:
    return np.sqrt(values, out=values)
