"""Maximally collapsing metric learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise.learners.attributes import Attribute, Labels, Number
from samewise.learners.batch.batch_learner import BatchLearner
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.soft_neighbors import (
    SAMPLE,
    Coordinates,
    PointsOf,
    SoftNeighbors,
    Vector,
    at_scale,
    in_memory,
    near_at_one,
)
from samewise.learners.batch.whitened_basis import POWERS
from samewise.solvers.evaluation import LossAndGradient, Matrix64
from samewise.solvers.factored_convex import ProvenSolution, solve
from samewise.solvers.workers import workers


@dataclass(eq=False, repr=False)
class MCML(BatchLearner):
    """Maximally collapsing metric learning: classes as single points, other classes far away.

    If classes were points, infinitely far from each other, point i would choose its neighbors with
    the probabilities p₀(j|i) = 1/(n_c − 1) for the others of its class and 0 elsewhere. The M ⪰ 0
    that is nearest to this,

        minimize Σ_i KL(p₀(·|i) ‖ p(·|i)),   p(j|i) = exp(−D_ij) / Σ_{k≠i} exp(−D_ik),

    with D_ij = (x_i − x_j)ᵀM(x_i − x_j), is the solution of a convex problem.

    Parameters
    ----------
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when `gap_` is at most tol·max(loss, 1).
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `components_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    init : {"auto", "identity"} or array of shape (any, n_features), default="auto"
        Where to start. Principal or discriminant directions or a map between the two, whichever has
        the least loss on a sample, scaled; L = I; or a given L. All lead to the same minimum.

    Attributes
    ----------
    components_ : array of shape (n_features, n_features)
        L with M = LᵀL. ``metric_.reduce(r)`` keeps the leading directions.
    metric_ : Mahalanobis
        The learned form.
    loss_ : float
        The sum of the divergences.
    gap_ : float
        No M′ ⪰ 0 of up to twice the size of M has a loss below loss_ − gap_. Size is the trace of M
        times the covariance within classes (with its least variances raised).
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss", "gap" as last computed, and "seconds".
    classes_ : array of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    NCA : The expected errors of the same probabilities.
    LDA : A closed form with a similar goal.

    Notes
    -----
    L-BFGS goes over L; the derivative by M proves how far the minimum can be, and leads on where L
    has lost rank too early. A point that is alone in its class chooses nobody and is only chosen.

    Probabilities are computed for a block of rows at a time, shared by a few threads: memory grows
    with n, not with n²; time for an iteration with n². float32 data are worked on in float32, in
    which a gap below about 1e-3·loss may not be reached.

    Sparse input is accepted up to 2²⁷ values and made dense. Ctrl-C ends a run with what was
    learned up to there in place.

    References
    ----------
    A. Globerson, S. Roweis: Metric learning by collapsing classes. NIPS 2005, equations 1–4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import MCML
    >>> X, y = load_iris(return_X_y=True)
    >>> starts = [MCML(init=init).fit(X, y) for init in ("auto", "identity")]
    >>> bool(abs(starts[0].loss_ - starts[1].loss_) <= 2e-3 * starts[0].loss_)
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "classes_": Labels(),
        "loss_": Number(),
        "gap_": Number(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "init": [StrOptions({"auto", "identity"}), "array-like"],
    }

    _: KW_ONLY
    init: str | ArrayLike = "auto"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The examples.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : object
            The fitted learner.
        """
        return self._fitted(X, y, in_memory)

    def _fitted(self, X: Any, y: Any, points_of: PointsOf) -> Self:
        """Fitted to examples, over which `points_of` knows how to sum."""
        with unchanged_if_refused(self):
            X, labels = self._dense_examples(X, y)
            L = self._given_start()
        with self._log("loss", "gap") as log, workers() as team:
            classes = Classes(labels, len(self.classes_))
            where = Coordinates(X, classes)
            problem = Collapse(points_of(where, classes, team))
            d = X.shape[1]
            if L is None:
                L = min(self._starts(problem.points, where, d), key=lambda tried: tried[0])[1]
            else:
                L = np.linalg.qr(np.vstack([where.coordinates(L), np.zeros((d, d))])).R

            def look(found: ProvenSolution) -> bool:
                known = found.value.loss, found.gap * max(found.value.loss, 1.0)
                return log.look(lambda: where.components(found.L), *known)

            found = solve(problem, L, max_iter=self.max_iter, tol=self.tol, look=look)
            log.say()
            self._keep(where.components(found.L), X.dtype)
            self.loss_, self.converged_ = found.value.loss, found.converged
            self.gap_ = found.gap * max(self.loss_, 1.0)
            reached = f"; the gap is {self.gap_:.1e} for a loss of {self.loss_:.3g}"
            self._end(log, reached, stacklevel=6)
        return self

    @staticmethod
    def _starts(
        points: SoftNeighbors, where: Coordinates, d: int
    ) -> Iterator[tuple[float, Matrix64]]:
        """A few maps with their losses on a sample."""
        sample = Collapse(points.every(len(points.X) // SAMPLE + 1))
        for power in POWERS:
            L = at_scale(points, where.principal(d, power), near_at_one)
            yield sample.value_and_gradient(L).loss, L


class Collapse:
    """Σ_i KL(p₀(·|i) ‖ p(·|i)) = ⟨S₀, M⟩ + Σ_i log Σ_k exp(−D_ik) − log(n_c − 1).

    S₀ = Σ_i mean_j v vᵀ over the others of the class, which is 2n/(n − 1) times its scatter.
    """

    def __init__(self, points: SoftNeighbors) -> None:
        self.points = points
        X, sizes = points.X.astype(np.float64), points.classes.sizes
        self.S0 = np.zeros((X.shape[1], X.shape[1]))
        for first, n in zip(points.classes.bounds[:-1], sizes, strict=True):
            if n > 1:
                rows = X[first : first + n]
                rows = rows - rows.mean(axis=0)
                self.S0 += 2 * n / (n - 1) * (rows.T @ rows)

    @staticmethod
    def _rule(
        partners: Vector, log_total: Vector, same: Vector, others: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """The logarithms, and 1 for every j; nothing for points that are alone."""
        counts = (partners > 0).astype(np.float64)
        return counts * (log_total - np.log(np.maximum(partners, 1))), counts, counts

    def value_and_gradient(self, L: Matrix64) -> LossAndGradient:
        """The loss and its gradient by L."""
        loss, gradient = self.points.sum(L, self._rule)
        pulled = L @ self.S0
        return LossAndGradient(loss + float(np.vdot(pulled, L)), gradient + 2 * pulled)

    def proof(self, L: Matrix64) -> tuple[float, NDArray[np.float64]]:
        """The gap over max(loss, 1), and the directions in which M should grow.

        With G = ∂/∂M, every M′ ⪰ 0 has a loss of at least
        loss + ⟨G, M′ − M⟩ ≥ loss − ⟨G, M⟩ + min(0, λ_min(G)) tr M′.
        """
        loss, G = self.points.scatter(L, self._rule)
        G = G + self.S0
        M = L.T @ L
        values, vectors = np.linalg.eigh(G)
        gap = np.vdot(G, M) + 2 * max(0.0, -values[0]) * np.trace(M)
        loss += float(np.vdot(self.S0, M))
        R = np.sqrt(np.maximum(-values, 0))[:, None] * vectors.T
        return max(0.0, float(gap)) / max(loss, 1.0), R
