"""Metric learning for kernel regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.kernels.pairwise import squared_norms
from samewise.learners.attributes import Attribute, Number
from samewise.learners.batch.batch_learner import BatchLearner
from samewise.learners.batch.nca_starts import SPREAD, FeatureScales, GivenScales
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.soft_neighbors import (
    BLOCK_BYTES,
    LEAST_ROWS,
    Vector,
    at_scale,
    spread_over,
)
from samewise.learners.constraints import check_at_most
from samewise.learners.dense_rows import dense_rows
from samewise.solvers.evaluation import LossAndGradient, Matrix64
from samewise.solvers.lbfgs import LBFGS
from samewise.solvers.run_log import RunLog
from samewise.solvers.workers import Workers, workers
from samewise.supervision import Pairs
from samewise.supervision.gate import is_labeled
from samewise.supervision.supervision_checks import numeric_targets


@dataclass(eq=False, repr=False)
class MLKR(BatchLearner):
    """Metric learning for kernel regression: near examples should predict a number well.

    The target of example i is predicted by all others, the near ones above all:

        ŷ_i = Σ_{j≠i} k_ij y_j / Σ_{j≠i} k_ij,   k_ij = exp(−‖L(x_i − x_j)‖²),

    and the squared error of these leave-one-out predictions, Σ_i (y_i − ŷ_i)², is minimized over L
    by L-BFGS. It is not convex. L has the scale of the kernel too, so nothing is left to choose.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L. By default as many as features.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=3e-2
        Tolerance of the stopping rule. A run stops when an iteration lowers the loss by no more
        than tol·Σ_i (y_i − ȳ)².
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `components_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    init : {"auto", "identity", "pca"} or array of shape (n_components, n_features), default="auto"
        Where to start. The leading directions of features of unit variance; L = I; the leading
        principal directions of features as they are; or a given L. "auto" and "pca" choose the
        scale: that at which weights spread over 10 neighbors.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        L.
    metric_ : Mahalanobis
        The learned form.
    loss_ : float
        Σ_i (y_i − ŷ_i)² of `components_`.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss" and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    KNNRegressor : Predicts with the learned distance.
    NCA : The same probabilities, for classes.

    Notes
    -----
    With W_ij = 2 (ŷ_i − y_i) (y_j − ŷ_i) k_ij / Σ_k k_ik, the derivative of the loss by
    −‖L(x_i − x_j)‖², and Z = XLᵀ, the gradient is −2 (diag(Wᵀ1) Z − (W + Wᵀ) Z)ᵀ X; the rows of W
    sum to 0.

    A lower loss is mostly not a lower error on new points: a small tol learns the examples by heart
    (``python -m benchmarks regression``), above all with few examples and many features.

    Weights are computed for a block of rows at a time, shared by a few threads: memory grows with
    n, not with n²; time for an iteration with n². float32 data are worked on in float32.

    Sparse input is accepted up to 2²⁷ values and made dense. Ctrl-C ends a run with the best map
    up to there in place.

    References
    ----------
    K. Q. Weinberger, G. Tesauro: Metric learning for kernel regression. AISTATS 2007, equations
    2–7.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import MLKR
    >>> X = np.random.RandomState(0).normal(size=(100, 5))
    >>> y = np.sin(X[:, 0])
    >>> mlkr = MLKR(tol=1e-4).fit(X, y)
    >>> weight = np.diagonal(mlkr.metric_.matrix)
    >>> bool(weight[0] > 20 * weight[1:].max())
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"loss_": Number()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "init": [StrOptions({"auto", "identity", "pca"}), "array-like"],
    }

    n_components: int | None = None
    _: KW_ONLY
    init: str | ArrayLike = "auto"
    max_iter: int = 200
    tol: float = 3e-2

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from examples with numbers to predict.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The examples.
        y : array of shape (n,)
            Their targets: numbers.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with self._log("loss") as log, workers() as team:
            with unchanged_if_refused(self):
                X, targets = self._numbered_rows(X, y)
                # In units in which Σ (y − ȳ)² = n, so that float32 holds them.
                unit = float(targets.std())
                problem, where, L = self._start(X, (targets - targets.mean()) / unit, team)
                L, loss = self._descend(problem, L, where.components, unit**2, log)
                log.say()
                self._keep(where.components(L), X.dtype)
                self.loss_ = loss
            self._end(log)
        return self

    def _numbered_rows(self, X: Any, y: Any) -> tuple[Array, Vector]:
        """Dense examples and their targets, checked."""
        if isinstance(X, Pairs) or not is_labeled(X):
            raise InvalidInputError(
                "MLKR learns from numbers: give a matrix of examples and y. Got pairs; use a "
                "learner of pairs, such as ITML or MMC."
            )
        X, y = self._examples(X, y)
        check_at_most("n_components", self.n_components, X.shape[1], "the number of features")
        return dense_rows(X, "MLKR"), numbers(y)

    def _start(
        self, X: Array, targets: Vector, team: Workers
    ) -> tuple[KernelErrors, FeatureScales, Matrix64]:
        """The problem, its coordinates, and where to start in them."""
        given = self._given_start(self.n_components)
        one = Classes(np.zeros(len(X), dtype=np.intp), 1)
        as_they_are = isinstance(self.init, str) and self.init == "pca"
        where = GivenScales(X, one) if as_they_are else FeatureScales(X, one)
        problem = KernelErrors(where.rows, targets, team)
        if given is not None:
            return problem, where, where.coordinates(given)
        near = min(SPREAD, (len(X) - 1) / 2)
        L = where.principal(self.n_components or X.shape[1])
        return problem, where, at_scale(problem, L, lambda D: spread_over(D, near))

    def _descend(
        self,
        problem: KernelErrors,
        L: Matrix64,
        shown: Callable[[Matrix64], Matrix64],
        unit: float,
        log: RunLog,
    ) -> tuple[Matrix64, float]:
        """L with a low loss, and that loss in the given units."""
        lbfgs, self.converged_ = LBFGS(problem), False
        now, enough = problem.value_and_gradient(L), self.tol * len(problem.X)
        while len(log.rows) < self.max_iter and not self.converged_:
            step = lbfgs.step(L, now)
            fell = 0.0 if step is None else now.loss - step[1].loss
            L, now = step or (L, now)
            self.converged_ = bool(fell <= enough)
            if log.look(partial(shown, L), unit * now.loss):
                break
        return L, unit * now.loss

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How well targets are predicted by the other examples, with the learned kernel.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The examples.
        y : array of shape (n,), default=None
            Their targets, which are needed.

        Returns
        -------
        float
            R² of the leave-one-out predictions ŷ_i: 1 − Σ (y_i − ŷ_i)² / Σ (y_i − ȳ)².
        """
        X = self._rows(X)
        X, y = self._examples(X, y, reset=False)
        targets = numbers(y)
        Z = np.asarray(self.metric_.embed(X))
        Z = Z - Z.mean(axis=0)
        with workers() as team:
            problem = KernelErrors(Z, targets - targets.mean(), team)
            loss = problem.value_and_gradient(np.eye(Z.shape[1])).loss
        return 1 - loss / float(np.sum((targets - targets.mean()) ** 2))


class KernelErrors:
    """Σ_i (y_i − ŷ_i)² over maps L of centered rows.

    Parameters
    ----------
    X : array of shape (n, d)
        Its type is that of the work.
    y : array of shape (n,)
    workers : Workers
    """

    def __init__(self, X: Array, y: Vector, workers: Workers) -> None:
        self.X, self.y, self.workers = X, y, workers

    def value_and_gradient(self, L: Matrix64) -> LossAndGradient:
        """The loss and its gradient by L."""
        X = self.X
        Z = X @ L.T.astype(X.dtype)
        norms, one = squared_norms(Z), np.ones((len(Z), 1), X.dtype)
        left, right = np.column_stack([2 * Z, -one]), np.column_stack([Z, norms]).T
        y, B, WZ = self.y.astype(X.dtype), np.column_stack([Z, one]), np.empty_like(Z)
        n_rows = max(LEAST_ROWS, BLOCK_BYTES // (Z.itemsize * len(Z)))

        def part(span: tuple[int, int]) -> tuple[float, Array]:
            """The loss of some rows, and what they add to WᵀB."""
            loss, WtB = 0.0, np.zeros_like(B)
            for start in range(*span, n_rows):
                rows = slice(start, min(start + n_rows, span[1]))
                # −D up to what is the same in a row: 2 z_i·z_j − ‖z_j‖².
                E = left[rows] @ right
                E[np.arange(len(E)), np.arange(start, rows.stop)] = -np.inf
                E -= E.max(axis=1)[:, None]
                np.exp(E, out=E)
                E /= E.sum(axis=1)[:, None]
                predicted = E @ y
                error = predicted - y[rows]
                loss += float(error.astype(np.float64) @ error)
                E *= y - predicted[:, None]
                E *= 2 * error[:, None]
                np.matmul(E, Z, out=WZ[rows])
                WtB += E.T @ B[rows]
            return loss, WtB

        losses, parts = zip(*self.workers.map(part, self.workers.cut(len(X))), strict=True)
        back = np.add.reduce(parts)
        moved = Z * back[:, -1:] - WZ - back[:, :-1]
        return LossAndGradient(sum(losses), -2 * (moved.T @ X).astype(np.float64))


def numbers(y: NDArray[Any]) -> Vector:
    """Targets as float64; refused if they are no numbers, or all the same."""
    targets = numeric_targets(y, "MLKR")
    largest = np.abs(targets).max()
    if np.ptp(targets) <= 1e-70 or np.ptp(targets) <= 16 * np.finfo(np.float64).eps * largest:
        raise InvalidInputError(
            f"MLKR needs targets that differ. All are {targets[0]:.6g}; give others, or scale them."
        )
    return targets
