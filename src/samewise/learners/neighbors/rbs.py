"""RBS: the similarity of largest margin between targets and impostors, in closed form."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._typing import Array
from samewise.forms import NormalizedBilinear
from samewise.kernels import normalizers
from samewise.kernels.pairwise import dense
from samewise.kernels.psd import project
from samewise.learners.attributes import Attribute, FormOf, Labels, Number
from samewise.learners.neighbors.class_checks import unchanged_before, unit, warn_of_small_classes
from samewise.learners.neighbors.contrast_learner import ContrastLearner, Contrasts

__all__ = ["RBS"]


class RBS(ContrastLearner):
    """RELIEF-based similarity: the A of norm 1 with the largest sum of margins.

    Every example x_i has k targets y_i^q, the most similar of its class, and k impostors z_i^q, the
    most similar of the other classes, by the base similarity xᵀx'/N(x, x'). Of

        M(A) = Σ_i Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q),   s_A(x, x') = xᵀAx'/N(x, x'),

    the maximum under ‖A‖ = 1 is A = Z/‖Z‖, Z = Σ_i x_i (Σ_q y_i^q/N − z_i^q/N)ᵀ: one pass over the
    examples, no iteration.

    Parameters
    ----------
    n_neighbors : int, default=1
        Number k of neighbors. In a class of k examples or fewer, an example has all others as
        targets and as many impostors; an example alone in its class takes no part. A warning says
        so.
    structure : {"full", "diagonal"}, default="full"
        Kind of matrix to learn; "diagonal" is one weight for each feature.
    normalizer : {"cosine", "dice", "jaccard"} or None, default="cosine"
        Normalizer N of the similarity, see `NormalizedBilinear`. None is the formula as printed,
        with N = 1; with "cosine" it is the same formula on rows of unit length.
    psd : bool, default=False
        Keep A ⪰ 0: the symmetric part of Z is projected on the positive semi-definite matrices
        before it is divided by its norm. That is the maximum of M under both conditions.

    Attributes
    ----------
    metric_ : NormalizedBilinear
        The learned similarity.
    margin_ : float
        M(A), the sum of all margins.
    classes_ : array
        The labels.
    n_features_in_ : int
        Number of features d.

    Notes
    -----
    Dense or CSR rows; A is a dense d × d matrix for both. Neighbors are found in blocks of
    products, so memory grows with n, not with n².

    A large sum of margins does not mean few negative ones, which is why `SRBS` minimizes a smooth
    count of these instead.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, sections 4.4.3 and
    4.4.6.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.learners.neighbors.rbs import RBS
    >>> X = np.array([[2.0, 1.0], [3.0, -1.0], [-2.0, 1.0], [-3.0, -1.0]])
    >>> rbs = RBS(structure="diagonal").fit(X, [0, 0, 1, 1])
    >>> rbs.metric_.matrix.round(2) + 0.0
    array([[ 0.99,  0.  ],
           [ 0.  , -0.17]])
    >>> bool((rbs.margins(X, [0, 0, 1, 1]) > 0).all())
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((NormalizedBilinear,)),
        "classes_": Labels(),
        "margin_": Number(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "structure": [StrOptions({"full", "diagonal"})],
        "normalizer": [StrOptions(set(normalizers.NAMES)), None],
        "psd": ["boolean"],
    }

    def __init__(
        self,
        n_neighbors: int = 1,
        *,
        structure: str = "full",
        normalizer: str | None = "cosine",
        psd: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.structure = structure
        self.normalizer = normalizer
        self.psd = psd

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array of shape (n,)
            Class labels.
        """
        with unchanged_before("margin_", self):
            told = self._contrasts(X, y)
            Z = self._sum(told)
            warn_of_small_classes(told.labels, self.n_neighbors, stacklevel=3)
            A = unit(self._projected(Z), "RBS", stacklevel=3)
            matrix = np.diag(A) if A.ndim == 1 else A
            self.metric_ = NormalizedBilinear(matrix, self.normalizer)
            self.margin_ = float(np.sum(A * Z))
        return self

    def _sum(self, told: Contrasts) -> Array:
        """Z, or its diagonal."""
        X, V, _ = told
        if self.structure == "full":
            return dense(X.T @ V)
        return np.asarray((X * V if isinstance(X, np.ndarray) else X.multiply(V)).sum(axis=0))

    def _projected(self, Z: Array) -> Array:
        if not self.psd:
            return Z
        return np.maximum(Z, 0) if Z.ndim == 1 else project(Z)
