"""Examples against their targets and impostors under a base similarity: what RBS and sRBS share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import TransformerTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array, Indices, Matrix
from samewise.forms import NormalizedBilinear
from samewise.kernels.pairwise import times
from samewise.kernels.psd import factor
from samewise.learners.learner import Learner
from samewise.learners.neighbors.base_similarity import BaseSimilarity, rows_for
from samewise.learners.neighbors.class_checks import numbered
from samewise.search import margins

__all__ = ["ContrastLearner", "Contrasts"]


class Contrasts(NamedTuple):
    """Rows x_i and directions v_i = Σ_q (y_i^q/N(x_i, y_i^q) − z_i^q/N(x_i, z_i^q)).

    Rows stand in the order of their classes. For a cosine they have unit length, so that N = 1.
    Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q) is x_iᵀAv_i.
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


class ContrastLearner(Learner, storable=False):
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
        self.classes_, labels = numbered(y, type(self).__name__)
        base = BaseSimilarity(X, labels, self.normalizer)
        S = _selection(base, self.n_neighbors)
        return Contrasts(base.rows, S @ base.rows, base.labels)

    def margins(self, X: Matrix, y: ArrayLike) -> NDArray[np.float64]:
        """Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q) for each row, targets by the base similarity.

        `samewise.search.margins` gives those under any form.
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
        return times(rows_for(self.normalizer, X), L.T)

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


def _selection(base: BaseSimilarity, k: int) -> sp.csr_array:
    """The n × n matrix S with ±1/N(x_i, x_j) at targets and impostors j of i: v = S x."""
    hits, misses = base.nearest(k)
    # Targets and impostors in equal numbers, also where a class is small.
    both = (hits >= 0) & (misses >= 0)
    n, S = len(hits), None
    left = np.repeat(np.arange(n), both.sum(axis=1))
    for sign, found in ((1, hits), (-1, misses)):
        values = np.full(len(left), sign, dtype=base.rows.dtype)
        if not base.splits:
            values *= base.inverse_pairs(np.arange(n), np.where(both, found, -1))[both]
        part = sp.csr_array((values, (left, found[both])), shape=(n, n))
        S = part if S is None else S + part
    return S
