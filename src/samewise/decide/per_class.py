"""One metric per class: each class against the others, and how their answers are combined."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices, Matrix
from samewise.decide.metric_classifier import MetricClassifier, fitted_clone
from samewise.decide.rules import sum_closeness, vote
from samewise.decide.saved_decider import SavedDecider, keep_examples, restore_examples
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import restored, stored
from samewise.forms import Form
from samewise.search import ClassIndex


@dataclass(eq=False, repr=False)
class PerClassClassifier(MetricClassifier, SavedDecider):
    """Classify with a metric for each class, learned against all other classes.

    A clone of the learner is fitted for each class, with the labels 1 (the class) and 0 (the
    rest). Under its metric an example is *claimed* by the class or not, by the k-NN or SkNN rule
    with these two labels, and has a closeness to the class: the mean over its k nearest members.

    Parameters
    ----------
    learner : estimator
        Any learner with a ``metric_`` after fit. A clone of it is fitted for each class.
    n_neighbors : int, default=3
        k; no class may have fewer members.
    rule : {"knn", "sknn"}, default="knn"
        Whether an example is claimed: "knn", by the majority of its k nearest examples; "sknn", if
        it is closer to its k nearest members of the class than to its k nearest of the rest.
    combine : {"claimed", "closest"}, default="claimed"
        Which class wins: the closest of those that claim the example, and of all if none does; or
        always the closest of all.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    metrics_ : list of Form
        The metric of each class, in the order of classes_.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if the training data has string column names.

    See Also
    --------
    KNNClassifier : Classify with one metric for all classes.

    Notes
    -----
    Closeness under different metrics is compared as it is: their scales should be comparable, as
    those of cosines are.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, section 4.2.3;
    its tables have the mean over classes of the accuracy of being claimed: `binary_score`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import PassiveAggressive, PerClassClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = PassiveAggressive(random_state=0)
    >>> model = PerClassClassifier(learner).fit(X[::2], y[::2])
    >>> model.decisions([[5.0, 3.5, 1.5, 0.2]])
    array([[ True, False, False]])
    >>> model.predict([[5.0, 3.5, 1.5, 0.2]])
    array([0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [HasMethods("fit")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "rule": [StrOptions({"knn", "sknn"})],
        "combine": [StrOptions({"claimed", "closest"})],
    }

    learner: Any
    n_neighbors: int = 3
    rule: str = "knn"
    combine: str = "claimed"

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Learn a metric for each class, and store the training examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training examples.
        y : array of shape (n_samples,)
            Their classes.

        Returns
        -------
        self : PerClassClassifier
            The fitted classifier.
        """
        with unchanged_if_refused(self):
            X, y = self._examples(X, y)
            classes, labels = np.unique(y, return_inverse=True)
            sizes = np.bincount(labels)
            if len(classes) < 2:
                raise InvalidInputError(
                    "PerClassClassifier needs labels of at least two classes, to tell one from the "
                    "others. Got one class."
                )
            least = min(sizes.min(), (len(labels) - sizes).min())
            if self.n_neighbors > least:
                raise InvalidInputError(
                    f"n_neighbors={self.n_neighbors} is more than the smallest class has members "
                    f"({least}); choose a smaller n_neighbors."
                )
            self.metrics_ = self._metrics(X, y, classes)
            self.classes_ = classes
            self._store(X, labels)
        return self

    def _store(self, X: Matrix, labels: Indices) -> None:
        """What decides: the rows, and what searches them under each metric."""
        self._rows, self._labels = X, labels
        self._searches = [
            ClassIndex(form, X, (labels == c).astype(np.intp))
            for c, form in enumerate(self.metrics_)
        ]

    def _learned_state(self) -> State:
        state = State()
        for c, form in enumerate(self.metrics_):
            state.add(f"metric{c}", stored(form))
        keep_examples(self, state, self._labels)
        return state

    def _restore_learned(self, saved: Saved) -> None:
        X, labels = restore_examples(self, saved)
        saved.check(len(self.classes_) > 1, "must have two classes at least")
        self.metrics_ = [
            restored(saved.part(f"metric{c}"), Form) for c in range(len(self.classes_))
        ]
        sizes = np.bincount(labels)
        least = min(sizes.min(), (len(labels) - sizes).min())
        saved.check(self.n_neighbors <= least, "must have n_neighbors members of each class")
        self._store(X, labels)

    def _metrics(self, X: Matrix, y: Any, classes: NDArray[Any]) -> list[Form]:
        parameter = "'learner' parameter of PerClassClassifier"
        return [
            fitted_clone(self.learner, X, (y == c).astype(int), parameter).metric_ for c in classes
        ]

    def _judge(self, X: Matrix) -> tuple[NDArray[np.bool_], Array]:
        """Whether each class claims each row, and the closeness of the row to it."""
        Q = self._queries(X)
        k = self.n_neighbors
        claims, closeness = [], []
        for search in self._searches:
            near = search.query(Q, k)
            closeness.append(near[:, 1].mean(axis=1))
            if self.rule == "sknn":
                claims.append(sum_closeness(near)[0] == 1)
                continue
            # The k nearest of both together; of equal ones, those of the rest first.
            both = near.reshape(len(near), 2 * k)
            order = np.argsort(-both, axis=1, kind="stable")[:, :k]
            claims.append(vote((order >= k).astype(np.intp), 2)[0] == 1)
        return np.column_stack(claims), np.column_stack(closeness)

    def decisions(self, X: Matrix) -> NDArray[np.bool_]:
        """Which classes claim each row: none, one or several.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        array of bool of shape (n_samples, n_classes)
            Whether each class claims each row, in ``classes_`` order.
        """
        return self._judge(X)[0]

    def decision_function(self, X: Matrix) -> Array:
        """Closeness to each class under its own metric.

        With combine="claimed" a class that does not claim a row comes after all that do.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,)
            For two classes, the closeness to the second minus that to the first.
        """
        values = self._values(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def _values(self, X: Matrix) -> Array:
        claims, values = self._judge(X)
        if self.combine == "closest":
            return values
        span = 2 * np.ptp(values, axis=1, keepdims=True) + 1
        return np.where(claims, values, values - span)

    def predict(self, X: Matrix) -> NDArray[Any]:
        """The class of each row; of equally close ones the first in ``classes_``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        array of shape (n_samples,)
            The class of each row.
        """
        values = self._values(X)
        return self.classes_[values.argmax(axis=1)]

    def binary_score(self, X: Matrix, y: ArrayLike) -> float:
        """The mean over classes of the part of rows that are claimed, or not, rightly.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows to classify.
        y : array of shape (n_samples,)
            The true classes.

        Returns
        -------
        float
            The mean part of right claims, from 0 to 1.
        """
        claims = self.decisions(X)
        return float(np.mean(claims == (np.asarray(y)[:, None] == self.classes_)))
