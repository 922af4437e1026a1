"""What learners of similarities share: targets and impostors, margins, and where there is a map."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Array, Indices, Matrix
from samewise.forms import NormalizedBilinear
from samewise.kernels.pairwise import times
from samewise.kernels.psd import factor, project
from samewise.learners.attributes import Attribute, FormOf, Labels
from samewise.learners.class_checks import numbered
from samewise.learners.learner import Learner, MapLearner
from samewise.learners.neighbors.base_similarity import BaseSimilarity, Normalizer, rows_for
from samewise.search import margins


class SimilarityLearner(Learner, storable=False):
    """A learner of xᵀAx'/N(x, x') from each example's targets and impostors."""

    n_neighbors: int
    normalizer: Normalizer

    def margins(self, X: Matrix, y: ArrayLike) -> NDArray[np.float64]:
        """How much more similar each example is to its targets than to its impostors.

        Both are found by the base similarity, as in `fit`. `samewise.margins` gives those found
        under any form.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Examples.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        array of shape (n,)
            Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q) for each row x_i with its targets y_i^q and
            impostors z_i^q; NaN for an example alone in its class.
        """
        check_is_fitted(self)
        base = similarity(np.ones(self.n_features_in_), self.normalizer)
        return margins(self.metric_, X, y, self.n_neighbors, base=base)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.normalizer in ("dice", "jaccard")
        return tags


def similarity(A: Array, normalizer: Normalizer) -> NormalizedBilinear:
    """The form of A, or of its diagonal; zero rows have the similarity 0 to every row."""
    return NormalizedBilinear(np.diag(A) if A.ndim == 1 else A, normalizer, on_zero="zero")


def nearest_psd(A: Array) -> Array:
    """The nearest A ⪰ 0; of weights, those below 0 become 0."""
    return np.maximum(A, 0) if A.ndim == 1 else project(A)


def _has_map(learner: ConditionalMap) -> bool:
    if learner._why_no_map:
        raise AttributeError(learner._why_no_map)
    return True


class ConditionalMap:
    """The `transform` of a `MapLearner`, only where the parameters allow one.

    It comes before `MapLearner` among the bases: of methods in the class of a transformer itself,
    scikit-learn would make methods that are always there.
    """

    @property
    def _why_no_map(self) -> str:
        """What to say where there is no map."""
        return ""

    transform = available_if(_has_map)(MapLearner.transform)
    fit_transform = available_if(_has_map)(MapLearner.fit_transform)


class Contrasts(NamedTuple):
    """Rows x_i and directions v_i = Σ_q (y_i^q/N(x_i, y_i^q) − z_i^q/N(x_i, z_i^q)).

    Rows stand in the order of their classes. For a cosine they have unit length, so that N = 1.
    Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q) is x_iᵀAv_i.
    """

    rows: Matrix
    directions: Matrix
    labels: Indices


@dataclass(eq=False, repr=False)
class ContrastLearner(ConditionalMap, MapLearner, SimilarityLearner, storable=False):
    """A similarity learned from the sums of each example's targets and impostors."""

    metric_: NormalizedBilinear = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((NormalizedBilinear,)),
        "classes_": Labels(),
    }

    n_neighbors: int = 1
    _: KW_ONLY
    structure: str = "full"
    normalizer: Normalizer = "cosine"
    psd: str | None = None

    def _contrasts(self, X: Any, y: Any) -> Contrasts:
        """The examples, checked, and their contrasts."""
        X, y = self._examples(X, y)
        self.classes_, labels = numbered(y, type(self).__name__)
        base = BaseSimilarity(X, labels, self.normalizer)
        S = _selection(base, self.n_neighbors)
        return Contrasts(base.rows, S @ base.rows, base.labels)

    @property
    def _why_no_map(self) -> str:
        if self.psd and self.normalizer in (None, "cosine"):
            return ""
        return (
            f"{type(self).__name__} has transform only where psd is not None, and with normalizer "
            "'cosine' or None: other similarities are no inner products."
        )

    @property
    def components_(self) -> Array:
        """L with A = LᵀL, of shape (rank of A, n_features); only where there is `transform`."""
        _has_map(self)
        return factor(self.metric_.matrix)[0]

    def _mapped(self, X: Matrix) -> NDArray[Any]:
        L = self.components_.astype(X.dtype, copy=False)
        return times(rows_for(self.normalizer, X), L.T)


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
