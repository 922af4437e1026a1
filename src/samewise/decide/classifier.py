"""A scikit-learn classifier from any learner or form and a neighbor rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices, Matrix
from samewise.decide.energy import Energy, maps_of, nearest_of_class
from samewise.decide.metric_classifier import MetricClassifier, NearestExamples, fitted
from samewise.decide.rules import sum_closeness, vote
from samewise.decide.saved_decider import (
    SavedDecider,
    keep_examples,
    keep_metric,
    restore_examples,
    restore_metric,
)
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Form
from samewise.search import ClassIndex, Index
from samewise.supervision.target_rows import checked_targets

_ENERGY_RULES = ("energy", "energy_printed")


def _has_energies(model: KNNClassifier) -> bool:
    if model.rule in _ENERGY_RULES:
        return True
    raise AttributeError(f"rule={model.rule!r} has no energies; rule='energy' has.")


@dataclass(eq=False, repr=False)
class KNNClassifier(MetricClassifier, NearestExamples, SavedDecider):
    """Classify by the nearest training examples under a learned, given or Euclidean metric.

    Parameters
    ----------
    metric : Form, learner or None, default=None
        None is the Euclidean distance. A learner that has no ``metric_`` yet is cloned and fitted
        on the training data. A learner that has one is used as it is, without fitting it again;
        note that `sklearn.base.clone`, and so cross-validation, passes on unfitted learners.
        A `MultiMetric` with classes must know those of the training data, by their labels.
    n_neighbors : int, default=3
        Neighbors that vote; for the other rules, neighbors in each class.
    rule : {"knn", "sknn", "energy", "energy_printed"}, default="knn"
        "knn": majority of the nearest; on a tie the farthest are left out until it breaks.
        "sknn": the class with the largest sum of closeness to its own nearest members.
        "energy": the class in which the example would add least to the loss of LMNN; see
        `energies`. Only for distances; classes with fewer than n_neighbors members take part with
        what they have. "energy_printed": the same, as the paper prints it.
    push_weight : float, default=0.5
        For the energy rules: the weight μ of the push terms; 1 − μ is that of the pull.
    targets : array-like of shape (n_samples, n_targets), default=None
        For the energy rules: row numbers of the target neighbors of each training example, such
        as a learner was trained with; -1 for none. By default the n_neighbors nearest of the same
        class by the Euclidean distance of the rows, whatever the metric.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    metric_ : Form or None
        The form in use; None is the Euclidean distance.
    learner_ : estimator
        The learner behind ``metric_``, if there is one.
    targets_ : ndarray of shape (n_samples, n_targets)
        The target neighbors in use; -1 for none. Only for the energy rules.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the training data has string column names.

    See Also
    --------
    PerClassClassifier : Classify with a metric for each class.
    Verifier : Decide whether two examples are the same.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import KNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNNClassifier(n_neighbors=5).fit(X[::2], y[::2])
    >>> model.predict([[5.0, 3.5, 1.5, 0.2], [6.0, 3.0, 5.5, 2.0]])
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [None, Form, HasMethods("fit")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "rule": [StrOptions({"knn", "sknn", *_ENERGY_RULES})],
        "push_weight": [Interval(Real, 0, 1, closed="both")],
        "targets": [None, "array-like"],
    }

    metric: Any = None
    n_neighbors: int = 3
    rule: str = "knn"
    push_weight: float = 0.5
    targets: ArrayLike | None = None

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike, **params: Any) -> Self:
        """Learn the metric if it is not learned yet, and store the training examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training examples, one row each.
        y : array-like of shape (n_samples,)
            Their classes.
        **params : dict
            For the `fit` of the learner, such as ``sample_weight``; where scikit-learn's metadata
            routing is on, what the learner requests. Weights are for learning the metric: votes
            are not weighted, as in scikit-learn's KNeighborsClassifier.

        Returns
        -------
        self : KNNClassifier
            The fitted classifier.
        """
        with unchanged_if_refused(self):
            X, y = self._examples(X, y)
            self.classes_, self._labels = np.unique(y, return_inverse=True)
            self._check_n_neighbors(X.shape[0])
            if self.rule in _ENERGY_RULES:
                self.targets_ = self._targets(X)
            self._set_metric(X, y, params)
            self._store(X)
        return self

    def _store(self, X: Matrix) -> None:
        """What decides: the rows, and what searches them under the metric."""
        self._rows = X
        form = None if self.metric_ is None else self.metric_.bind(X, self.classes_[self._labels])
        self._index = Index(form, X)
        if self.rule == "sknn":
            self._class_index = ClassIndex(form, X, self._labels)
        if self.rule in _ENERGY_RULES:
            self._energy = self._energy_rule(form, X)

    def _learned_state(self) -> State:
        state = State()
        keep_metric(self, state)
        keep_examples(self, state, self._labels)
        return state

    def _restore_learned(self, saved: Saved) -> None:
        restore_metric(self, saved)
        X, self._labels = restore_examples(self, saved)
        self._check_n_neighbors(X.shape[0])
        if self.rule in _ENERGY_RULES:
            self.targets_ = self._targets(X)
        self._store(X)

    def _targets(self, X: Matrix) -> Indices:
        if self.targets is None:
            return nearest_of_class(X, self._labels, self.n_neighbors)
        return checked_targets(self.targets, self._labels)

    def _energy_rule(self, form: Form | None, X: Matrix) -> Energy:
        return Energy(
            maps_of(form),
            X,
            self._labels,
            self.targets_,
            self.n_neighbors,
            push_weight=self.push_weight,
            printed=self.rule == "energy_printed",
            groups=None if form is None else form.groups_of(X),
            group_of=None if form is None or form.needs_labels else form.groups_of,
        )

    def _set_metric(self, X: Matrix, y: ArrayLike, params: dict[str, Any]) -> None:
        params = {name: given for name, given in params.items() if given is not None}
        if _routing_enabled():
            params = process_routing(self, "fit", **params).metric.fit if params else {}
        if self.metric is None or isinstance(self.metric, Form):
            self._refuse(params, "there is no learner")
            self.metric_ = self.metric
            return
        if hasattr(self.metric, "metric_"):
            self._refuse(params, f"this {type(self.metric).__name__} is fitted already")
        unknown = {name for name in params if not has_fit_parameter(self.metric, name)}
        self._refuse(unknown, f"{type(self.metric).__name__}.fit does not take it")
        self.learner_ = fitted(self.metric, X, y, "'metric' parameter of KNNClassifier", **params)
        self.metric_ = self.learner_.metric_

    def _refuse(self, params: Iterable[str], reason: str) -> None:
        for name in params:
            raise InvalidInputError(
                f"{name} is for the fit of the learner that KNNClassifier is given as metric, but "
                f"{reason}; leave {name} out, or give a learner that takes it."
            )

    def get_metadata_routing(self) -> MetadataRouter:
        """What of the parameters of `fit` goes to the learner, by scikit-learn's metadata routing.

        Returns
        -------
        MetadataRouter
            With the requests of the learner, if there is one, and its own for `score`.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if hasattr(self.metric, "fit"):
            router.add(
                metric=self.metric, method_mapping=MethodMapping().add(caller="fit", callee="fit")
            )
        return router

    def _check_n_neighbors(self, n: int) -> None:
        if self.n_neighbors > n:
            raise InvalidInputError(
                f"n_neighbors={self.n_neighbors} is more than the training set holds "
                f"(n_samples = {n}); choose a smaller n_neighbors."
            )
        if self.rule != "sknn":
            return
        sizes = np.bincount(self._labels)
        if self.n_neighbors > sizes.min():
            c = int(sizes.argmin())
            raise InvalidInputError(
                f"n_neighbors={self.n_neighbors} is more than the class "
                f"{self.classes_.tolist()[c]!r} has members ({sizes[c]}); rule='sknn' needs that "
                "many in every class. Choose a smaller n_neighbors."
            )

    def predict(self, X: Matrix) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n,)
            The class of each row.
        """
        winners, _ = self._decide(X)
        return self.classes_[winners]

    def predict_proba(self, X: Matrix) -> Array:
        """Class probabilities of each row.

        "knn": the fractions of the votes after ties are broken. "sknn": softmax of the mean
        closeness to the nearest members of each class. Energy rules: proportional to
        exp(−energy). The last two rank classes as `predict` does, and are not calibrated.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n, n_classes)
            In ``classes_`` order.
        """
        return self._decide(X)[1]

    @available_if(_has_energies)
    def energies(self, X: Matrix) -> NDArray[np.float64]:
        """What it would cost each row to belong to each class; the class of least energy wins.

        Where energies are equal the smaller class wins, that is, the first in ``classes_``. With D
        the squared distance, j⇝t the n_neighbors nearest members of class c to the row t, and j⇝i
        the targets of the training example i, the energy of t in c is

            (1−μ) Σ_{j⇝t} D(t, j) + μ Σ_{j⇝t} Σ_{l not in c} [D(t, j) − D(t, l)]₊
                                  + μ Σ_{i not in c} Σ_{j⇝i} [1 + D(i, j) − D(i, t)]₊ .

        "energy_printed" has [1 + D(t, j) − D(t, l)]₊ in the second term, and finds the j⇝t by the
        Euclidean distance of the rows. Under a `MultiMetric`, D(x, x') is measured by the map of
        the group of x': that of t is the class c, or its nearest center. Distances are computed in
        the type of the training data, sums in float64.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n, n_classes)
            In ``classes_`` order.

        References
        ----------
        Weinberger and Saul, JMLR 10, 2009, section 3.5, eq. 15.

        Examples
        --------
        >>> from samewise import KNNClassifier
        >>> model = KNNClassifier(n_neighbors=1, rule="energy")
        >>> model.fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"]).classes_
        array(['high', 'low'], dtype='<U4')
        >>> model.energies([[2.0]])
        array([[4. , 0.5]])
        """
        return self._energy(self._queries(X))

    def _decide(self, X: Matrix) -> tuple[Indices, Array]:
        Q = self._queries(X)
        if self.rule == "knn":
            _, indices = self._index.query(Q, self.n_neighbors)
            return vote(self._labels[indices], len(self.classes_))
        if self.rule in _ENERGY_RULES:
            energies = self._energy(Q)
            winners = energies.argmin(axis=1)
            return winners, _with_largest_at(softmax(-energies, axis=1), winners)
        winners, sums = sum_closeness(self._class_index.query(Q, self.n_neighbors))
        probabilities = softmax(sums / self.n_neighbors, axis=1)
        return winners, _with_largest_at(probabilities, winners)


def _with_largest_at(probabilities: Array, winners: Indices) -> Array:
    """Let sums that differ by less than the rounding of the exponential not hide the winner."""
    hidden = np.flatnonzero(probabilities.argmax(axis=1) != winners)
    largest = probabilities[hidden].max(axis=1, initial=0)
    probabilities[hidden, winners[hidden]] = np.nextafter(largest, np.ones_like(largest))
    return probabilities
