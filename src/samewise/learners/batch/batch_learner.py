"""What batch learners have in common: their input, where they start, and how they end."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.forms import Mahalanobis
from samewise.learners.attributes import RAN, Attribute, FormOf, Number
from samewise.learners.batch.fit_task import FitTask, callback_support
from samewise.learners.dense_rows import check_scale, typed
from samewise.learners.learner import Learner, MapLearner
from samewise.learners.pair_sampler import PairSampler
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.run_log import Callback, RunLog
from samewise.supervision import Pairs
from samewise.supervision.gate import as_pairs, is_labeled
from samewise.supervision.supervision_checks import checked_weights, parameter_array

SINGULAR = 1e-10
"""A variance below this part of the mean is none."""

RIDGE = 1e-3
"""What a covariance that is singular gets on its diagonal, relative to the mean variance."""


class FromLabels(Learner, storable=False):
    """A learner that takes labeled examples, and says so where it gets pairs."""

    def _examples(self, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, NDArray[Any]]:
        """Labeled examples, checked as scikit-learn does."""
        if isinstance(X, Pairs) or not is_labeled(X):
            raise InvalidInputError(
                f"{type(self).__name__} learns from class labels: give a matrix of examples and "
                "y. Got pairs; use a learner of pairs, such as ITML or MMC."
            )
        return super()._examples(X, y, reset)


@dataclass(eq=False, repr=False)
class Batch(FromLabels, storable=False):
    """A form learned from all examples at once; a subclass has the `fit`."""

    n_iter_: int = field(init=False)
    converged_: bool = field(init=False)

    _: KW_ONLY
    max_iter: int = 500
    tol: float = 1e-3
    warm_start: bool = False
    verbose: int | bool = False
    callback: Callback = None

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of scikit-learn, such as its `ProgressBar`; it needs version 1.9.

        A fit is one task, and each iteration a subtask of it, after which a callback may stop the
        run. Callbacks are not saved.

        Parameters
        ----------
        *callbacks : callbacks
            Those of `sklearn.callback`, or of your own; none takes them away.

        Returns
        -------
        self : object
            This learner.

        Examples
        --------
        >>> from sklearn.callback import ProgressBar  # doctest: +SKIP
        >>> LMNN().set_callbacks(ProgressBar()).fit(X, y)  # doctest: +SKIP
        """
        callback_support().set_callbacks(self, *callbacks)
        return self

    def _before(self, name: str) -> Any:
        """An attribute of the fit before, with `warm_start`."""
        return getattr(self, name, None) if self.warm_start else None

    def _log(self, *fields: str, **options: Any) -> RunLog:
        """The log of a run that these fields describe."""
        options = {"total": self.max_iter, **options}
        if getattr(self, "_skl_callbacks", None):
            options["task"] = FitTask(self)
        return RunLog(type(self).__name__, fields, self.verbose, self.callback, **options)

    def _end(
        self, log: RunLog, reached: str = "", n_iter: int | None = None, stacklevel: int = 5
    ) -> None:
        """Keep what the log has noted, and say if `max_iter` did not suffice; for `fit` to call."""
        self.n_iter_, self.history_ = len(log.rows), log.history
        if not (self.converged_ or log.stopped):
            self._warn_unfinished(reached, n_iter, stacklevel)

    def _warn_unfinished(
        self, reached: str = "", n_iter: int | None = None, stacklevel: int = 4
    ) -> None:
        """Say that `max_iter` did not suffice; for `fit` to call."""
        warnings.warn(
            f"{type(self).__name__} has not converged to tol={self.tol:g} in "
            f"{n_iter or self.n_iter_} iterations{reached}. Allow more (max_iter), or a larger "
            "tol.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


class BatchLearner(MapLearner, Batch, storable=False):
    """A Mahalanobis distance learned from all examples at once."""

    init: str | ArrayLike
    metric_: Mahalanobis

    _learned: ClassVar[dict[str, Attribute]] = {"metric_": FormOf((Mahalanobis,)), **RAN}

    def _given_start(self, n_components: int | None = None) -> Matrix64 | None:
        """L to start from, if it is known before the points are looked at."""
        d = self.n_features_in_
        if (before := self._before("components_")) is not None:
            return given_map(before, n_components, d, "components_ of the fit before")
        if isinstance(self.init, str):
            return np.eye(n_components or d, d) if self.init == "identity" else None
        return given_map(self.init, n_components, d, "init")

    def _keep(self, components: Array, dtype: np.dtype[Any]) -> None:
        self.metric_ = Mahalanobis.from_components(typed(components, dtype))


class BatchPairLearner(PairSampler, Batch, storable=False):
    """A form learned from all pairs at once, and a threshold for it."""

    threshold_: float

    _learned: ClassVar[dict[str, Attribute]] = {"threshold_": Number(optional=True)}

    def _pairs(self, X: Any, y: Any, random: np.random.RandomState) -> tuple[Pairs, Pairs]:
        """Pairs to learn from, given or sampled, and those to choose the threshold on."""
        held_out: Pairs | None = None

        def draw(X: Any, y: Any, _: Any) -> Pairs:
            nonlocal held_out
            learned, held_out = self._sampled(*self._examples(X, y), random)
            return learned

        pairs = as_pairs(X, y, None, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_features(pairs)
        check_scale(pairs.X)
        checked_weights(pairs.sample_weight, len(pairs), "pairs")
        return pairs, pairs if held_out is None else held_out

    def _calibrate(self, pairs: Pairs) -> None:
        """Choose `threshold_` for what was learned."""
        self.__dict__.pop("threshold_", None)
        if (threshold := self._calibrated(pairs)) is not None:
            self.threshold_ = threshold


def regularized(C: NDArray[np.float64], what: str, owner: str) -> NDArray[np.float64]:
    """A covariance or scatter as it is, or with a ridge and a warning where it is singular.

    Features must be in comparable units.
    """
    mean = np.trace(C) / max(len(C), 1)
    if not mean > 0:
        raise InvalidInputError(
            f"{owner} needs examples that differ, but {what} is zero; give other examples."
        )
    if np.linalg.eigvalsh(C)[0] > SINGULAR * mean:
        return C
    warnings.warn(
        f"{owner}: {what} is singular, because features are constant or linearly dependent or "
        f"there are too few examples. {RIDGE:g} of the mean is added to its diagonal; remove such "
        "features, reduce them with PCA, or give more examples, if that is not meant.",
        SamewiseWarning,
        stacklevel=5,
    )
    return C + RIDGE * mean * np.eye(len(C))


def given_map(
    L: ArrayLike, n_components: int | None, n_features: int, name: str
) -> NDArray[np.float64]:
    """A map to start from, of the right shape."""
    L = parameter_array(L, "init", np.float64).copy()
    rows = n_components or (L.shape[0] if L.ndim == 2 else n_features)
    if L.shape != (rows, n_features) or not np.isfinite(L).all():
        raise InvalidInputError(
            f"{name} must be a finite array of shape ({rows}, {n_features}). Got shape {L.shape} "
            "instead."
        )
    return L


def held_out_rows(
    labels: Indices, fraction: float | None, random: np.random.RandomState
) -> tuple[Indices, Indices | None]:
    """Rows to learn from and rows held out, if any, from each class."""
    everyone = np.arange(len(labels))
    if fraction is None:
        return everyone, None
    mixed = random.permutation(len(labels))
    mixed = mixed[np.argsort(labels[mixed], kind="stable")]
    sizes = np.bincount(labels)
    rank = everyone - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held = np.sort(mixed[rank < np.repeat(sizes * fraction, sizes).astype(int)])
    if not len(held):
        raise InvalidInputError(
            f"validation_fraction={fraction:g} holds out no point of any class; raise it, or leave "
            "it out."
        )
    kept = np.setdiff1d(everyone, held)
    if np.bincount(labels[kept]).max(initial=0) < 2:
        raise InvalidInputError(
            f"validation_fraction={fraction:g} leaves no class with two points to learn from; "
            "lower it, or leave it out."
        )
    return kept, held


def held_out(
    X: Array, labels: Indices, fraction: float | None, random: np.random.RandomState
) -> tuple[Array, Indices, tuple[Array, Indices] | None]:
    """Rows to learn from with their labels, and those held out, if any."""
    kept, held = held_out_rows(labels, fraction, random)
    if held is None:
        return X, labels, None
    return X[kept], labels[kept], (X[held], labels[held])
