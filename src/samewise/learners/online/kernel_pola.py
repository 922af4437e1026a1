"""POLA in the feature space of a kernel."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from samewise._typing import Array, Matrix
from samewise.engine.kernel_span import BLOCK, KernelSpan, restored_rows, rows_state
from samewise.engine.online import out_of_range
from samewise.engine.rank_one_mover import RankOneMover
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Form, KernelMahalanobis
from samewise.forms.kernel_mahalanobis import KERNELS, kernel_values
from samewise.kernels import psd
from samewise.kernels.pairwise import dense, row_slices
from samewise.kernels.steps import Step
from samewise.learners.attributes import Attribute
from samewise.learners.online.pair_learner import LEAST_B, PairLearner
from samewise.learners.pair_judge import PairDistance
from samewise.supervision import Pairs
from samewise.supervision.gate import is_labeled
from samewise.supervision.supervision_checks import LARGEST

SQUARE = 32
"""Rows whose kernel values with each other are computed for the diagonal."""
BLOCK_BYTES = 2**24
"""Kernel values at a time when near examples are looked for."""


class _Span(Attribute):
    """The span that the matrix lives in."""

    def keep(self, state: State, name: str, value: KernelSpan) -> None:
        state.add(name, value.state())

    def restored(self, saved: Saved, name: str, learner: KernelPOLA) -> KernelSpan:
        width, numbers = learner.n_features_in_, learner._precomputed
        return KernelSpan.restore(saved.part(name), width, numbers)


class _Point(Attribute):
    """One point that the kernel is evaluated on."""

    def keep(self, state: State, name: str, value: Matrix) -> None:
        state.add(name, rows_state(value))

    def restored(self, saved: Saved, name: str, learner: KernelPOLA) -> Matrix:
        return restored_rows(saved.part(name), 1, learner.n_features_in_, learner._precomputed)


@dataclass(eq=False, repr=False)
class KernelPOLA(PairDistance, PairLearner):
    """POLA on φ(x), known through a kernel k(x, x′) = φ(x)·φ(x′) only.

    The matrix stays in the span of the differences φ(x) − φ(x′) of the pairs that updated it,
    M = Σ λ_i r_i r_iᵀ, and everything is done in an orthonormal basis of that span. With a linear
    kernel this is POLA itself.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, a callable of two rows, or
        "precomputed". In that case X is the kernel matrix between the training points, pairs name
        its rows, and later input holds the kernel values of new points with all training points.
    kernel_params : dict, default=None
        Keywords for the kernel, such as ``{"gamma": 0.5}``.
    relaxation : float, default=0.0
        Relaxation γ for data that are not separable: larger is more cautious.
    n_passes : int, default=1
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    tolerance : float, default=0.0
        An update is made only if |τ| ≥ tolerance.
    purpose : {"neighbors", "verification"}, default="neighbors"
        What the metric is for, if pairs are sampled from labeled examples. "neighbors": for each
        example its nearest of its own class and of the others, which tells what to bring near for
        k-NN and search. "verification": random pairs, half of them similar, which tells whether
        any two examples are the same.
    n_neighbors : int, default=10
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all nearest pairs, or 20 random
        ones per example, and at most 100 000.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : KernelMahalanobis
        The learned distance.
    threshold_ : float
        b, on squared distances. After labels, the one that decides most of some random pairs
        of that portion rightly, half of them similar, held out; after pairs, the learner's own.
    components_ : array of shape (n_directions, n_points)
        M^½ in an orthonormal basis of the span, as coefficients of the points that the form holds.
        The basis grows at its end: coordinates of earlier transforms, filled up with zeros, can be
        compared with later ones.
    n_updates_ : int
        Updates so far.
    n_seen_ : int
        Pairs seen so far.
    n_mistakes_ : int
        Pairs that were judged wrongly when they arrived.
    loss_ : float
        Σ ℓ over the pairs, each when it arrived.
    history_ : dict of arrays
        Running totals "rounds", "loss", "mistakes" and "updates".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X had any.

    See Also
    --------
    POLA : The same without a kernel.

    Notes
    -----
    The span grows by one direction with every update that is not in it yet: with u updates the
    memory is O(u²) and a pair costs O(u² + u·d).

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, A. Y. Ng: Online and batch learning of pseudo-metrics. ICML 2004,
    §3.3.

    Examples
    --------
    >>> from samewise import KernelPOLA
    >>> from samewise.datasets import make_concentric_circles
    >>> X, y = make_concentric_circles(60, random_state=0)
    >>> kernel = {"kernel": "poly", "kernel_params": {"degree": 2, "coef0": 0}}
    >>> learner = KernelPOLA(**kernel, n_passes=3, random_state=0).fit(X, y)
    >>> learner.score(X, y) > 0.9
    True
    """

    _moved_by = RankOneMover
    _learned: ClassVar[dict[str, Attribute]] = {
        "_span": _Span(),
        "_first": _Point(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"precomputed", *KERNELS}), callable],
        "kernel_params": [None, dict],
    }

    kernel: str | Callable[..., float] = "rbf"
    kernel_params: Mapping[str, Any] | None = None
    relaxation: float = 0.0
    _: KW_ONLY
    n_passes: int = 1
    shuffle: bool = False
    tolerance: float = 0.0
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
    verbose: bool = False
    random_state: Any = None

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _supervision(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        random: np.random.RandomState,
        reset: bool,
        **more: Any,
    ) -> Pairs:
        pairs = super()._supervision(X, y, sample_weight, random, reset)
        if self._precomputed:
            _check_square(pairs.X)
        return pairs

    def _nearness(self, X: Matrix) -> FeatureSpace:
        if self._precomputed:
            _check_square(X)
        return FeatureSpace(None if self._precomputed else self._evaluate)

    def _mover(self, examples: Pairs) -> RankOneMover:
        self._span = KernelSpan()
        self._first = self._points(examples[:1])[0]
        if not self._precomputed:
            # Meets keywords that the kernel does not know before anything is learned.
            self._evaluate(self._first, self._first)
        step = Step(relax=self.relaxation, tolerance=self.tolerance)
        M = Symmetric(np.empty((0, 0)))
        return RankOneMover(M, LEAST_B, step, psd="each", least_b=LEAST_B)

    def _learn(self, examples: Pairs, once: bool, **how: Any) -> None:
        # The span and the matrix grow together, and a kernel may fail between them.
        self._online.hold()
        self._span = copy.copy(self._span)
        super()._learn(examples, once, sizes=(BLOCK, BLOCK), **how)

    def _show(self, examples: Pairs) -> None:
        kernel = partial(_submatrix, examples.X) if self._precomputed else self._evaluate
        self._span.learn(self._online, examples, *self._points(examples), kernel)

    def _points(self, pairs: Pairs) -> tuple[Matrix, Matrix]:
        """What the kernel is evaluated on: rows, or their numbers in the kernel matrix."""
        if self._precomputed:
            return pairs.left.astype(np.int64), pairs.right.astype(np.int64)
        return pairs.X[pairs.left], pairs.X[pairs.right]

    def _evaluate(self, A: Matrix, B: Matrix) -> Array:
        # As the form does it: with a number of NumPy's, float32 rows would be evaluated in float64.
        params = (self.kernel_params or {}).items()
        plain = {name: v.item() if isinstance(v, np.generic) else v for name, v in params}
        with np.errstate(over="ignore", invalid="ignore"):
            K = kernel_values(self.kernel, plain, A, B)
        size, limit = float(np.abs(K).max()), LARGEST[np.dtype(np.float64)] ** 2
        if not size <= limit:
            raise InvalidInputError(
                f"The kernel has values up to {size:.3g} on these examples, whose squares overflow;"
                f" scale the features, or choose other kernel_params, for values below {limit:g}."
            )
        return K

    def _form(self, M: Array) -> Form:
        span = self._span
        if len(span) == 0:
            return KernelMahalanobis(np.zeros((1, 1)), self._first, self.kernel, self.kernel_params)
        # Later directions come behind, so that the coordinates of earlier ones keep their meaning.
        # Sums that were read from a file may be larger than learning leaves them.
        with np.errstate(over="ignore", invalid="ignore"):
            F = psd.root_of(*psd.factor(M)) @ span.basis
            coefficients = np.hstack([F, -F])
            if sp.issparse(span.left):
                members = sp.csr_array(sp.vstack([span.left, span.right]))
            else:
                # A point that stood in several pairs is evaluated once.
                members, place = np.unique(
                    np.concatenate([span.left, span.right]), axis=0, return_inverse=True
                )
                summed = np.zeros((len(members), len(F)))
                np.add.at(summed, place.ravel(), coefficients.T)
                coefficients = summed.T
        if not np.isfinite(coefficients).all():
            raise out_of_range(coefficients.dtype)
        return KernelMahalanobis(coefficients, members, self.kernel, self.kernel_params)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self._span), len(self._span)

    @property
    def components_(self) -> Array:
        """M^½ in a basis of the span, as coefficients of the points that the form holds."""
        return self.metric_.coefficients

    def _mapped(self, X: Matrix) -> Array:
        return self.metric_.embed(X)

    def _members(self, X: Any) -> Pairs:
        if self._precomputed and is_labeled(X):
            raise InvalidInputError(
                "A kernel matrix does not have the kernel values of the zero vector, with which "
                "rows are compared. Got a matrix; give Pairs or an array of shape (n, 2, d)."
            )
        return super()._members(X)

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        mover = self._online.mover
        saved.check(isinstance(mover, RankOneMover) and mover.psd == "each", "psd must be each")
        if not self._precomputed:
            # Meets unknown keywords; not on the rows, whose width a file may only claim.
            self._evaluate(np.ones((1, 1)), np.ones((1, 1)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_square(X: Matrix) -> None:
    n, m = X.shape
    if n != m:
        raise InvalidInputError(
            "With kernel='precomputed', X must be the square kernel matrix between the training "
            f"points. Got shape ({n}, {m})."
        )


class FeatureSpace(NamedTuple):
    """Closeness in the feature space of a kernel: −‖φ(x) − φ(y)‖² = 2k(x, y) − k(x, x) − k(y, y).

    Attributes
    ----------
    kernel : callable (rows, rows) → array, or None
        Kernel values of all rows with all rows; None where rows are those of the kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> space = FeatureSpace(lambda A, B: A @ B.T)
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> [closeness.argmax(axis=1).tolist() for _, closeness in space.blocks(X[:2], X)]
    [[0, 1]]
    """

    kernel: Callable[[Matrix, Matrix], Array] | None

    def blocks(self, X: Matrix, Y: Matrix) -> Iterator[tuple[slice, Array]]:
        """Rows of X and 2k(x, y) − k(y, y), which orders all rows y of Y as closeness does."""
        n, kernel = Y.shape[0], self.kernel
        if kernel is None:
            own = Y.diagonal()
        else:
            squares = (kernel(Y[part], Y[part]) for part in row_slices(n, 1, SQUARE))
            own = np.concatenate([np.empty(0), *(K.diagonal() for K in squares)])
        for rows in row_slices(X.shape[0], 8 * n, BLOCK_BYTES):
            yield rows, 2 * (dense(X[rows]) if kernel is None else kernel(X[rows], Y)) - own


def _submatrix(K: Array, rows: Any, columns: Any) -> Array:
    return K[np.ix_(rows, columns)]
