"""Neighborhood components analysis."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._typing import Array
from samewise.engine.progress import Progress
from samewise.exceptions import InvalidInputError
from samewise.learners.batch import BatchLearner, dense_rows, given_map, held_out_rows
from samewise.learners.labels import numbered
from samewise.learners.lmnn.lbfgs import LBFGS, Matrix64
from samewise.learners.lmnn.points import Classes
from samewise.learners.lmnn.watch import EVERY, HeldOut
from samewise.learners.lmnn.workers import workers
from samewise.learners.soft_neighbors import Coordinates, SoftNeighbors, Vector, start, value
from samewise.learners.watch import Watch

__all__ = ["NCA"]

PATIENCE = 2
"""Iterations in a row that hardly lower the loss before the end."""

NEIGHBORS = 3
"""k of the held-out error."""


def expected_errors(
    partners: Vector, log_total: Vector, same: Vector, others: Vector
) -> tuple[Vector, Vector, Vector]:
    """1 − p_i, and p_i − [c_j = c_i]: the rule of NCA."""
    return others, -others, same


class NCA(BatchLearner):
    """Neighborhood components analysis: a map for the nearest neighbor rule, made smooth.

    Point i chooses a neighbor j ≠ i with the probability

        p_ij = exp(−‖L(x_i − x_j)‖²) / Σ_{k≠i} exp(−‖L(x_i − x_k)‖²),

    and the expected number of points that choose one of another class, Σ_i (1 − p_i) with
    p_i = Σ_{j: c_j=c_i} p_ij, is minimized over L by L-BFGS. It is not convex.

    Parameters
    ----------
    n_components : int, optional
        Number of rows of L; by default as many as features.
    init : {"auto", "identity", "pca"} or array of shape (n_components, n_features)
        Where to start: principal or discriminant directions or a map between the two, whichever
        has the least loss on a sample; L = I; the leading principal directions; or a given L. Only
        "auto" looks at the scale: it starts where the median of the squared distances to the
        nearest neighbor is 1. Where distances are large, every point has but one neighbor, the
        gradient vanishes, and a run ends near where it began.
    max_iter : int, default=200
    tol : float, default=1e-5
        Stop when two iterations in a row lower the loss by no more than tol·max(loss, 1).
    validation_fraction : float in (0, 1), optional
        Hold out this part of each class, look at its 3-NN error every fifth iteration, stop after
        three looks without improvement, and keep the best map.
    warm_start : bool, default=False
        Start from the `components_` of the fit before.
    verbose : bool or int, default=False
        Print a line now and then, to stderr.
    callback : callable, optional
        Called after each iteration with a dict: "iteration", the fields of `history_`, and
        "components", the present L. If it returns a true value, the run stops.
    random_state : int, RandomState instance or None
        For the choice of held-out points; nothing else is random.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        L.
    metric_ : Mahalanobis
        The learned form.
    loss_ : float
        Σ_i (1 − p_i) of `components_`.
    n_iter_ : int
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss"; "validation_error", NaN where it was not looked at; "seconds".
    classes_ : array
        The labels.
    n_features_in_, feature_names_in_

    Notes
    -----
    Where classes can be told apart completely, the loss goes to 0 as L grows, and there is no
    minimum: the run ends when the loss falls slowly.

    Probabilities are computed for a block of rows at a time, shared by a few threads: memory grows
    with n, not with n²; time for an iteration with n². float32 data are worked on in float32.

    Sparse input is accepted up to 2²⁷ values and made dense. Ctrl-C ends a run with the best map
    up to there in place.

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov: Neighbourhood components analysis. NIPS
    2004, equations 1–5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise.learners.nca import NCA
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = NCA(n_components=2).fit(X, y)
    >>> nca.transform(X).shape
    (150, 2)
    >>> nca.loss_ < 5
    True
    """

    _fitted: ClassVar[tuple[str, ...]] = (
        "metric_",
        "components_",
        "classes_",
        "loss_",
        "n_iter_",
        "converged_",
        "history_",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"auto", "identity", "pca"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "callback": [callable, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: str | ArrayLike = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        validation_fraction: float | None = None,
        warm_start: bool = False,
        verbose: int | bool = False,
        callback: Callable[[dict[str, Any]], object] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array of shape (n,)
            Class labels.
        """
        with self._unchanged_if_refused():
            before = getattr(self, "components_", None) if self.warm_start else None
            X, y = self._examples(X, y)
            X = dense_rows(X, "NCA")
            self.classes_, labels = numbered(y, "NCA")
            L = self._given_start(before)
            kept, held = held_out_rows(
                labels, self.validation_fraction, check_random_state(self.random_state)
            )
        with Progress("NCA", 0, verbose=False) as progress, workers() as team:
            held_out = None
            if held is not None:
                Xv, yv, X, labels = X[held], labels[held], X[kept], labels[kept]
                held_out = HeldOut(X, labels, Xv, yv, NEIGHBORS, team)
            fields = ("loss", "validation_error")
            watch = Watch("NCA", fields, progress, self.verbose, self.callback)
            classes = Classes(labels, len(self.classes_))
            where = Coordinates(X, classes)
            points = SoftNeighbors(where.rows, classes, team)
            self._solve(points, where, L, watch, held_out, X.dtype)
            if not (self.converged_ or watch.stopped):
                self._say_unfinished(self.tol, self.n_iter_, "")
        return self

    def _given_start(self, before: Array | None) -> Matrix64 | None:
        """L to start from, if it is known before the points are looked at."""
        d = self.n_features_in_
        if self.n_components is not None and self.n_components > d:
            raise InvalidInputError(
                f"n_components must be at most the number of features, {d}. Got "
                f"{self.n_components} instead."
            )
        if before is not None:
            return given_map(before, self.n_components, d, "components_ of the fit before")
        if isinstance(self.init, str):
            return np.eye(self.n_components or d, d) if self.init == "identity" else None
        return given_map(self.init, self.n_components, d, "init")

    def _solve(
        self,
        points: SoftNeighbors,
        where: Coordinates,
        L: Matrix64 | None,
        watch: Watch,
        held_out: HeldOut | None,
        dtype: Any,
    ) -> None:
        if L is not None:
            L = where.coordinates(L)
        else:
            r = self.n_components or self.n_features_in_
            L = (
                where.principal(r)
                if self.init == "pca"
                else start(points, where, r, lambda some, L: some.sum(L, expected_errors)[0])
            )
        lbfgs = LBFGS(lambda L: value(*points.sum(L, expected_errors)))
        now = value(*points.sum(L, expected_errors))
        small, self.converged_ = 0, False
        while not (self.converged_ or len(watch.rows) >= self.max_iter):
            step = lbfgs.step(L, now)
            fell = 0.0 if step is None else now.loss - step[1].loss
            L, now = step or (L, now)
            small = small + 1 if fell <= self.tol * max(now.loss, 1.0) else 0
            self.converged_ = small >= PATIENCE or step is None
            error = np.nan
            if held_out is not None and len(watch.rows) % EVERY == EVERY - 1:
                error = held_out.look(where.components(L))
                watch.stopped |= held_out.enough
            if watch.look(lambda L=L: where.components(L), now.loss, error):  # type: ignore[misc]
                break
        components, loss = where.components(L), now.loss
        if held_out is not None:
            held_out.look(components)
            assert held_out.best is not None
            components = held_out.best
            loss = points.sum(where.coordinates(components), expected_errors)[0]
        watch.say()
        self._keep(components.astype(dtype))
        self.loss_, self.n_iter_, self.history_ = loss, len(watch.rows), watch.history
