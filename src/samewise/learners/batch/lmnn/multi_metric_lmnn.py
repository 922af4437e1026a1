"""Multi-metric LMNN."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.forms.multi_metric import MultiMetric, nearest_centers
from samewise.learners.attributes import RAN, Attribute, Count, FormOf, Labels, Number
from samewise.learners.batch.batch_learner import Batch, given_map, held_out
from samewise.learners.batch.lmnn.estimator import FIELDS, SMALL
from samewise.learners.batch.lmnn.minimize import PATIENCE, LMNNSolution, logged, solve
from samewise.learners.batch.lmnn.multi_errors import MultiNeighborErrors
from samewise.learners.batch.lmnn.multi_objective import Maps, MultiObjective
from samewise.learners.batch.lmnn.objective import LINEAR
from samewise.learners.batch.lmnn.problem import LMNNProblem
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.learners.class_checks import warn_of_small_classes
from samewise.learners.constraints import COUNT, check_at_most
from samewise.learners.dense_rows import typed
from samewise.solvers.held_out import HeldOut
from samewise.solvers.run_log import RunLog
from samewise.solvers.workers import Workers, workers
from samewise.supervision.supervision_checks import parameter_array

MOST_VALUES = 2**24
"""Values of all maps together, at most; the solver remembers about 25 times as many."""


ASIDE = 1.1
"""By how much maps are scaled where the start itself does not let the loss fall."""


@dataclass(eq=False, repr=False)
class MultiMetricLMNN(Batch):
    """Large margin nearest neighbors with several metrics, one per class or per region.

    Points are divided into groups, by class or by k-means, and each group has a map L_g of its
    own. A distance is measured by the map of its *second* argument, the neighbor:

        D̂(x, x') = ‖L_g(x − x')‖², g the group of x'.

    All maps are learned together, so that their distances can be compared, by the loss of LMNN:

        ε = (1−μ) Σ_{j⇝i} D̂_ij + μ Σ_{j⇝i} Σ_{l: c_l≠c_i} [1 + D̂_ij − D̂_il]₊,

    minimized as it stands and over all triplets, by L-BFGS from the solution with a single metric.
    The targets j⇝i are the Euclidean nearest of the same class.

    Several metrics overfit where one does not. As in the paper, 30 % of the points are held out by
    default: the maps are learned from the others, and those with the least k-NN error on the points
    held out are kept. (The paper does not say that it learned again from all points, and neither
    does this.) The classifier may, and should, search for neighbors among all points.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number k of neighbors. In a class of k points or fewer, each point has all others as
        targets.
    push_weight : float in [0, 1], default=0.5
        Weight μ of the push terms; 1 − μ is that of the pull terms.
    max_iter : int, default=500
        Maximum number of iterations. They are counted for the single metric, and again for the
        others.
    tol : float, default=2e-4
        Tolerance of the stopping rule. Learning stops when two iterations in a row lower the loss
        by no more than tol·loss.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `components_`, with
        its groups.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present map or maps.
    n_clusters : int, default=None
        Number of groups, found by k-means. By default every class is a group.
    n_components : int, default=None
        Number of rows of L. It is that of each L_g. By default they are square, or have as many
        rows as the points span where there are no more points than features.
    init : "auto", LMNN, or array of shape (r, d) or (n_groups, r, d), default="auto"
        Where to start. "auto" learns a single metric first. An `LMNN` that is fitted gives its
        metric; one that is not is fitted on the points that are not held out. Or a given map for
        all groups, or for each.
    validation_fraction : float in (0, 1) or None, default=0.3
        Part of the examples to hold out for early stopping. Of each class this part is held out.
        Its k-NN error is computed at the start and every fifth iteration; learning stops after
        three evaluations without improvement, and the best set of maps is kept.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    components_ : array of shape (n_groups, n_components, n_features)
        The L_g, by class or by cluster.
    metric_ : MultiMetric
        The learned form.
    loss_ : float
        ε of `components_` over all triplets of the points that were learned from.
    n_active_ : int
        Number of triplets with a positive hinge.
    n_iter_ : int
        Iterations, with those of the single metric.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "stage", 1 while a single metric is learned and 2 afterwards; "loss"
        over the candidates; "n_active"; "n_candidates", pairs of points; "validation_error", NaN
        where it was not looked at; "seconds".
    classes_ : array of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    LMNN : A single metric.
    MultiMetric : The form that is learned.

    Notes
    -----
    There is no `transform`: no map has Euclidean distances that are these. Use `metric_`, or give
    the learner to `KNNClassifier`.

    Ctrl-C ends a run with what was learned up to there in place.

    Groups are worked on one after the other, so memory grows with the points and the pairs in
    reach, and with the maps, which the solver holds about 25 times. Sparse input is made dense, as
    in `LMNN`.

    References
    ----------
    Weinberger and Saul, *Distance metric learning for large margin nearest neighbor
    classification*, JMLR 10, 2009, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import MultiMetricLMNN
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 100)
    >>> X = rng.normal(size=(200, 2)) * np.where(y, [[1.0], [8.0]], [[8.0], [1.0]]).T
    >>> X[y == 1, 0] += 4
    >>> lmnn = MultiMetricLMNN(random_state=0).fit(X, y)
    >>> lmnn.metric_
    MultiMetric(n_features_in=2, n_groups=2, rank=2, groups='by class')
    """

    metric_: MultiMetric = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((MultiMetric,)),
        "classes_": Labels(),
        "loss_": Number(),
        "n_active_": Count(),
        **RAN,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [COUNT, None],
        "init": [StrOptions({"auto"}), "array-like", HasMethods("fit")],
    }

    n_neighbors: int = 3
    push_weight: float = 0.5
    _: KW_ONLY
    n_clusters: int | None = None
    n_components: int | None = None
    init: Any = "auto"
    tol: float = 2e-4
    validation_fraction: float | None = 0.3
    random_state: Any = None

    @property
    def components_(self) -> Array:
        """The map of each group, of shape (n_groups, n_components, n_features)."""
        return self.metric_.components

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
        with unchanged_if_refused(self):
            metric = self._before("metric_")
            X, labels = self._dense_examples(X, y)
            check_at_most("n_components", self.n_components, X.shape[1], "the number of features")
            self._check_size(X)
            random = check_random_state(self.random_state)
            X, labels, held = held_out(X, labels, self.validation_fraction, random)
            centers = self._centers(X, metric, random)
            start = self._given_start(X, labels, metric)
            classes = Classes(labels, len(self.classes_))
        warn_of_small_classes(labels, self.n_neighbors, stacklevel=3)
        groups = labels if centers is None else nearest_centers(X, centers)
        with self._log(*FIELDS) as log, workers() as team:
            validation = None
            if held is not None:
                errors = MultiNeighborErrors(X, labels, groups, *held, self.n_neighbors, team)
                validation = HeldOut(errors)
            components = self._learn(X, classes, groups, start, log, validation, team)
            by: dict[str, Any] = {"centers": centers}
            if centers is None:
                by = {"classes": self.classes_}
            self.metric_ = MultiMetric(typed(components, X.dtype), **by)
            self._end(log, n_iter=self.max_iter)
        return self

    def _check_size(self, X: Array) -> None:
        d = X.shape[1]
        n_values = self._n_groups * (self.n_components or min(X.shape)) * min(X.shape)
        if n_values > MOST_VALUES:
            raise TooLargeError(
                f"{self._n_groups} maps of {self.n_components or d} × {d} values are more than "
                f"MultiMetricLMNN learns together ({MOST_VALUES:,} values). Lower n_components, "
                "reduce the features first, or set n_clusters to have fewer metrics."
            )

    @property
    def _n_groups(self) -> int:
        return self.n_clusters or len(self.classes_)

    def _centers(
        self, X: Array, metric: MultiMetric | None, random: np.random.RandomState
    ) -> Array | None:
        """The centers of the groups; None if they are the classes."""
        if metric is not None:
            self._check_groups(metric)
            return metric.centers
        if self.n_clusters is None:
            return None
        if self.n_clusters > len(X):
            raise InvalidInputError(
                f"n_clusters={self.n_clusters} is more than there are points to learn from, "
                f"{len(X)}. Choose fewer."
            )
        # Imported where it is needed: it loads a large part of scikit-learn.
        from sklearn.cluster import KMeans

        with warnings.catch_warnings():
            # Fewer distinct points than clusters: some groups stay empty.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return KMeans(self.n_clusters, random_state=random).fit(X).cluster_centers_

    def _check_groups(self, metric: MultiMetric) -> None:
        if self.n_clusters is None:
            same = metric.classes is not None and np.array_equal(metric.classes, self.classes_)
        else:
            same = metric.centers is not None and len(metric.centers) == self.n_clusters
        if not same:
            raise InvalidInputError(
                "warm_start goes on with the groups of the fit before, which were others: "
                f"{metric!r}. Set warm_start=False, or use the same classes and n_clusters."
            )

    def _given_start(self, X: Array, y: Indices, metric: MultiMetric | None) -> Maps | None:
        """All L_g to start from; None if a single metric is to be learned first."""
        d, c = self.n_features_in_, self._n_groups
        if metric is not None:
            given, name = metric.components, "components_ of the fit before"
        elif isinstance(self.init, str):
            return None
        elif hasattr(self.init, "fit"):
            learner = self.init if hasattr(self.init, "components_") else clone(self.init).fit(X, y)
            given, name = learner.components_, "components_ of init"
        else:
            given, name = parameter_array(self.init, "init", np.float64), "init"
        if np.ndim(given) != 3:
            L = given_map(given, self.n_components, d, name)
            return np.repeat(L[None], c, axis=0)
        if len(given) != c:
            raise InvalidInputError(
                f"{name} must have one map for all groups or one for each of the {c}. Got "
                f"{len(given)} maps instead."
            )
        return np.stack([given_map(L, self.n_components, d, name) for L in given])

    def _learn(
        self,
        X: Array,
        classes: Classes,
        groups: Indices,
        components: Maps | None,
        log: RunLog,
        validation: HeldOut | None,
        team: Workers,
    ) -> Maps:
        targets = nearest_targets(X, classes, min(self.n_neighbors, len(X)), team)
        dtype = np.float64 if X.size <= SMALL else np.float32
        problem = LMNNProblem(X, classes, targets, self.push_weight, LINEAR, dtype, team)
        L = self._started(problem, components, log)
        objective = MultiObjective(
            problem.objective.X, targets, classes, groups[classes.order], self._n_groups,
            self.push_weight, problem.objective.covariance, team,
        )  # fmt: skip
        # The single metric's accumulators, as large as the points, have done their work.
        del problem.objective
        found = self._solve(objective, problem, L, log, validation)
        components = problem.components(found.L)
        if validation is not None:
            validation.look(components)
            if validation.best is not components:
                components = validation.best
                objective.search(problem.coordinates(components))
                found.value = objective.value_and_gradient(problem.coordinates(components))
        log.say()
        self.loss_, self.n_active_ = found.value.loss, found.value.active
        self.converged_ = found.converged
        missing = max(0, (self.n_components or 0) - components.shape[1])
        return np.pad(components, ((0, 0), (0, missing), (0, 0)))

    def _started(self, problem: LMNNProblem, components: Maps | None, log: RunLog) -> Maps:
        """All L_g to start from, in the problem's coordinates."""
        if components is not None:
            L = problem.coordinates(components)
            return np.linalg.qr(L).R if L.shape[1] > L.shape[2] else L
        L = problem.start(self.n_components)
        look = logged(log, 1, problem.objective, problem.components)
        found = solve(problem.objective, L, max_iter=self.max_iter, tol=self.tol, look=look)
        return np.repeat(found.L[None], self._n_groups, axis=0)

    def _solve(
        self,
        objective: MultiObjective,
        problem: LMNNProblem,
        L: Maps,
        log: RunLog,
        validation: HeldOut | None,
    ) -> LMNNSolution:
        if log.stopped:
            objective.search(L)
            return LMNNSolution(L, objective.value_and_gradient(L))
        if validation is not None:
            validation.look(problem.components(L))
            log.held_out = validation
        look = logged(log, 2, objective, problem.components)
        run = partial(solve, objective, max_iter=self.max_iter, tol=self.tol, look=look)
        before = len(log.rows)
        found = run(L)
        if not (log.stopped or len(log.rows) > before + PATIENCE):
            # The best single metric lies on kinks, and on some of them every slope leads upward.
            found = min(found, run(ASIDE * L), key=lambda solution: solution.value.loss)
        return found
