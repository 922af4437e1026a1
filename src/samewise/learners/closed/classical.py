"""The metrics everything is compared with: Euclidean, cosine, inverse covariance, PCA and LDA."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError, SamewiseWarning, TooLargeError
from samewise.forms import GeneralizedCosine, Mahalanobis
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, FormOf, Labels, Values
from samewise.learners.closed.closed_form import (
    MOST,
    LinearMap,
    centered,
    group_sums,
    whitening,
    without_rounding,
)
from samewise.learners.closed.discriminants import (
    discriminants,
    discriminants_of_rows,
    shrunk_discriminants,
)
from samewise.learners.closed.scatter_matrices import covariance
from samewise.learners.constraints import FRACTION
from samewise.learners.learner import ROWS


class FixedMetric(LinearMap, storable=False):
    """A metric that follows from the number of features alone."""

    @abstractmethod
    def _form(self, d: int) -> Mahalanobis | GeneralizedCosine:
        """The metric for so many features."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Look at the number of features.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        y : object, default=None
            Not used; present for scikit-learn's convention.

        Returns
        -------
        self
            The fitted learner.
        """
        with unchanged_if_refused(self):
            d = validate_data(self, sound_rows(X), **ROWS).shape[1]
            if d * d > MOST:
                raise TooLargeError(
                    f"{type(self).__name__} holds a dense matrix of {d:,} × {d:,} values, more "
                    f"than {MOST:,}. Reduce the features first; for neighbors alone, "
                    "KNNClassifier(metric=None) is Euclidean without a matrix, and rows of unit "
                    "length have the neighbors of the cosine."
                )
            self.metric_ = self._form(d)
        return self


class Euclidean(FixedMetric):
    """The Euclidean distance ‖x − x'‖, as a learner that learns nothing but the number of features.

    Attributes
    ----------
    metric_ : Mahalanobis
        M = I.
    components_ : array of shape (d, d)
        I.
    n_features_in_ : int

    Examples
    --------
    >>> from samewise import Euclidean
    >>> Euclidean().fit([[1.0, 2.0], [3.0, 4.0]]).metric_.pairs([[0.0, 0.0]], [[3.0, 4.0]])
    array([5.])
    """

    def _form(self, d: int) -> Mahalanobis:
        return Mahalanobis.identity(d)


@dataclass(eq=False, repr=False)
class Cosine(FixedMetric):
    """The cosine xᵀx'/(‖x‖‖x'‖), as a learner that learns nothing but the number of features.

    Parameters
    ----------
    on_zero : {"raise", "zero"}, default="zero"
        A zero row has no cosine: raise a DegenerateInputError, or define its similarity with
        anything as 0.

    Attributes
    ----------
    metric_ : GeneralizedCosine
        A = I.
    n_features_in_ : int

    Examples
    --------
    >>> from samewise import Cosine
    >>> Cosine().fit([[1.0, 2.0], [3.0, 4.0]]).metric_.pairs([[1.0, 0.0]], [[3.0, 4.0]])
    array([0.6])
    """

    _learned: ClassVar[dict[str, Attribute]] = {"metric_": FormOf((GeneralizedCosine,))}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "on_zero": [StrOptions({"raise", "zero"})]
    }

    _: KW_ONLY
    on_zero: str = "zero"

    def _form(self, d: int) -> GeneralizedCosine:
        return GeneralizedCosine(np.eye(d), self.on_zero)


@dataclass(eq=False, repr=False)
class Covariance(LinearMap):
    """The Mahalanobis distance proper: M is the inverse of the covariance of the examples.

    M = ((1 − s) S + s tr(S)/d I)⁻¹ with S = 1/n Σ_i (x_i − m)(x_i − m)ᵀ and the shrinkage s. With
    s = 0 it does not depend on the units of the features, nor on any invertible linear map of the
    examples.

    Parameters
    ----------
    shrinkage : float in [0, 1], default=0.0
        Shrinkage s towards a multiple of the identity. A singular S, as with more features than
        examples, needs it: with s = 0 directions in which the examples do not differ get no weight,
        with a warning.

    Attributes
    ----------
    components_ : array of shape (r, d)
        L with M = LᵀL; r is the rank.
    metric_ : Mahalanobis
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Covariance
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> Covariance().fit(X).metric_.matrix.round(12)
    array([[0.5, 0. ],
           [0. , 2. ]])
    """

    shrinkage: float = 0.0

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        y : object, default=None
            Not used; present for scikit-learn's convention.

        Returns
        -------
        self : Covariance
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X = self._points(X)
            S = covariance(X)
            L = whitening(S, S, self.shrinkage, X.dtype, "covariance", stacklevel=3)
            self._keep(L, X.dtype)
        return self


@dataclass(eq=False, repr=False)
class PCA(LinearMap):
    """The Euclidean distance in the leading principal directions.

    L has the eigenvectors of the covariance of the examples as rows, those of the largest
    eigenvalues λ first; with `whiten` each is divided by √λ. By scikit-learn's PCA, exactly.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L. At most min(n − 1, d), which is the default.
    whiten : bool, default=False
        Unit variance in each direction. Directions without variance are left out, with a warning.

    Attributes
    ----------
    components_ : array of shape (n_components, d)
        L.
    explained_variance_ : array of shape (n_components,)
        λ, by n − 1.
    metric_ : Mahalanobis
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import PCA
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> PCA(1).fit(X).metric_.pairs([[0.0, 0.0]], [[3.0, 4.0]])
    array([3.])
    """

    _learned: ClassVar[dict[str, Attribute]] = {"explained_variance_": Values()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"whiten": ["boolean"]}

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = False

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        y : object, default=None
            Not used; present for scikit-learn's convention.

        Returns
        -------
        self : PCA
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X = self._points(X)
            n, d = X.shape
            n_components = self._n_directions(n, d)
            solver = "covariance_eigh" if n >= d else "full"
            Z = centered(X)
            check_differ(Z)
            # Imported where it is needed: it loads a large part of scikit-learn.
            from sklearn import decomposition

            pca = decomposition.PCA(n_components, svd_solver=solver).fit(Z)
            self._keep_directions(pca.components_, pca.explained_variance_, X.dtype)
        return self

    def _n_directions(self, n: int, d: int) -> int:
        """How many directions to keep."""
        most = min(n - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise InvalidInputError(
                f"n_components must be at most {most}, the smaller of the number of examples "
                f"less one and of the number of features. Got {self.n_components} instead."
            )
        return self.n_components or most

    def _keep_directions(self, L: Array, variances: Array, dtype: np.dtype[Any]) -> None:
        if self.whiten:
            L, variances = whitened_directions(L, variances)
        self._keep(L, dtype)
        self.explained_variance_ = variances


@dataclass(eq=False, repr=False)
class LDA(LinearMap):
    """Linear discriminant analysis: classes far apart, and of unit covariance within.

    The rows a of L are the leading solutions of S_b a = λ S_w a with aᵀS_w a = 1, S_w being the
    covariance within classes and S_b that between them: Fisher's discriminants (FDA), of which
    there are at most one less than classes; those of scikit-learn's LinearDiscriminantAnalysis.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L. At most min(number of classes − 1, d), which is the default.
    shrinkage : float in [0, 1] or "auto", default=0.0
        Shrinkage s towards a multiple of the identity. S_w is replaced by (1 − s) S_w + s tr(S_w)/d
        I for each class; "auto" chooses s by the Ledoit–Wolf lemma. A singular S_w, as with more
        features than examples, needs it: with s = 0 directions in which S_w is singular are left
        out, with a warning.

    Attributes
    ----------
    components_ : array of shape (n_components, d)
        L.
    metric_ : Mahalanobis
    classes_ : array
        The labels.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import LDA
    >>> X, y = load_iris(return_X_y=True)
    >>> LDA().fit(X, y).metric_
    Mahalanobis(n_features_in=4, rank=2)
    """

    _learned: ClassVar[dict[str, Attribute]] = {"classes_": Labels()}
    _target_required: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [FRACTION, StrOptions({"auto"})],
    }

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: float | str = 0.0

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : LDA
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X, labels = self._dense_examples(X, y)
            most = self._n_discriminants(X.shape[1])
            Z, sizes = centered(X), np.bincount(labels)
            raw = group_sums(Z, labels, len(sizes)) / sizes[:, None]
            within, means = without_rounding(Z - raw[labels], X), without_rounding(raw, X)
            check_separable(within, means)
            self._keep(self._directions(Z, labels, within, means, sizes)[:most], X.dtype)
        return self

    def _directions(
        self, Z: Array, labels: Indices, within: Array, means: Array, sizes: Indices
    ) -> Array:
        """L for centered points, these less the means of their classes, and the means."""
        n, d = Z.shape
        if self.shrinkage == 0:
            found = discriminants_of_rows if n < d else discriminants
            L, rank = found(within if n < d else within.T @ within / n, means, sizes / n)
            warn_if_singular(rank, d, stacklevel=5)
            return L
        try:
            if isinstance(self.shrinkage, str):
                return _shrunk_by_lemma(Z, labels)
            return shrunk_discriminants(within.T @ within / n, Z.T @ Z / n, self.shrinkage)
        except np.linalg.LinAlgError as error:
            raise self._too_singular() from error

    def _n_discriminants(self, d: int) -> int:
        """How many directions to keep at most."""
        most = min(len(self.classes_) - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise InvalidInputError(
                f"n_components must be at most {most}, the smaller of the number of classes "
                f"less one and of the number of features. Got {self.n_components} instead."
            )
        return self.n_components or most

    def _too_singular(self) -> InvalidInputError:
        return InvalidInputError(
            "The covariance within classes is singular, also with shrinkage="
            f"{self.shrinkage!r}. Set shrinkage to a larger value, remove features that "
            "are constant or follow from others, or reduce the dimension before (PCA)."
        )


def check_differ(spread: Array) -> None:
    """Refuse points without spread."""
    if not spread.any():
        raise InvalidInputError("PCA needs points that differ. Got points that are all the same.")


def _shrunk_by_lemma(Z: Array, labels: Indices) -> Array:
    """By scikit-learn, which estimates the shrinkage of each class."""
    # Imported where it is needed: it loads a large part of scikit-learn.
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    with warnings.catch_warnings():
        # Said of every class with one example: its covariance is zero.
        warnings.filterwarnings("ignore", "Only one sample available")
        fitted = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(Z, labels)
    L: Array = fitted.scalings_.T
    return L


def check_separable(within: Array, means: Array) -> None:
    """Refuse classes whose examples or whose means, less that of all, are all the same."""
    if not within.any():
        raise InvalidInputError(
            "LDA needs classes whose examples differ: the covariance within classes is "
            "zero. Give more examples of each class, or use PCA."
        )
    if not means.any():
        raise InvalidInputError(
            "LDA needs classes with different means. Got classes whose means are all the same."
        )


def whitened_directions(L: Array, variances: Array) -> tuple[Array, Array]:
    """Directions with unit variance in each, and their variances; those without are left out."""
    rounding = 10 * max(L.shape) * float(np.finfo(L.dtype).eps)
    kept = variances > rounding * variances[0]
    if not kept.all():
        warnings.warn(
            f"{np.count_nonzero(~kept)} of {len(kept)} principal directions have no variance that "
            "could be made 1 and are left out. Lower n_components to "
            f"{np.count_nonzero(kept)}, or remove features that are constant or follow from "
            "others.",
            SamewiseWarning,
            stacklevel=5,
        )
    return L[kept] / np.sqrt(variances[kept])[:, None], variances[kept]


def warn_if_singular(rank: int, d: int, stacklevel: int) -> None:
    """Warn if the covariance within classes is singular."""
    if rank < d:
        warnings.warn(
            f"The covariance within classes is singular: its rank is {rank} of {d}. Directions in "
            "which it is singular are left out, even if classes differ there. Set shrinkage to "
            "'auto' or a value above 0, remove features that are constant or follow from others, "
            "or reduce the dimension before (PCA).",
            SamewiseWarning,
            stacklevel=stacklevel,
        )
