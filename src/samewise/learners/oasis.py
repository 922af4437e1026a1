"""OASIS: an online algorithm for scalable (image) similarity learning."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Array
from samewise.engine.averaging import Spec, checked_average
from samewise.engine.directions import triplet_ranking
from samewise.engine.online import PATHS, Online
from samewise.engine.policy import Policy
from samewise.engine.stores import Full
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear
from samewise.kernels import psd as cone
from samewise.kernels import steps
from samewise.learners.triplets import TripletLearner
from samewise.supervision import Triplets

__all__ = ["OASIS"]


class OASIS(TripletLearner):
    """Online learning of a bilinear similarity S(q, p) = qᵀWp from triplets.

    A triplet (q, p⁺, p⁻) with p = p⁺ − p⁻ should satisfy qᵀWp ≥ margin. With the loss
    ℓ = max(0, margin − qᵀWp) each triplet moves

        τ = min(C, ℓ / (‖q‖² ‖p‖²)),   W ← W + τ q pᵀ.

    W need not be symmetric, positive semi-definite or square: queries and items may have different
    features. `metric_.embed_query(Q)` = Q W turns queries into vectors whose plain dot product with
    the stored items is the learned score.

    Parameters
    ----------
    C : float
        Aggressiveness.
    margin : float
        The wanted difference of scores. Similarities of vectors of unit length differ by tenths:
        there a margin of 1 asks for more than can be had, and 0.1 to 0.3 learns better.
    init : {"identity", "zero"} or array of shape (n_features, n_item_features)
        W to start from. The identity is the plain dot product.
    symmetric : bool
        Hand out (W + Wᵀ)/2.
    psd : "end", int or None
        W ⪰ 0 (of the symmetric part) in what is handed out; with a number of at least 2, also
        after every so many updates.
    average : {"last", "uniform", "survival"}, ("suffix", q) or ("cutoff", k)
        Which hypothesis is handed out, see `PassiveAggressive`.
    n_passes : int
        How often `fit` goes through the triplets.
    shuffle : bool
        Whether `fit` shows them in a new random order on each pass.
    n_triplets : int, optional
        Triplets drawn from labeled examples; unless said, 20 per example and at most 100 000.
    path : {"auto", "compiled", "blocked", "plain"}
        How the arithmetic is done. All give the same result; "auto" takes the fastest.
    verbose : bool
        Print progress to standard error.
    random_state : int, RandomState or None
        For drawing triplets and shuffling, the only randomness.

    Attributes
    ----------
    metric_ : Bilinear
        The learned similarity, with `matrix` W.
    n_updates_, n_seen_, n_mistakes_ : int
        A mistake is a triplet with qᵀWp ≤ 0 when it was shown.
    n_skipped_ : int
        Triplets from which nothing can be learned: q = 0, p⁺ = p⁻, or weight 0.
    loss_ : float
    history_ : dict of arrays
    n_features_in_, n_features_items_, feature_names_in_

    References
    ----------
    G. Chechik, V. Sharma, U. Shalit, S. Bengio: Large scale online learning of image similarity
    through ranking. JMLR 11 (2010).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from samewise import OASIS, Triplets
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> triplets = Triplets.from_labels(X[:1000], y[:1000], n_triplets=5000, random_state=0)
    >>> learner = OASIS().fit(triplets)
    >>> test = Triplets.from_labels(X[1000:], y[1000:], n_triplets=5000, random_state=1)
    >>> learner.score(test) > OASIS(C=1e-9).fit(triplets).score(test)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "margin": [Interval(Real, 0, None, closed="neither")],
        "init": [str, "array-like"],
        "symmetric": ["boolean"],
        "psd": [None, StrOptions({"end"}), Interval(Integral, 2, None, closed="left")],
        "average": [str, tuple, list],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "n_triplets": [None, Interval(Integral, 1, None, closed="left")],
        "path": [StrOptions(set(PATHS))],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 0.1,
        margin: float = 1.0,
        *,
        init: Any = "identity",
        symmetric: bool = False,
        psd: str | int | None = None,
        average: Spec = "last",
        n_passes: int = 1,
        shuffle: bool = False,
        n_triplets: int | None = None,
        path: str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.margin = margin
        self.init = init
        self.symmetric = symmetric
        self.psd = psd
        self.average = average
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.n_triplets = n_triplets
        self.path = path
        self.verbose = verbose
        self.random_state = random_state

    def _begin(self, told: Triplets) -> Online:
        checked_average(self.average)
        m, n = told.X.shape[1], told.items.shape[1]
        if m != n and (self.symmetric or self.psd is not None):
            raise InvalidInputError(
                "symmetric and psd need queries and items of the same features. Got "
                f"{m} and {n} features; leave both out."
            )
        dtype = np.result_type(told.X.dtype, told.items.dtype)
        # Once at the end is the form's affair; so is never.
        policy: Policy = self.psd if isinstance(self.psd, int | np.integer) else "end"
        self._n_skipped = 0
        return Online(
            Full(_initial(self.init, m, n).astype(dtype)),
            0.0,
            steps.pa1(self.C),
            psd=policy,
            least_b=-np.inf,
            average=self.average,
            tolerance=0.0,
            path=self.path,
        )

    def _show(self, online: Online, told: Triplets) -> None:
        directions = triplet_ranking(told, self.margin)
        online.learn(directions)
        self._n_skipped += int(np.count_nonzero(directions.weight == 0))

    def _form(self, M: Array) -> Bilinear:
        if self.psd is not None:
            return Bilinear(cone.project(M))
        return Bilinear(cone.symmetrize(M) if self.symmetric else M)

    @property
    def metric_(self) -> Bilinear:
        """The learned similarity: a frozen copy that later learning does not move."""
        return cast(Bilinear, self._solution()[0])

    @property
    def n_skipped_(self) -> int:
        """Triplets from which nothing could be learned."""
        check_is_fitted(self)
        return self._n_skipped

    def get_bilinear_matrix(self) -> Array:
        """W of shape (n_features, n_item_features), as a copy."""
        return self.metric_.matrix.copy()


def _initial(init: Any, m: int, n: int) -> Array:
    """W to start from."""
    if isinstance(init, str):
        if init not in ("zero", "identity"):
            raise InvalidInputError(
                "The 'init' parameter must be 'zero', 'identity' or an array of shape (n_features, "
                f"n_item_features). Got {init!r} instead."
            )
        return np.zeros((m, n)) if init == "zero" else np.eye(m, n)
    W = Bilinear(np.asarray(init)).matrix
    if W.shape != (m, n):
        raise InvalidInputError(
            f"init has shape {W.shape}, but queries have {m} and items {n} features; give a matrix "
            f"of shape ({m}, {n})."
        )
    return W
