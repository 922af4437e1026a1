"""Similarities of rows by the classes they probably are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms._input_checks import check_matrix, check_square
from samewise.forms.form import Form
from samewise.kernels.pairwise import row_dots, times


class PosteriorSimilarity(Form):
    """The similarity s(q, x) = p(q)ᵀS p(x) by class probabilities p(x) = softmax(Wx + b).

    Where S_ij says how similar class i is to class j, s is the expected similarity of the classes
    of two rows, which may well be of different classes.

    Parameters
    ----------
    weights : array of shape (n_classes, d)
        W.
    intercept : array of shape (n_classes,)
        b.
    similarity : array of shape (n_classes, n_classes)
        S; any finite matrix.

    Attributes
    ----------
    weights, intercept, similarity
        As given.

    Examples
    --------
    >>> form = PosteriorSimilarity([[9.0], [-9.0]], [0.0, 0.0], [[1.0, 0.25], [0.25, 1.0]])
    >>> form
    PosteriorSimilarity(n_features_in=1, n_classes=2)
    >>> form.cross([[1.0], [-1.0]], [[2.0]]).round(3)
    array([[1.  ],
           [0.25]])
    """

    _stored = ("weights", "intercept", "similarity")
    weights: Array
    intercept: Array
    similarity: Array

    def __init__(self, weights: Array, intercept: Array, similarity: Array) -> None:
        owner = type(self).__name__
        W = check_matrix(weights, "weights", owner)
        b = check_matrix(np.reshape(intercept, (1, -1)), "intercept", owner)[0]
        S = check_matrix(similarity, "similarity", owner)
        check_square(S, owner)
        if len(W) != len(S) or np.shape(intercept) != (len(S),):
            raise InvalidInputError(
                f"The weights, intercept and similarity of {owner} must have the shapes "
                "(n_classes, d), (n_classes,) and (n_classes, n_classes), but their shapes are "
                f"{W.shape}, {np.shape(intercept)} and {S.shape}."
            )
        self._set(weights=W, intercept=b, similarity=S)

    @property
    def n_features_in(self) -> int:
        """Number of features d."""
        return self.weights.shape[1]

    def embed_query(self, Q: Matrix) -> Array:
        """Sᵀp(q) for each row: the inner product with an embedded item is the similarity.

        Parameters
        ----------
        Q : array or CSR matrix of shape (k, d)
            Queries, one row each.

        Returns
        -------
        array of shape (k, n_classes)
            The embedded queries.

        Examples
        --------
        >>> form = PosteriorSimilarity([[0.0], [0.0]], [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
        >>> form.embed_query([[1.0]])
        array([[0.75, 0.75]])
        """
        return self._checked(self._embed_query, self._check_rows(Q, "Q", self.n_features_in))

    def embed_item(self, P: Matrix) -> Array:
        """Probabilities p(x) of the classes, for each row.

        Parameters
        ----------
        P : array or CSR matrix of shape (k, d)
            Items, one row each.

        Returns
        -------
        array of shape (k, n_classes)
            The embedded items.

        Examples
        --------
        >>> form = PosteriorSimilarity([[0.0], [0.0]], [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
        >>> form.embed_item([[1.0]])
        array([[0.5, 0.5]])
        """
        return self._checked(self._posteriors, self._check_rows(P, "P", self.n_features_in))

    @property
    def _width(self) -> int:
        return 2 * len(self.weights)

    def _posteriors(self, X: Matrix) -> Array:
        z = times(X, self.weights.astype(X.dtype, copy=False).T)
        z += self.intercept.astype(X.dtype, copy=False)
        # No rows have no largest entry.
        return softmax(z, axis=1) if len(z) else z

    def _embed_query(self, X: Matrix) -> Array:
        return self._posteriors(X) @ self.similarity.astype(X.dtype, copy=False)

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        return row_dots(self._embed_query(X), self._posteriors(Y))

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        items = self._posteriors(Y)
        return lambda X: self._embed_query(X) @ items.T

    def _summary(self) -> dict[str, Any]:
        return {"n_features_in": self.n_features_in, "n_classes": len(self.weights)}
