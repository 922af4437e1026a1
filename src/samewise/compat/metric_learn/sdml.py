"""metric-learn's SDML, from pairs and from labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from samewise.compat.metric_learn.former_names import formerly
from samewise.compat.metric_learn.of_pairs import FromLabels, FromPairs, OfPairs
from samewise.compat.metric_learn.starts import prior_of
from samewise.learners.batch import sdml
from samewise.supervision import Pairs


class _SDML(OfPairs):
    balance_param: float
    sparsity_param: float
    prior: Any
    verbose: bool
    random_state: Any

    def _learn(self, pairs: Pairs) -> Self:
        learner = sdml.SDML(
            self.balance_param,
            self.sparsity_param,
            prior=prior_of(self.prior, self.n_features_in_, self.random_state),
            verbose=self.verbose,
        ).fit(pairs)
        self.balance_ = learner.balance_
        return self._keep(learner.metric_)


@dataclass(eq=False, repr=False)
class SDML(_SDML, FromPairs):
    """`samewise.SDML` with metric-learn's parameters.

    Parameters
    ----------
    balance_param : float, default=0.5
        Weight of the pairs. Where there is no solution it is lowered, with a warning.
    sparsity_param : float, default=0.01
        Cost of entries beside the diagonal. The larger it is, the more of them are 0.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    balance_param: float = 0.5
    sparsity_param: float = 0.01
    prior: Any = "identity"
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None


@formerly(num_constraints="n_constraints")
@dataclass(eq=False, repr=False)
class SDML_Supervised(_SDML, FromLabels):
    """`SDML` with pairs sampled from labels.

    Parameters
    ----------
    balance_param : float, default=0.5
        Weight of the pairs. Where there is no solution it is lowered, with a warning.
    sparsity_param : float, default=0.01
        Cost of entries beside the diagonal. The larger it is, the more of them are 0.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    n_constraints : int, default=None
        Pairs of each kind; 20 c² for c classes by default.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    balance_param: float = 0.5
    sparsity_param: float = 0.01
    prior: Any = "identity"
    n_constraints: int | None = None
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None
