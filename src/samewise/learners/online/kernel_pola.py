"""POLA in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._typing import Array, Matrix
from samewise.engine.kernel_span import BLOCK, KernelSpan, restored_rows, rows_state
from samewise.engine.online import Online
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Form, KernelMahalanobis
from samewise.kernels import psd
from samewise.kernels.steps import Step
from samewise.learners.online.pair_learner import LEAST_B, PairLearner
from samewise.supervision import Pairs

__all__ = ["KernelPOLA"]


class KernelPOLA(PairLearner):
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
    gamma : float, default=0.0
        Relaxation γ for data that are not separable: larger is more cautious.
    n_passes : int, default=1
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    tolerance : float, default=0.0
        An update is made only if |τ| ≥ tolerance.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default 20 per example, and at most
        100 000.
    strategy : {"balanced", "random"}, default="balanced"
        How pairs are sampled from labeled examples, see `Pairs.from_labels`.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : KernelMahalanobis
        The learned distance.
    threshold_ : float
        b, on squared distances.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"precomputed", *kernel_metrics()}), callable],
        "kernel_params": [None, dict],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "n_pairs": [None, Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"balanced", "random"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: str | Callable[..., float] = "rbf",
        kernel_params: Mapping[str, Any] | None = None,
        gamma: float = 0.0,
        *,
        n_passes: int = 1,
        shuffle: bool = False,
        tolerance: float = 0.0,
        n_pairs: int | None = None,
        strategy: str = "balanced",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.gamma = gamma
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.tolerance = tolerance
        self.n_pairs = n_pairs
        self.strategy = strategy
        self.verbose = verbose
        self.random_state = random_state

    def _begin(self, pairs: Pairs) -> Online:
        self._span = KernelSpan()
        self._first = self._members(pairs[:1])[0]
        if not self._precomputed:
            # Meets keywords that the kernel does not know before anything is learned.
            self._evaluate(self._first, self._first)
        return Online(
            Symmetric(np.empty((0, 0))),
            1.0,
            Step(float("inf"), self.gamma, False),
            psd="each",
            least_b=LEAST_B,
            average="last",
            tolerance=self.tolerance,
            path="auto",
        )

    def _portions(self, pairs: Pairs) -> Iterator[slice]:
        return (slice(start, start + BLOCK) for start in range(0, len(pairs), BLOCK))

    def _show(self, online: Online, pairs: Pairs) -> None:
        kernel = partial(_submatrix, pairs.X) if self._precomputed else self._evaluate
        self._span.learn(online, pairs, *self._members(pairs), kernel)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _members(self, pairs: Pairs) -> tuple[Matrix, Matrix]:
        """What the kernel is evaluated on: rows, or their numbers in the kernel matrix."""
        if self._precomputed:
            return pairs.left.astype(np.int64), pairs.right.astype(np.int64)
        return pairs.X[pairs.left], pairs.X[pairs.right]

    def _evaluate(self, A: Matrix, B: Matrix) -> Array:
        # As the form does it: with a number of NumPy's, float32 rows would be evaluated in float64.
        params = (self.kernel_params or {}).items()
        plain = {name: v.item() if isinstance(v, np.generic) else v for name, v in params}
        return pairwise_kernels(A, B, metric=self.kernel, **plain)

    def _supervision(self, X: Any, *args: Any, **kwargs: Any) -> Pairs:
        pairs = super()._supervision(X, *args, **kwargs)
        n, m = pairs.X.shape
        if self._precomputed and n != m:
            raise InvalidInputError(
                "With kernel='precomputed', X must be the square kernel matrix between the "
                f"training points. Got shape ({n}, {m})."
            )
        return pairs

    def _form(self, M: Array) -> Form:
        span = self._span
        if len(span) == 0:
            return KernelMahalanobis(np.zeros((1, 1)), self._first, self.kernel, self.kernel_params)
        F = psd.factor(M)[0] @ span.basis
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
        return KernelMahalanobis(coefficients, members, self.kernel, self.kernel_params)

    @property
    def _n_features_out(self) -> int:
        return len(self.metric_.coefficients)  # type: ignore[attr-defined]

    def _squared_lengths(self, V: Matrix) -> Array:
        raise InvalidInputError(
            "Under a kernel a distance depends on both members of a pair. Got a matrix; give Pairs "
            "or an array of shape (n, 2, d)."
        )

    def _learned_state(self) -> State:
        state = super()._learned_state().add("span", self._span.state())
        return state.add("first", rows_state(self._first))

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        shape = self.n_features_in_, self._precomputed
        self._span = KernelSpan.restore(saved.part("span"), *shape)
        self._first = restored_rows(saved.part("first"), 1, *shape)
        s = len(self._span)
        saved.check(self._online.store.shape == (s, s), "matrix does not live in the span")
        if not self._precomputed:
            # Meets unknown keywords; not on the rows, whose width a file may only claim.
            self._evaluate(np.ones((1, 1)), np.ones((1, 1)))

    def _restored_engine(self, saved: Saved) -> Online:
        online = Online.restore(saved, Symmetric)
        right = online.psd == "each" and online.average.kind == "last"
        saved.check(right, "psd must be each, and average last")
        return online

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.transformer_tags.preserves_dtype = []
        return tags


def _submatrix(K: Array, rows: Any, columns: Any) -> Array:
    return K[np.ix_(rows, columns)]
