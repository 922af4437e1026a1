"""MMC: Mahalanobis metric learning for clustering, with side information."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array
from samewise.engine.online import few_threads
from samewise.files.state import Saved
from samewise.kernels.psd import factor
from samewise.learners.attributes import Attribute, Number
from samewise.learners.batch.batch_learner import (
    BatchLearner,
    BatchPairLearner,
)
from samewise.learners.batch.mmc_problems import (
    PROBLEMS,
    Sides,
    Stretch,
    Vector,
    Weights,
    sides_of,
)
from samewise.learners.pair_judge import PairDistance


@dataclass(eq=False, repr=False)
class MMC(PairDistance, BatchPairLearner, BatchLearner):
    """Dissimilar pairs as far apart as possible, while similar ones are near.

        maximize Σ_D √(vᵀAv)   subject to   Σ_S vᵀAv ≤ 1, A ⪰ 0,

    where v = x − x′ runs over the dissimilar pairs D and the similar pairs S. The problem is
    convex.

    Parameters
    ----------
    structure : {"full", "diagonal"}, default="full"
        Kind of matrix to learn; "diagonal" is one weight for each feature. It is learned by
        Newton's method.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when no other A can have an objective larger
        by more than this part. It can be asked for down to about 1e-7.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `metric_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    shrinkage : float in [0, 1], default=0.7
        Shrinkage s towards a multiple of the identity. A of trace 1 is replaced by (1 − s) A + s/d
        I: without it, A has few directions and neighbors are lost, see the notes.
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
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` A after shrinkage, scaled so that Σ_S vᵀAv = 1.
    components_ : array of shape (rank, n_features)
        L with A = LᵀL.
    threshold_ : float
        On squared distances: a pair is called similar when its squared distance is at most this.
        Of all thresholds, it decides most pairs rightly: of random ones that are held out, after
        labels, and otherwise of those learned from. Not there if these are all similar or all
        dissimilar.
    objective_ : float
        Σ_D √(vᵀAv) of the A found, before shrinkage.
    gap_ : float
        No A has an objective above objective_ + gap_.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "objective", "gap" as last computed, and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    ITML : Bounds on distances, near a prior metric.
    POLA : Learns online from pairs.

    Notes
    -----
    The paper climbs the gradient and projects on the two conditions in turn, many times for each
    step. Here coordinates are chosen in which Σ_S vᵀAv is the trace of A, and with A = LᵀL

        log Σ_D ‖Lv‖ − ½ log tr LᵀL

    is climbed by L-BFGS without any condition; its derivative proves how far the maximum can be.
    With weights, pairs count as often as their weights say. The differences of dissimilar pairs are
    held in memory, in float64.

    A feature, or a direction, in which dissimilar pairs differ and similar ones do not could be
    stretched without end. There the scatter of similar pairs gets a ridge, with a warning. What no
    pair differs in has no part in A. Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    E. P. Xing, A. Y. Ng, M. I. Jordan, S. Russell: Distance metric learning, with application to
    clustering with side-information. NIPS 2002, equations 3–5 and 6–8.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import MMC
    >>> X, y = load_iris(return_X_y=True)
    >>> mmc = MMC(random_state=0).fit(X, y)
    >>> bool(0 <= mmc.gap_ <= 1e-3 * mmc.objective_)
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"objective_": Number(), "gap_": Number()}

    structure: str = "full"
    _: KW_ONLY
    shrinkage: float = 0.7
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features), or matrix of labeled examples
            Pairs of examples. From labeled examples, dense or CSR, pairs are sampled first.
        y : array, default=None
            ±1 with an array of pairs; class labels with examples; None with Pairs.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with unchanged_if_refused(self):
            before = self._before("components_")
            pairs, judged = self._pairs(X, y, check_random_state(self.random_state))
            if before is not None and before.shape[1] != pairs.X.shape[1]:
                before = None
            sides = sides_of(pairs)
            problem = PROBLEMS[self.structure](sides)
        self._learn(problem, sides, before, lambda: self._calibrate(judged))
        return self

    def _learn(
        self,
        problem: Stretch | Weights,
        sides: Sides,
        before: Array | None,
        calibrate: Callable[[], None],
    ) -> None:
        """Learn from the sums over both sides, and then choose a threshold."""
        with self._log("objective", "gap") as log, few_threads(len(sides.near)):
            found = problem.solve(before, self.max_iter, self.tol, log)
            log.say()
            self._keep(self._shrunk(found.components, sides.near), sides.dtype)
            calibrate()
            self.objective_, self.gap_ = found.objective, found.gap
            self.converged_ = bool(found.gap <= self.tol * found.objective)
            reached = f"; the gap is {found.gap / found.objective:.1e}·objective"
            self._end(log, reached, stacklevel=6)

    @classmethod
    def _former_parameters(cls, saved: Saved) -> dict[str, Any]:
        former = super()._former_parameters(saved)
        return former if saved.has("shrinkage") else {**former, "shrinkage": 0.0}

    def _shrunk(self, L: Array, near: Vector) -> Array:
        """L of the result: A with its part of the identity, and again Σ_S vᵀAv = 1."""
        trace, s = float(np.vdot(L, L)), self.shrinkage
        if not s or not trace:
            return L
        A = (1 - s) / trace * (L.T @ L)
        A[np.diag_indices(len(A))] += s / len(A)
        return factor(A / np.vdot(A, near))[0]
