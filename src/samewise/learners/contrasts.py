"""Examples against their targets and impostors under a base similarity: what RBS and sRBS share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import normalize
from sklearn.utils import TransformerTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import NormalizedBilinear
from samewise.kernels import normalizers
from samewise.kernels.pairwise import all_dots, row_slices, times
from samewise.kernels.psd import factor
from samewise.learners.labels import numbered
from samewise.search.hits import Blocks, hits_and_misses
from samewise.search.margins import margins

__all__ = ["ContrastLearner", "Contrasts"]

_BLOCK_BYTES = 8 * 2**20


class Contrasts(NamedTuple):
    """Rows x_i and directions v_i = Σ_q (y_i^q/N(x_i, y_i^q) − z_i^q/N(x_i, z_i^q)).

    For a cosine the rows have unit length, so that N = 1. Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q) is
    x_iᵀAv_i.
    """

    rows: Matrix
    directions: Matrix
    labels: Indices


def _has_embedding(learner: ContrastLearner) -> bool:
    if learner.psd and learner.normalizer in (None, "cosine"):
        return True
    raise AttributeError(
        f"{type(learner).__name__} has transform only with psd=True and normalizer 'cosine' or "
        "None: other similarities are no inner products."
    )


class ContrastLearner(BaseEstimator):
    """A similarity learned from each example's targets and impostors.

    Whether it is a transformer depends on its parameters, so that it is none by inheritance.
    """

    n_neighbors: int
    normalizer: str | None
    psd: bool
    metric_: NormalizedBilinear
    n_features_in_: int
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def _contrasts(self, X: Any, y: Any) -> Contrasts:
        """The examples, checked, and their contrasts."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        rows = _rows_for(self.normalizer, X)
        self.classes_, labels = numbered(y, type(self).__name__)
        # Unit rows make a cosine an inner product.
        name = None if self.normalizer == "cosine" else self.normalizer
        S = _selection(rows, name, labels, self.n_neighbors)
        return Contrasts(rows, S @ rows, labels)

    def margins(self, X: Matrix, y: ArrayLike) -> NDArray[np.float64]:
        """Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q) for each row, targets by the base similarity.

        `samewise.search.margins.margins` gives those under any form.
        """
        check_is_fitted(self)
        base = NormalizedBilinear(np.eye(self.n_features_in_), self.normalizer)
        return margins(self.metric_, X, y, self.n_neighbors, base=base)

    @available_if(_has_embedding)
    def transform(self, X: Matrix) -> Array:
        """Lx with A = LᵀL, for a cosine divided by ‖x‖: inner products are similarities.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)

        Returns
        -------
        array of shape (n, rank of A)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        L = factor(self.metric_.matrix)[0].astype(X.dtype, copy=False)
        return times(_rows_for(self.normalizer, X), L.T)

    @available_if(_has_embedding)
    def fit_transform(self, X: Matrix, y: ArrayLike) -> Array:
        """Learn, and transform the examples learned from."""
        return self.fit(X, y).transform(X)

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "metric_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64", "float32"])
        return tags


def _rows_for(normalizer: str | None, X: Matrix) -> Matrix:
    """X, with unit rows for a cosine; refused where the base similarity is undefined."""
    if normalizer is None:
        return X
    values = X.data if sp.issparse(X) else X
    if normalizer != "cosine" and np.min(values, initial=0) < 0:
        raise InvalidInputError(
            f"The {normalizer} normalizer needs entries that are not negative. Got "
            f"{np.min(values):.3g}; shift or scale the features, or use normalizer='cosine'."
        )
    sizes = normalizers.sizes(normalizer, X)
    if not sizes.all():
        zero = np.flatnonzero(sizes == 0)
        shown = ", ".join(map(str, zero[:5])) + (", …" if len(zero) > 5 else "")
        raise DegenerateInputError(
            f"X has zero rows, for which the {normalizer} normalizer leaves the similarity "
            f"undefined (rows {shown}); leave them out."
        )
    if not np.isfinite(sizes).all():
        raise InvalidInputError("X holds values whose squares overflow; scale the features down.")
    return normalize(X) if normalizer == "cosine" else X


def _blocks_of(rows: Matrix, normalizer: str | None) -> Blocks:
    """The base similarity xᵀx'/N(x, x') of rows, in blocks."""

    def blocks(asked: Indices, order: Indices) -> Iterator[tuple[slice, Array]]:
        items = rows[order]
        sizes = None if normalizer is None else normalizers.sizes(normalizer, rows)
        for part in row_slices(len(asked), len(order) * rows.dtype.itemsize, _BLOCK_BYTES):
            C = all_dots(rows[asked[part]], items)
            if normalizer is not None and sizes is not None:
                C /= _positive(
                    normalizers.combine(normalizer, sizes[asked[part], None], sizes[order], C)
                )
            yield part, C

    return blocks


def _selection(rows: Matrix, normalizer: str | None, labels: Indices, k: int) -> sp.csr_array:
    """The n × n matrix S with ±1/N(x_i, x_j) at targets and impostors j of i: v = S x."""
    hits, misses = hits_and_misses(_blocks_of(rows, normalizer), labels, k)
    # Targets and impostors in equal numbers, also where a class is small.
    both = (hits >= 0) & (misses >= 0)
    left = np.repeat(np.arange(len(labels)), both.sum(axis=1))
    n, entries = len(labels), []
    for sign, right in ((1, hits[both]), (-1, misses[both])):
        values = np.full(len(left), sign, dtype=rows.dtype)
        if normalizer is not None:
            values /= _positive(normalizers.paired(normalizer, rows[left], rows[right]))
        entries.append(sp.csr_array((values, (left, right)), shape=(n, n)))
    return entries[0] + entries[1]


def _positive(N: Array) -> Array:
    if N.min(initial=1) <= 0:
        raise DegenerateInputError(
            "The jaccard normalizer |x|₁ + |x'|₁ − xᵀx' is not positive for some rows; scale the "
            "features to [0, 1]."
        )
    return N
