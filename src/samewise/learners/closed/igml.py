"""IGML: the Gaussian of the learned kernel nearest to that of the labels; also in feature space."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, Labels
from samewise.learners.class_checks import numbered
from samewise.learners.closed.closed_form import LinearMap, centered, group_sums, whitening
from samewise.learners.kernel_basis import KernelBasis


@dataclass(eq=False, repr=False)
class IGML(LinearMap):
    """Information-geometric metric learning: one Gaussian from the data, one from the labels.

    The metric M gives the centered examples X the kernel K_X = XMXᵀ; the labels give the ideal one,
    K_D = YYᵀ + λI with Y_ic = 1 if x_i is of class c and 0 otherwise: the λI makes it regular. Each
    is the covariance of a Gaussian of mean 0. The divergence between the two is

        KL(K_X ‖ K_D) = ½ (tr(K_D⁻¹ XMXᵀ) − log|M|) + terms without M,

    |K_X| being the product of the eigenvalues that are not 0. Its minimum has the closed form

        M = (Xᵀ K_D⁻¹ X)⁻¹ = λ (S_w + Σ_c λ n_c/(n_c + λ) m_c m_cᵀ)⁻¹

    with the scatter S_w within classes and the n_c examples of class c, whose mean is m_c. Up to a
    factor, λ leads from the metric of `RCA` with whole classes, λ → 0, to that of `Covariance`,
    λ → ∞.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): whitening makes directions that tell classes
    apart as short as the others.

    Parameters
    ----------
    smoothing : float, default=1.0
        Smoothing λ of the ideal kernel.
    shrinkage : float in [0, 1], default=0.0
        Shrinkage s towards a multiple of the identity. G = XᵀK_D⁻¹X is replaced by (1 − s) G + s
        tr(G)/d I. G is singular where the examples do not span all dimensions, as with more
        features than examples: with s = 0 the others get no weight, with a warning.

    Attributes
    ----------
    components_ : array of shape (r, d)
        L with M = LᵀL; r is the rank.
    metric_ : Mahalanobis
    classes_ : array
        The labels.
    n_features_in_ : int

    Notes
    -----
    The formula follows from the divergence that the paper names. That examples are centered, and
    that the ideal kernel is made regular by λI, are choices made here.

    No n × n matrix is formed. Sparse input is made dense, up to 2²⁷ values.

    References
    ----------
    Wang and Jin, *An information geometry approach for distance metric learning*, AISTATS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import IGML
    >>> X = np.array([[-4.0, 1.0], [-4.0, -1.0], [4.0, 1.0], [4.0, -1.0]])
    >>> IGML(smoothing=2.0).fit(X, [0, 0, 1, 1]).metric_.matrix.round(12)
    array([[0.0625, 0.    ],
           [0.    , 0.5   ]])
    """

    _learned: ClassVar[dict[str, Attribute]] = {"classes_": Labels()}
    _target_required: ClassVar[bool] = True

    smoothing: float = 1.0
    _: KW_ONLY
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
        self : IGML
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X, labels = self._dense_examples(X, y)
            self._keep(nearest_map(X, labels, self.smoothing, self.shrinkage, X.dtype), X.dtype)
        return self


@dataclass(eq=False, repr=False)
class KIGML(KernelBasis):
    """IGML on φ(x), known through a kernel k(x, x′) = φ(x)·φ(x′) only.

    The distance is ‖C(k(x) − k(x′))‖ with k(x) = (k(x, s_1), …, k(x, s_s)) for landmarks s_j. In
    the coordinates Z of kernel PCA, Λ^(−1/2) Uᵀ k(x) with the centered kernel matrix JKJ = UΛUᵀ of
    the landmarks, IGML finds LᵀL = (ZᵀK_D⁻¹Z)⁻¹, and C = L Λ^(−1/2) Uᵀ. Without shrinkage, where
    the points are independent in feature space and the classes of one size, the learned distances
    between training points are those of K_D itself: the labels, learned by heart.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, a callable of two rows, or
        "precomputed". In that case X is the kernel matrix between the training points, and later
        input holds the kernel values of new points with all training points.
    kernel_params : dict, default=None
        Keywords for the kernel, such as ``{"gamma": 0.5}``.
    n_landmarks : int, default=None
        Number s of landmarks. With all n points the span is complete. With fewer, sampled at
        random, points are replaced by their projections on the span of the landmarks (Nyström's
        method), which is an approximation of everything that follows. By default all points up to
        5 000, and 1 000 of more.
    n_directions : int, default=None
        How many leading directions of kernel PCA to keep: a second approximation, which saves much
        time. By default all whose eigenvalue is above 1e-8 of the largest (1e-5 for float32 input)
        and above the rounding of the kernel's values.
    smoothing : float, default=1.0
        Smoothing λ of the ideal kernel.
    shrinkage : float in [0, 1], default=0.01
        Shrinkage s towards a multiple of the identity. With G = ZᵀK_D⁻¹Z in the r coordinates of
        kernel PCA, G is replaced by (1 − s) G + s tr(G)/r I, which keeps the labels from being
        learned by heart.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    components_ : array of shape (r, s)
        C, the coefficients of the landmarks.
    metric_ : KernelMahalanobis
    landmarks_ : array of shape (s,)
        Row numbers of the landmarks.
    classes_ : array
        The labels.
    n_features_in_ : int

    References
    ----------
    Wang and Jin, *An information geometry approach for distance metric learning*, AISTATS 2009.

    Examples
    --------
    >>> from samewise import KIGML
    >>> from samewise.datasets import make_concentric_circles
    >>> X, y = make_concentric_circles(100, gap=0.5, random_state=0)
    >>> D = KIGML("poly", {"degree": 2}).fit(X, y).metric_.cross(X)
    >>> same = y[:, None] == y
    >>> bool(D[same].max() < D[~same].min())
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"classes_": Labels()}

    _: KW_ONLY
    smoothing: float = 1.0
    shrinkage: float = 0.01
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            For "precomputed" the kernel matrix of shape (n, n).
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : KIGML
            The fitted learner.
        """
        random = check_random_state(self.random_state)
        with unchanged_if_refused(self, random):
            X, y = validate_data(self, sound_rows(X), y, ensure_min_samples=2, **self._accepted)
            self.classes_, labels = numbered(np.asarray(y), "KIGML")
            self.landmarks_ = self._choose(X.shape, random)
            support = X[self.landmarks_].astype(np.float64)
            B, Z = self._basis(X, self.landmarks_, support)
            C = nearest_map(Z, labels, self.smoothing, self.shrinkage, X.dtype) @ B
            self.metric_ = self._form(C, self.landmarks_, support)
        return self


def nearest_map(
    X: Array, labels: Indices, smoothing: float, shrinkage: float, dtype: np.dtype[Any]
) -> Array:
    """L with LᵀL = (XᵀK_D⁻¹X)⁻¹ for centered X."""
    Z = centered(X)
    S = Z.T @ Z
    sizes = np.bincount(labels)
    sums = group_sums(Z, labels, len(sizes))
    # λ K_D⁻¹ = I − Y (λI + YᵀY)⁻¹ Yᵀ, and the rows of YᵀZ are these sums.
    G = S - (sums.T / (sizes + smoothing)) @ sums
    L = whitening(G, S, shrinkage, dtype, "scatter XᵀK_D⁻¹X", stacklevel=4)
    return np.sqrt(smoothing) * L
