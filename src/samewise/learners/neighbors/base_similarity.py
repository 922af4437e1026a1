"""The base similarity xᵀx'/N(x, x'): rows it is defined for, 1/N, and the nearest under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms.bilinear import called
from samewise.kernels import normalizers
from samewise.kernels.pairwise import all_dots, row_slices
from samewise.learners.dense_rows import check_scale
from samewise.search.hits import hits_and_misses

Normalizer = str | Callable[[Matrix, Matrix], Array] | None
BLOCK_BYTES = 8 * 2**20
SQUARE = 32
SMALL = 1e-5


class BaseSimilarity:
    """Examples under the base similarity, in the order of their classes.

    Under a named normalizer a zero row has the similarity 0 to every row.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    labels : array of shape (n,)
        Class numbers 0 … n_classes − 1.
    normalizer : {"cosine", "dice", "jaccard"}, callable or None

    Attributes
    ----------
    order : array of shape (n,)
        Which example stands in which place.
    rows : array or CSR matrix of shape (n, d)
        The examples in that order; with unit length for a cosine, whose N is then 1.
    labels, starts : arrays
        The class in each place; where each class starts, and n.
    zero : array of shape (n,)
        Whether the row is zero, under a named normalizer.
    """

    def __init__(self, X: Matrix, labels: Indices, normalizer: Normalizer) -> None:
        if normalizer != "cosine":
            check_scale(X)
        self._normalizer = normalizer
        self.order = np.argsort(labels, kind="stable")
        self.labels = np.asarray(labels)[self.order]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(labels))])
        self.rows = rows_for(normalizer, X)[self.order]
        self.zero = np.zeros(len(labels), dtype=bool)
        if isinstance(normalizer, str):
            self.zero = normalizers.sizes(normalizer, self.rows) == 0

    @property
    def splits(self) -> bool:
        """Whether N is 1 for `rows`."""
        return self._normalizer is None or self._normalizer == "cosine"

    def inverse(self, left: Any, right: Any) -> Array:
        """1/N of all rows `left` with all rows `right` (places or slices)."""
        X, Y = self.rows[left], self.rows[right]
        if isinstance(self._normalizer, str):
            N = normalizers.crossed(self._normalizer, X, Y)
            if self.zero.any():
                N = np.where(self.zero[left][:, None] | self.zero[right], np.inf, N)
            wrong = N <= 0
        else:
            N = called(self._normalizer, X, Y, np.float64)
            wrong = (N == 0) | ~np.isfinite(N)
        if wrong.any():
            self._refuse(left, right, wrong, N)
        return (1.0 / N).astype(np.float64)

    def inverse_pairs(self, left: Indices, right: Indices) -> NDArray[np.float64]:
        """1/N of each row `left` with its own list of rows `right`; 0 where that has −1."""
        inverse = np.zeros(right.shape)
        real = right >= 0
        left = np.broadcast_to(left[:, None], right.shape)[real]
        right = right[real]
        # N is made of all rows with all rows: of a square this wide the diagonal is used.
        parts = row_slices(len(left), 1, SQUARE)
        values = [self.inverse(left[part], right[part]).diagonal() for part in parts]
        inverse[real] = np.concatenate([np.empty(0), *values])
        return inverse

    def targets(self, k: int) -> NDArray[np.intp]:
        """The k nearest of its own class of each row, as places; −1 where there are fewer."""
        found = np.full((len(self.order), k), -1, dtype=np.intp)
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            alike = np.zeros(stop - start, dtype=np.intp)
            hits = hits_and_misses(self._blocks(start, stop), alike, k)[0]
            found[start:stop] = np.where(hits >= 0, hits + start, -1)
        return found

    def nearest(self, k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The k nearest of the same class and of the others, as places; −1 for fewer."""
        n = len(self.order)
        return hits_and_misses(self._blocks(0, n), self.labels, min(k, n))

    def pool(self, m: int) -> NDArray[np.intp]:
        """The m nearest of the other classes of each row, as rising places; −1 for fewer."""
        found, n = self.nearest(m)[1], len(self.order)
        rising = np.sort(np.where(found >= 0, found, n), axis=1)
        return np.where(rising < n, rising, -1)

    def _blocks(self, start: int, stop: int) -> Any:
        def blocks(asked: Indices, order: Indices) -> Iterator[tuple[slice, Array]]:
            items = self.rows[start + order]
            for part in row_slices(len(asked), len(order) * 8, BLOCK_BYTES):
                C = all_dots(self.rows[start + asked[part]], items)
                if not self.splits:
                    C = C * self.inverse(start + asked[part], start + order)
                yield part, C

        return blocks

    def _refuse(self, left: Any, right: Any, wrong: NDArray[np.bool_], N: Array) -> None:
        i, j = np.argwhere(wrong)[0]
        places = np.arange(len(self.order))
        pair = self.order[places[left][i]], self.order[places[right][j]]
        value = f"{N[i, j]:.3g} for rows {pair[0]} and {pair[1]} of X"
        if self._normalizer == "jaccard":
            raise DegenerateInputError(
                f"The jaccard normalizer |x|₁ + |x'|₁ − xᵀx' must be positive. Got {value}; scale "
                "the features to [0, 1]."
            )
        raise DegenerateInputError(
            f"The normalizer must return finite values that are not zero. Got {value}."
        )


def rows_for(normalizer: Normalizer, X: Matrix) -> Matrix:
    """X, with unit rows for a cosine, where zero rows stay zero.

    Refused are entries for which a named base similarity is not defined.
    """
    if not isinstance(normalizer, str):
        return X
    values = X.data if sp.issparse(X) else X
    if normalizer != "cosine" and np.min(values, initial=0) < 0:
        raise InvalidInputError(
            f"Negative values in data: the {normalizer} normalizer needs entries that are not "
            f"negative. Got {np.min(values):.3g}; shift or scale the features, or use "
            "normalizer='cosine'."
        )
    sizes = normalizers.sizes(normalizer, X)
    if not np.isfinite(sizes).all():
        raise InvalidInputError("X has values whose squares overflow; scale the features down.")
    # Imported where it is needed: it loads a large part of SciPy.
    from sklearn.preprocessing import normalize

    return normalize(_without_small(X)) if normalizer == "cosine" else X


def _without_small(X: Matrix) -> Matrix:
    """X, with rows that scikit-learn takes for zero, because they are small, times a power of 2."""
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(X) else largest
    if not ((largest > 0) & (largest < SMALL)).any():
        return X
    shift = np.where(largest < SMALL, -np.frexp(largest)[1], 0)
    if not sp.issparse(X):
        return np.ldexp(X, shift[:, None])
    X = X.copy()
    X.data = np.ldexp(X.data, np.repeat(shift, np.diff(X.indptr)))
    return X


def refuse_zero(rows: Indices, why: str, instead: str = "") -> None:
    """Refuse zero rows, if there are any."""
    if len(rows):
        shown = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        raise DegenerateInputError(
            f"X has zero rows, {why} (rows {shown}); leave them out{instead}."
        )
