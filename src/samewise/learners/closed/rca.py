"""RCA: points of one chunklet get unit covariance; and the same in feature space."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, Labels, Values
from samewise.learners.class_checks import numbered
from samewise.learners.closed.closed_form import LinearMap, whitening
from samewise.learners.closed.scatter_matrices import covariances
from samewise.learners.constraints import COUNT, check_at_most
from samewise.learners.dense_rows import dense_rows
from samewise.learners.kernel_basis import KernelBasis
from samewise.learners.learner import ROWS, Learner
from samewise.supervision import Pairs
from samewise.supervision.chunklets import (
    checked_chunklets,
    draw_chunklets,
    is_known,
    linked_chunklets,
)
from samewise.supervision.gate import as_pairs, is_labeled


@dataclass(eq=False, repr=False)
class ChunkletLearner(Learner, storable=False):
    """How chunklets come in: given, linked by similar pairs, or made from labels."""

    _learned: ClassVar[dict[str, Attribute]] = {
        "classes_": Labels(optional=True),
        "chunklets_": Values(dtypes=("int64",)),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_chunklets": [COUNT, None],
        "chunk_size": [Interval(Integral, 2, sys.maxsize, closed="both")],
    }
    _: KW_ONLY
    n_chunklets: int | None = None
    chunk_size: int = 2
    random_state: Any = None

    def _chunklets_from(
        self,
        X: Any,
        y: Any,
        chunklets: Any,
        random: np.random.RandomState,
        accepted: dict[str, Any],
    ) -> tuple[Matrix, Indices]:
        """The points, and the chunklet of each."""
        owner = type(self).__name__
        accepted = {**accepted, "ensure_min_samples": 2}
        if not is_labeled(X):
            if chunklets is not None:
                raise InvalidInputError(
                    "Similar pairs make the chunklets. Got chunklets beside pairs; give one of the "
                    "two."
                )
            pairs = as_pairs(X, y, None, learner=owner, draw=Pairs.from_labels)
            self.__dict__.pop("classes_", None)
            return validate_data(self, pairs.X, **accepted), linked_chunklets(pairs)
        if chunklets is not None:
            if y is not None:
                raise InvalidInputError(
                    f"{owner} learns from labels y or from chunklets. Got both; give one of the "
                    "two."
                )
            X = validate_data(self, sound_rows(X), **accepted)
            self.__dict__.pop("classes_", None)
            return X, checked_chunklets(chunklets, X.shape[0])
        if y is None:
            raise InvalidInputError(
                f"{owner} requires y to be passed, but the target y is None: give class labels or "
                "chunklets with examples, ±1 with an array of pairs, or Pairs."
            )
        X, y = validate_data(self, sound_rows(X), y, **accepted)
        return X, self._chunklets_of_labels(np.asarray(y), random)

    def _chunklets_of_labels(self, y: NDArray[Any], random: np.random.RandomState) -> Indices:
        """The classes, or chunklets sampled from them; −1 where the label is not known."""
        owner, known = type(self).__name__, is_known(y)
        if not known.all() and len(named := np.unique(y[known]).tolist()) < 2:
            raise InvalidInputError(
                f"{owner} needs labels of at least two classes, and takes the label -1 for "
                f"unlabeled. Got -1 and {named}; if -1 is a class, give it another label, and if "
                "there is one chunklet, give it as chunklets."
            )
        chunklets = np.full(len(y), -1)
        self.classes_, chunklets[known] = numbered(y[known], owner)
        if self.n_chunklets is not None:
            chunklets[known] = draw_chunklets(
                chunklets[known], self.n_chunklets, self.chunk_size, random, stacklevel=6
            )
        return chunklets

    def _examples(self, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, NDArray[Any]]:
        """Those of the examples whose label is known."""
        X, y = super()._examples(X, y, reset)
        known = is_known(y)
        return X[known], y[known]


@dataclass(eq=False, repr=False)
class RCA(LinearMap, ChunkletLearner):
    """Relevant component analysis: M is the inverse covariance within chunklets.

    A chunklet is a set of points of the same class, whichever that is. With the mean m_c of the
    chunklet c that x_i is in, and p points in chunklets,

        C_w = 1/p Σ_i (x_i − m_c)(x_i − m_c)ᵀ,   M = ((1 − s) C_w + s tr(C_w)/d I)⁻¹.

    Of all M with a mean square 1/p Σ_i (x_i − m_c)ᵀM(x_i − m_c) of at most d within chunklets,
    C_w⁻¹ is the one of the largest determinant. The rows a of L solve C a = λ C_w a with
    aᵀC_w a = 1, C being the covariance of all points, largest λ first: n_components of them make
    the best reduction by Fisher's criterion |LCLᵀ|/|LC_wLᵀ|.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): whitening makes directions that tell classes
    apart as short as the others.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L. By default all.
    n_chunklets : int, default=None
        Number of chunklets to sample from labels. By default each class is one chunklet, as a
        whole.
    chunk_size : int, default=2
        Points in each chunklet that is sampled.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.
    shrinkage : float in [0, 1], default=0.0
        Shrinkage s towards a multiple of the identity. A singular C_w, as from few pairs in many
        dimensions, needs it. With s = 0 it is chosen small, and directions in which no points
        differ get no weight; a warning says so.

    Attributes
    ----------
    components_ : array of shape (n_components, d)
        L with M = LᵀL.
    metric_ : Mahalanobis
        The learned distance.
    chunklets_ : array of shape (n,)
        The chunklet of each point; −1 for none.
    classes_ : array
        The labels, if there were any, without −1.
    n_features_in_ : int
        Number of features d.

    Notes
    -----
    Points without a chunklet, and alone in theirs, have a part in C only. Dissimilar pairs are not
    used, and of weights of pairs only whether they are 0.

    Sparse input is made dense, up to 2²⁷ values.

    References
    ----------
    Bar-Hillel, Hertz, Shental and Weinshall, *Learning a Mahalanobis metric from equivalence
    constraints*, JMLR 6, 2005; Shental, Hertz, Weinshall and Pavel, *Adjustment learning and
    relevant component analysis*, ECCV 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import RCA
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0], [5.0, 3.0], [9.0, 9.0]])
    >>> RCA().fit(X, chunklets=[0, 0, 1, 1, -1]).metric_.matrix.round(12)
    array([[2., 0.],
           [0., 2.]])
    """

    _target_required: ClassVar[bool] = True

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: float = 0.0

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike | None = None, *, chunklets: ArrayLike | None = None
    ) -> Self:
        """Learn from chunklets, similar pairs or labels.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), Pairs, or array of shape (n_pairs, 2, d)
            Points, or pairs: points that are linked by similar pairs make a chunklet.
        y : array, default=None
            Class labels of points, −1 for unlabeled; or ±1 for an array of pairs.
        chunklets : int array of shape (n,), default=None
            In the place of labels: the number of the chunklet of each point; −1 for none.

        Returns
        -------
        self : RCA
            The fitted learner.
        """
        random = check_random_state(self.random_state)
        with unchanged_if_refused(self, random):
            X, self.chunklets_ = self._chunklets_from(X, y, chunklets, random, ROWS)
            X = dense_rows(X, "RCA")
            check_at_most("n_components", self.n_components, X.shape[1], "the number of features")
            L = relevant_components(X, self.chunklets_, self.shrinkage, X.dtype, "RCA")
            self._keep(L[: self.n_components], X.dtype)
        return self


@dataclass(eq=False, repr=False)
class KRCA(ChunkletLearner, KernelBasis):
    """RCA on φ(x), known through a kernel k(x, x′) = φ(x)·φ(x′) only.

    The distance is ‖C(k(x) − k(x′))‖ with k(x) = (k(x, s_1), …, k(x, s_s)) for landmarks s_j. In
    the coordinates of kernel PCA, Λ^(−1/2) Uᵀ k(x) with the centered kernel matrix JKJ = UΛUᵀ of
    the landmarks, RCA finds L, and C = L Λ^(−1/2) Uᵀ. With a linear kernel this is RCA.

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
    n_chunklets : int, default=None
        Number of chunklets to sample from labels. By default each class is one chunklet, as a
        whole.
    chunk_size : int, default=2
        Points in each chunklet that is sampled.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.
    n_components : int, default=None
        Number of rows of L. At most the number of directions, which is the default.
    shrinkage : float in [0, 1], default=0.01
        Shrinkage s towards a multiple of the identity. In nearly as many directions as there are
        points C_w is singular, whatever the points are.

    Attributes
    ----------
    components_ : array of shape (n_components, s)
        C, the coefficients of the landmarks.
    metric_ : KernelMahalanobis
        The learned distance.
    landmarks_ : array of shape (s,)
        Row numbers of the landmarks.
    chunklets_ : array of shape (n,)
        The chunklet of each point; −1 for none.
    classes_ : array
        The labels, if there were any, without −1.
    n_features_in_ : int
        Number of features d.

    References
    ----------
    Tsang, Cheung and Kwok, *Kernel relevant component analysis for distance metric learning*,
    IJCNN 2005.

    Examples
    --------
    >>> from samewise import KRCA
    >>> from samewise.datasets import make_concentric_circles
    >>> X, y = make_concentric_circles(100, gap=0.5, random_state=0)
    >>> D = KRCA("poly", {"degree": 2}).fit(X, y).metric_.cross(X)
    >>> same = y[:, None] == y
    >>> bool(D[same].max() < D[~same].min())
    True
    """

    _: KW_ONLY
    n_components: int | None = None
    shrinkage: float = 0.01

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike | None = None, *, chunklets: ArrayLike | None = None
    ) -> Self:
        """Learn from chunklets, similar pairs or labels.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), Pairs, or array of shape (n_pairs, 2, d)
            Points, or pairs: points that are linked by similar pairs make a chunklet. For
            "precomputed" X is the kernel matrix of shape (n, n), whose rows pairs name.
        y : array, default=None
            Class labels of points, −1 for unlabeled; or ±1 for an array of pairs.
        chunklets : int array of shape (n,), default=None
            In the place of labels: the number of the chunklet of each point; −1 for none.

        Returns
        -------
        self : KRCA
            The fitted learner.
        """
        random = check_random_state(self.random_state)
        with unchanged_if_refused(self, random):
            X, self.chunklets_ = self._chunklets_from(X, y, chunklets, random, self._accepted)
            self.landmarks_ = self._choose(X.shape, random)
            support = X[self.landmarks_].astype(np.float64)
            B, Z = self._basis(X, self.landmarks_, support)
            check_at_most("n_components", self.n_components, len(B), "the number of directions")
            L = relevant_components(Z, self.chunklets_, self.shrinkage, X.dtype, "KRCA")
            C = L[: self.n_components] @ B
            self.metric_ = self._form(C, self.landmarks_, support)
        return self


def relevant_components(
    X: Array, chunklets: Indices, shrinkage: float, dtype: np.dtype[Any], owner: str
) -> Array:
    """L, its rows in the order of the variance of all points along them."""
    return relevant_directions(*covariances(X, chunklets), shrinkage, dtype, owner)


def relevant_directions(
    C: Array, Cw: Array | None, shrinkage: float, dtype: np.dtype[Any], owner: str
) -> Array:
    """L from the covariance of all points and that within chunklets, None if there are none."""
    if Cw is None:
        raise InvalidInputError(
            f"{owner} needs a chunklet of at least two points, to see how they differ. Got none; "
            "give similar pairs, or chunklets with two points or more."
        )
    W = whitening(Cw, C, shrinkage, dtype, "covariance within chunklets", stacklevel=5)
    _, U = np.linalg.eigh(W @ C @ W.T)
    return U[:, ::-1].T @ W
