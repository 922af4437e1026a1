"""What learners know of scores that are sure or not: variances, questions, samples."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import alone
from samewise._typing import Array, Indices, Matrix
from samewise.engine.online import Online
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear
from samewise.kernels.neighbors import top_k
from samewise.kernels.pairwise import times
from samewise.learners.online.margin_gauge import Bases


class UncertainScores:
    """What both have in common: a Gaussian over W, and what its variance is good for."""

    if TYPE_CHECKING:
        metric_: Any
        _online: Online
        _bases: Bases | None

    @property
    def _gaussian(self) -> Any:
        check_is_fitted(self)
        return self._online.mover

    def score_variance(self, Q: Matrix, P: Matrix) -> Array:
        """How unsure the score qᵀWp is, all queries against all items.

        Parameters
        ----------
        Q : array or CSR matrix of shape (k, n_features)
            Queries, one row each.
        P : array or CSR matrix of shape (l, n_item_features)
            Items, one row each.

        Returns
        -------
        array of shape (k, l)
            The variance of qᵀWp under what was learned: at first ‖q‖²‖p‖², small where much was
            learned about queries and items of that kind.
        """
        with alone(self):
            return self._gaussian.variance(*self._in_coordinates(Q, P))

    def ask(
        self,
        q: ArrayLike,
        candidates: Matrix,
        n: int = 1,
        *,
        by: str = "variance",
        width: float = 1.0,
    ) -> Indices:
        """The candidates whose feedback would teach most about a query.

        Parameters
        ----------
        q : array of shape (n_features,), or matrix of shape (k, n_features)
            One query, or several.
        candidates : array or CSR matrix of shape (l, n_item_features)
            Items to choose from, one row each.
        n : int, default=1
            How many to name.
        by : {"variance", "upper"}, default="variance"
            "variance": those whose order against the query's best candidate p* is least sure, by
            the variance of the difference of scores relative to its size: the smallest
            qᵀW(p* − p) / √Var(qᵀW(p* − p)) first, p* itself last. "upper": those that may well be
            good, by their upper confidence bound qᵀWp + width · √variance.
        width : float, default=1.0
            Of the confidence bound, in standard deviations.

        Returns
        -------
        integer array of shape (n,), or (k, n) for several queries
            Row numbers of candidates, most worth asking first.
        """
        if by not in ("variance", "upper"):
            raise InvalidInputError(f"by must be 'variance' or 'upper'. Got {by!r}.")
        if not isinstance(width, Real) or not np.isfinite(width):
            raise InvalidInputError(f"width must be a finite number. Got {width!r}.")
        single = np.ndim(q) == 1
        Q: Matrix = np.asarray(q)[None, :] if single else q
        with alone(self):
            form = self.metric_
            seen = self._in_coordinates(Q, candidates)
            scores = form.closeness(Q, candidates)
            if not isinstance(n, Integral) or not 1 <= n <= scores.shape[1]:
                raise InvalidInputError(
                    "n must be an integer between 1 and the number of candidates, "
                    f"{scores.shape[1]}. Got {n!r}."
                )
            if by == "upper":
                worth = scores + float(width) * np.sqrt(self._gaussian.variance(*seen))
            else:
                worth = -self._sureness(scores, *seen)
        asked = top_k(worth, int(n))
        return asked[0] if single else asked

    def _sureness(self, scores: Array, Q: Matrix, P: Matrix) -> Array:
        """By how many standard deviations the best item of each query is ahead of the others.

        The variance of a score alone would not do: FactoredAROMA's is a product of one number of
        the query and one of the item, and so orders the items alike for every query.
        """
        sure = np.empty(scores.shape)
        for i, best in enumerate(np.argmax(scores, axis=1)):
            ahead = P[np.full(P.shape[0], best)] - P
            variance = self._gaussian.variance(Q[i : i + 1], ahead)[0].astype(np.float64)
            gap = scores[i, best] - scores[i].astype(np.float64)
            # A copy of the best has neither gap nor variance, and nothing to teach.
            known = variance <= 0
            sure[i] = np.where(known, np.inf, gap / np.sqrt(np.where(known, 1.0, variance)))
        return sure

    def sample_scores(self, Q: Matrix, P: Matrix, random_state: Any = None) -> Array:
        """Scores qᵀW̃p under one W̃ drawn from the Gaussian, all queries against all items.

        Ranking by them is Thompson sampling: items are shown as often as they may be the best.

        Parameters
        ----------
        Q : array or CSR matrix of shape (k, n_features)
            Queries, one row each.
        P : array or CSR matrix of shape (l, n_item_features)
            Items, one row each.
        random_state : int, RandomState instance or None, default=None
            For the draw.

        Returns
        -------
        array of shape (k, l)
            The sampled scores.
        """
        with alone(self):
            seen = self._in_coordinates(Q, P)
            noise = Bilinear(self._gaussian.noise(check_random_state(random_state)))
            form = self.metric_
        return form.cross(Q, P) + noise.cross(*seen)

    def _in_coordinates(self, Q: Matrix, P: Matrix) -> tuple[Matrix, Matrix]:
        """Queries and items, checked, as the Gaussian sees them."""
        form = self.metric_
        Q = form._check_rows(Q, "Q", form.n_features_in)
        P = form._check_rows(P, "P", form.n_features_items)
        if self._bases is None:
            return Q, P
        return times(Q, self._bases[0].astype(Q.dtype)), times(P, self._bases[1].astype(P.dtype))
