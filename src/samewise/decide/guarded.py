"""A learner that knows whether it helped."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Matrix
from samewise.decide.classifier import KNNClassifier
from samewise.decide.metric_classifier import fitted_clone
from samewise.exceptions import NothingGainedWarning
from samewise.forms import Form, GeneralizedCosine, Mahalanobis
from samewise.kernels.sparse_structure import sound_rows
from samewise.scores import Gain
from samewise.supervision.holding_out import hold_out
from samewise.supervision.supervision_checks import check_one_kind

ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
"""The rows that learners take."""


def _embeds(guarded: Guarded) -> bool:
    return hasattr(guarded, "metric_") and hasattr(guarded.metric_, "embed")


@dataclass(eq=False, repr=False)
class Guarded(TransformerMixin, BaseEstimator):
    """Any learner that takes labels, with a part of the examples held out to see what it gains.

    The learner is fitted to the examples that are not held out. k-NN among these decides each
    example that is, once under the learned metric and once under the plain one: the Euclidean
    distance where a distance was learned, the cosine where a similarity was. `gain_` has both
    errors and the uncertainty of their difference. The better one is kept.

    Parameters
    ----------
    learner : estimator
        A learner with a `metric_` after fit(X, y). It is cloned.
    validation_fraction : float in (0, 1), default=0.25
        Part of each class that is held out.
    keep : {"better", "learned"}, default="better"
        "better" keeps the plain metric where it errs less on the examples held out, and otherwise
        what was learned. "learned" keeps what was learned in any case. A warning says if nothing
        was gained.
    refit : bool, default=True
        Whether a learned metric that is kept is learned again from all examples, the held-out ones
        among them.
    n_neighbors : int, default=3
        Neighbors that decide.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Form
        What was kept.
    kept_ : {"plain", "learned"}
        Which one that is.
    gain_ : samewise.scores.Gain
        The held-out errors of the plain and of the learned metric, `difference`, `standard_error`,
        the p-value of an exact test and a `verdict` in words.
    learner_ : estimator
        The fitted learner, also where the plain metric was kept.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X had any.

    See Also
    --------
    fit_model : The same for a whole workflow, with columns scaled and a report.
    samewise.protocols.measure : More measures, on examples of your own.

    Notes
    -----
    `gain_` compares the learner with the plain metric without bias, because neither was chosen by
    the examples held out. But these have chosen what is kept: its error, the lesser of two, is too
    low by a little. Measure it on other examples, as `cross_val_score` does with
    ``KNNClassifier(Guarded(learner))``. A learner with a `validation_fraction` of its own, which
    stops early by it, takes that part from the examples that are not held out here; no example
    serves both.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from samewise import LDA, Guarded
    >>> guarded = Guarded(LDA(), random_state=0).fit(*load_wine(return_X_y=True))
    >>> guarded.kept_, guarded.gain_.verdict
    ('learned', 'better, p < 0.001')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [HasMethods("fit")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "keep": [StrOptions({"better", "learned"})],
        "refit": ["boolean"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    learner: Any
    validation_fraction: float = 0.25
    _: KW_ONLY
    keep: str = "better"
    refit: bool = True
    n_neighbors: int = 3
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Learn, measure what was gained, and keep the better metric.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Examples.
        y : array of shape (n,)
            Their classes.

        Returns
        -------
        self : Guarded
            The fitted learner.
        """
        with unchanged_if_refused(self):
            rows, labels = validate_data(self, sound_rows(X), y, **ROWS)
            check_one_kind(labels)
            held = hold_out(labels, self.validation_fraction, self.random_state)
            parts = rows[~held], labels[~held], rows[held], labels[held]
            learner = self._learned(*parts[:2])
            plain = plain_form(learner.metric_, rows)
            name = "euclidean" if plain.is_distance else "cosine"
            self.gain_ = Gain.of(
                name,
                self._correct(plain, *parts),
                type(self.learner).__name__,
                self._correct(learner.metric_, *parts),
            )
            worse = self.gain_.n_worse > self.gain_.n_better
            self.kept_ = "plain" if worse and self.keep == "better" else "learned"
            if not self.gain_.gained:
                self._warn()
            if self.refit and self.kept_ == "learned":
                learner = self._learned(rows, labels)
            self.learner_ = learner
            self.metric_: Form = plain if self.kept_ == "plain" else learner.metric_
        return self

    @available_if(_embeds)
    def transform(self, X: Matrix) -> Array:
        """Map rows to where the metric that was kept is the usual one.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows to map.

        Returns
        -------
        array of shape (n, n_components)
            Euclidean distances of the result are the distances under `metric_`; under a cosine,
            rows have unit length and inner products are the similarities.
        """
        check_is_fitted(self)
        embed = getattr(self.metric_, "embed")  # noqa: B009 (not every form has it)
        return embed(validate_data(self, sound_rows(X), reset=False, **ROWS))

    def _learned(self, X: Matrix, y: NDArray[Any]) -> Any:
        return fitted_clone(self.learner, X, y, "'learner' parameter of Guarded")

    def _correct(
        self, form: Form, X: Matrix, y: NDArray[Any], X_held: Matrix, y_held: NDArray[Any]
    ) -> NDArray[np.bool_]:
        knn = KNNClassifier(form, min(self.n_neighbors, len(y))).fit(X, y)
        return knn.predict(X_held) == y_held

    def _warn(self) -> None:
        found = self.gain_
        remedy = "keep='learned' keeps what was learned" if self.kept_ == "plain" else ""
        warnings.warn(
            f"Nothing was gained: {found.sentence}. "
            + (f"The {found.before} metric is kept; {remedy}. " if remedy else "")
            + "Try other parameters, another learner, or scaled features.",
            NothingGainedWarning,
            stacklevel=5,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def plain_form(form: Form, X: Matrix) -> Form:
    """What a learned form is compared with: the Euclidean distance, or the cosine.

    Examples
    --------
    >>> from samewise import Bilinear
    >>> import numpy as np
    >>> plain_form(Bilinear(np.eye(2)), np.zeros((3, 2)))
    GeneralizedCosine(n_features_in=2, rank=2, on_zero='zero')
    """
    d = X.shape[1]
    if form.is_distance:
        return Mahalanobis.identity(d)
    return GeneralizedCosine(np.eye(d, dtype=X.dtype), on_zero="zero")
