"""LFDA: Fisher's discriminants of classes that may consist of several clusters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError
from samewise.kernels.pairwise import row_slices, squared_distances, squared_norms
from samewise.learners.attributes import Attribute, Labels
from samewise.learners.closed.closed_form import LinearMap, centered, whitening
from samewise.learners.constraints import check_at_most

BLOCK_BYTES = 2**19
"""A block of rows of the affinities of a class."""
KEPT_BYTES = 2**24
"""Up to here the distances within a class are kept, not computed twice."""

LEAST = 1e-290
"""σ_i σ_j at least, so that a quotient by it is finite."""


@dataclass(eq=False, repr=False)
class LFDA(LinearMap):
    """Local Fisher discriminant analysis: only near examples of a class must be near each other.

    Fisher's discriminants pull a class together as a whole, which fails where it consists of
    several clusters. Here a pair of a class counts by its affinity

        A_ij = exp(−‖x_i − x_j‖² / (σ_i σ_j)),

    σ_i being the distance of x_i to its k-th nearest neighbor in its class. With v = x_i − x_j and
    n_c examples in class c, the scatter within classes and that between them are

        S_w = ½ Σ_ij W_ij v vᵀ,   W_ij = A_ij / n_c in a class, 0 between classes,
        S_b = ½ Σ_ij B_ij v vᵀ,   B_ij = A_ij (1/n − 1/n_c) in a class, 1/n between classes.

    The rows a of L are the leading solutions of S_b a = λ S_w a with aᵀS_w a = 1, times √λ. They
    maximize tr((L S_w Lᵀ)⁻¹ L S_b Lᵀ). With A = 1 this is `LDA`; unlike it, LFDA can have as many
    directions as features.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L. By default as many as features.
    n_neighbors : int, default=7
        Number k of neighbors. In a class of k examples or fewer the farthest one is taken.
    embedding_type : {"weighted", "orthonormalized", "plain"}, default="weighted"
        Lengths of the rows of L: √λ, so that directions count by how well they tell classes apart;
        an orthonormal basis of the same directions; or as they are, with LS_wLᵀ = I.
    shrinkage : float in [0, 1], default=0.0
        Shrinkage s towards a multiple of the identity. S_w is replaced by (1 − s) S_w + s tr(S_w)/d
        I. S_w is singular where the examples do not span all dimensions, as with more features than
        examples: with s = 0 the others get no weight, with a warning.

    Attributes
    ----------
    components_ : array of shape (n_components, d)
        L, the direction with the largest λ first.
    metric_ : Mahalanobis
    classes_ : array
        The labels.
    n_features_in_ : int

    See Also
    --------
    LDA : The same with whole classes.
    LMNN : Also asks only for near examples of the same class; not in closed form.

    Notes
    -----
    Affinities are computed for a block of rows of a class at a time: memory grows with n, time with
    n_c² d for each class. Where σ_i = 0, because a row occurs more than k times, its affinity to
    different rows is 0.

    Sparse input is accepted up to 2²⁷ values and made dense.

    References
    ----------
    M. Sugiyama: Dimensionality reduction of multimodal labeled data by local Fisher discriminant
    analysis. JMLR 8, 2007, equations 10–14. The weighting by √λ is that of its section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import LFDA
    >>> X, y = load_iris(return_X_y=True)
    >>> LFDA(n_components=3).fit(X, y).metric_
    Mahalanobis(n_features_in=4, rank=3)
    """

    _learned: ClassVar[dict[str, Attribute]] = {"classes_": Labels()}
    _target_required: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedding_type": [StrOptions({"weighted", "orthonormalized", "plain"})],
    }

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 7
    embedding_type: str = "weighted"
    shrinkage: float = 0.0

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : LFDA
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X, labels = self._dense_examples(X, y)
            check_at_most("n_components", self.n_components, X.shape[1], "the number of features")
            Z = centered(X)
            # By its largest entry, so that squares stay in range.
            unit = float(np.abs(Z).max()) or 1.0
            Z /= unit
            within, between = local_scatters(Z, labels, self.n_neighbors)
            if not np.trace(within) > 0:
                raise InvalidInputError(
                    "LFDA needs classes whose examples differ: the scatter within classes is zero. "
                    "Give more examples of each class, or use PCA."
                )
            W = whitening(
                within, Z.T @ Z, self.shrinkage, X.dtype, "scatter within classes", stacklevel=4
            )
            values, U = np.linalg.eigh(W @ between @ W.T)
            L = U[:, ::-1].T[: self.n_components] @ W
            values = np.maximum(values[::-1][: len(L)], 0)
            if self.embedding_type == "orthonormalized":
                L = np.linalg.qr(L.T).Q.T
            else:
                L /= unit
            if self.embedding_type == "weighted":
                L *= np.sqrt(values)[:, None]
            self._keep(L, X.dtype)
        return self


def local_scatters(Z: Array, labels: Indices, n_neighbors: int) -> tuple[Array, Array]:
    """S_w and S_b of centered rows.

    ½ Σ_ij v vᵀ over all pairs is n ZᵀZ and over those of a class n_c S_c, so that with the sum
    G_c = ½ Σ_ij A_ij v vᵀ of each class,

        S_w = Σ_c G_c / n_c,   S_b = ZᵀZ − Σ_c n_c/n S_c + Σ_c (1/n − 1/n_c) G_c.
    """
    n, d = Z.shape
    within, between = np.zeros((d, d)), Z.T @ Z
    for number, n_c in enumerate(np.bincount(labels)):
        rows = Z[labels == number]
        rows = rows - rows.mean(axis=0)
        between -= n_c / n * (rows.T @ rows)
        if n_c > 1:
            G = affine_scatter(rows, n_neighbors)
            within += G / n_c
            between += (1 / n - 1 / n_c) * G
    return within, between


def affine_scatter(rows: Array, n_neighbors: int) -> Array:
    """½ Σ_ij A_ij v vᵀ = Xᵀ(D − A)X, D = diag(A1), in blocks of rows of A."""
    n, k = len(rows), min(n_neighbors, len(rows) - 1)
    blocks = list(row_slices(n, 8 * n, BLOCK_BYTES))
    squares, kept = squared_norms(rows), []
    sigma = np.empty(n)
    for some in blocks:
        # Each row's nearest is the row itself, or one equal to it.
        distances = squared_distances(rows[some], rows, squares)
        distances[np.arange(len(distances)), np.arange(some.start, some.stop)] = 0
        sigma[some] = np.sqrt(np.partition(distances, k, axis=1)[:, k])
        if 8 * n * n <= KEPT_BYTES:
            kept.append(distances)
    sums, mixed = np.empty(n), np.empty_like(rows)
    for number, some in enumerate(blocks):
        A = kept[number] if kept else squared_distances(rows[some], rows, squares)
        scale = np.outer(-sigma[some], sigma)
        np.exp(np.divide(A, np.minimum(scale, -LEAST, out=scale), out=A), out=A)
        sums[some] = A.sum(axis=1)
        mixed[some] = A @ rows
    G = rows.T @ (rows * sums[:, None] - mixed)
    return np.asarray((G + G.T) / 2)
