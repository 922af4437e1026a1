"""RBS: the similarity of largest margin between targets and impostors, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array
from samewise.kernels.pairwise import dense
from samewise.learners.attributes import Attribute, Number
from samewise.learners.class_checks import unit, warn_of_small_classes
from samewise.learners.neighbors.similarity_learner import (
    ContrastLearner,
    Contrasts,
    nearest_psd,
    similarity,
)


@dataclass(eq=False, repr=False)
class RBS(ContrastLearner):
    """RELIEF-based similarity: the A of norm 1 with the largest sum of margins.

    Every example x_i has k targets y_i^q, the most similar of its class, and k impostors z_i^q, the
    most similar of the other classes, by the base similarity xᵀx'/N(x, x'). Of

        M(A) = Σ_i Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q),   s_A(x, x') = xᵀAx'/N(x, x'),

    the maximum under ‖A‖ = 1 is A = Z/‖Z‖, Z = Σ_i x_i (Σ_q y_i^q/N − z_i^q/N)ᵀ: one pass over the
    examples, no iteration.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): a large sum of margins is not few errors; it
    is kept for the record.

    Parameters
    ----------
    n_neighbors : int, default=1
        Number k of neighbors. In a class of k examples or fewer, an example has all others as
        targets and as many impostors; an example alone in its class takes no part. A warning says
        so.
    structure : {"full", "diagonal"}, default="full"
        Kind of matrix to learn; "diagonal" is one weight for each feature.
    normalizer : {"cosine", "dice", "jaccard"} or None, default="cosine"
        Normalizer N of the similarity, see `NormalizedBilinear`. None is N = 1. Zero rows have the
        similarity 0 to every row and contribute nothing.
    psd : {"end"} or None, default=None
        When positive semi-definiteness is restored. "end": the symmetric part of Z is projected on
        the positive semi-definite matrices before it is divided by its norm, which gives the
        maximum of M under both conditions. None: never.

    Attributes
    ----------
    metric_ : NormalizedBilinear
        The learned similarity.
    components_ : array of shape (rank of A, n_features_in_)
        L with A = LᵀL, only where there is `transform`: with psd="end" and normalizer "cosine" or
        None.
    margin_ : float
        M(A), the sum of all margins.
    classes_ : array of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SRBS : Minimizes a smooth count of the negative margins.
    SiLA : Finds impostors under the present A.
    Relief : Weights of features, from distances.

    Notes
    -----
    Dense or CSR rows; A is a dense matrix for both. Neighbors are found in blocks of products, so
    memory grows with n, not with n².

    A large sum of margins does not mean few negative ones, which is why `SRBS` minimizes a smooth
    count of these instead.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, sections 4.4.3 and
    4.4.6.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import RBS
    >>> X = np.array([[2.0, 1.0], [3.0, -1.0], [-2.0, 1.0], [-3.0, -1.0]])
    >>> rbs = RBS(structure="diagonal").fit(X, [0, 0, 1, 1])
    >>> rbs.metric_.matrix.round(2) + 0.0
    array([[ 0.99,  0.  ],
           [ 0.  , -0.17]])
    >>> bool((rbs.margins(X, [0, 0, 1, 1]) > 0).all())
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"margin_": Number()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"psd": [StrOptions({"end"}), None]}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Examples.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : RBS
            The fitted learner.
        """
        with unchanged_if_refused(self):
            contrasts = self._contrasts(X, y)
            Z = self._sum(contrasts)
            warn_of_small_classes(contrasts.labels, self.n_neighbors, stacklevel=3)
            A = unit(nearest_psd(Z) if self.psd else Z, "RBS", stacklevel=3)
            self.metric_ = similarity(A, self.normalizer)
            self.margin_ = float(np.sum(A * Z))
        return self

    def _sum(self, contrasts: Contrasts) -> Array:
        """Z, or its diagonal."""
        X, V, _ = contrasts
        if self.structure == "full":
            return dense(X.T @ V)
        products = X * V if isinstance(X, np.ndarray) else X.multiply(V)
        # The sums of a csr_matrix are a matrix of one row.
        return np.asarray(products.sum(axis=0)).ravel()
