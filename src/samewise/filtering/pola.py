"""The filter by a learned distance to the nearest relevant document."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.files.state import Saved, State
from samewise.filtering.rows import Rows, stacked
from samewise.filtering.supervised import SupervisedFilter
from samewise.kernels import sparse_rows
from samewise.learners import POLA
from samewise.supervision import Pairs

__all__ = ["PolaFilter"]

_MOST_FEATURES = 16_384


class PolaFilter(SupervisedFilter):
    """Relevant is what lies near a relevant document, under a pseudo-metric learned on the way.

    Each topic has its own (M, b), learned by POLA. A document x is relevant iff

        min over the relevant documents r seen so far of (x − r)ᵀM(x − r) < b,

    and feedback makes a pair of x and that nearest r, similar if x is relevant and else not. The
    topic's own vector is the first relevant document.

    Parameters
    ----------
    gamma : float
        γ of POLA: larger is more cautious.
    max_documents : int, optional
        Most relevant documents that a topic holds; one more, and the oldest is forgotten.
    use_topic : bool
        Whether the topic's vector counts as a relevant document. Without it, nothing is relevant
        until feedback says so.
    vectorizer, recent
        As for `TopicFilter`. M has the square of the number of features: use few hundred.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, A. Y. Ng: Online and batch learning of pseudo-metrics. ICML 2004,
    §7.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.filtering import PolaFilter
    >>> filter = PolaFilter().fit({"north": [0.0, 1.0]})
    >>> for name, vector, relevant in [("a", [0.1, 1.0], True), ("b", [1.0, 0.0], False)] * 3:
    ...     _ = filter.observe(np.array(vector), f"{name}{filter.n_seen_}")
    ...     filter.feedback(f"{name}{filter.n_seen_ - 1}", "north", relevant)
    >>> [bool(filter.observe(np.array(v))) for v in ([0.2, 1.0], [1.0, 0.1])]
    [True, False]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupervisedFilter._parameter_constraints,
        "gamma": [Interval(Real, 0, None, closed="left")],
        "max_documents": [None, Interval(Integral, 1, None, closed="left")],
        "use_topic": ["boolean"],
    }

    def __init__(
        self,
        gamma: float = 0.0,
        *,
        max_documents: int | None = None,
        use_topic: bool = True,
        vectorizer: Any = None,
        recent: int = 10_000,
    ) -> None:
        self.gamma = gamma
        self.max_documents = max_documents
        self.use_topic = use_topic
        self.vectorizer = vectorizer
        self.recent = recent

    def _check_fit(self, raw: Rows) -> None:
        if raw.n_features > _MOST_FEATURES:
            raise TooLargeError(
                f"PolaFilter keeps a matrix of {raw.n_features} × {raw.n_features} numbers for each"
                f" topic; use at most {_MOST_FEATURES} features, as with "
                "TextVectors(n_features=512)."
            )

    def _begin(self) -> None:
        empty = Rows.empty(self._topics.n_features)
        self._relevant = [
            self._topics.row(i) if self.use_topic else empty for i in range(len(self.topics_))
        ]
        self._learners = [POLA(self.gamma) for _ in self.topics_]
        self._reweigh()

    def _reweigh(self) -> None:
        self._units = [self._vectors.weigh(raw) for raw in self._relevant]
        self._known: list[tuple[Any, float, Any] | None] = [None for _ in self.topics_]
        self._work = np.zeros(self._topics.n_features)

    def _metric(self, i: int) -> tuple[Any, float, Any]:
        """M, b, and rᵀMr of the relevant documents of a topic, computed once per state."""
        known = self._known[i]
        if known is None:
            learner, d = self._learners[i], self._topics.n_features
            if learner.__sklearn_is_fitted__():
                # Not metric_, which would factor M after every update.
                M, b = learner._online.solution()
            else:
                M, b = np.zeros((d, d)), 1.0
            M = np.ascontiguousarray(M, dtype=np.float64)
            known = M, float(b), _squares(self._units[i], M)
            self._known[i] = known
        return known

    def _distances(self, i: int, x: Rows) -> Any:
        """(x − r)ᵀM(x − r) for the relevant documents r of topic i."""
        M, _, squares = self._metric(i)
        Mx = x.data @ M[x.indices]
        dots = self._units[i].csr() @ Mx
        return np.maximum(squares - 2 * dots + x.data @ Mx[x.indices], 0.0)

    def _margins(self, raw: Rows, unit: Rows) -> list[float]:
        return [
            self._metric(i)[1] - float(self._distances(i, unit).min())
            if len(self._units[i])
            else -np.inf
            for i in range(len(self.topics_))
        ]

    def _learn(self, i: int, id: str, raw: Rows, unit: Rows, relevant: bool) -> None:
        if len(self._units[i]):
            nearest = int(np.argmin(self._distances(i, unit)))
            X = unit.joined(self._units[i][nearest : nearest + 1]).csr()
            learner = self._learners[i]
            before = learner.n_updates_ if learner.__sklearn_is_fitted__() else 0
            learner.partial_fit(Pairs(X, [0], [1], [1 if relevant else -1]))
            if learner.n_updates_ > before:
                self._known[i] = None
        if relevant:
            self._relevant[i] = self._relevant[i].joined(raw)
            self._units[i] = self._units[i].joined(unit)
            if self.max_documents is not None and len(self._relevant[i]) > self.max_documents:
                self._relevant[i], self._units[i] = self._relevant[i][1:], self._units[i][1:]
            self._known[i] = None

    def _state(self) -> State:
        from samewise.filtering.files import packed

        sizes = np.array([len(rows) for rows in self._relevant], dtype=np.int64)
        state = State({"sizes": sizes})
        state.add("relevant", stacked(self._relevant, self._topics.n_features).state())
        for i, learner in enumerate(self._learners):
            if learner.__sklearn_is_fitted__():
                state.arrays[f"learner{i}"] = packed(learner)
        return state

    def _restore(self, saved: Saved) -> None:
        from samewise.filtering.files import unpacked

        self._begin()
        n, d = len(self.topics_), self._topics.n_features
        sizes = saved.array("sizes", n, dtypes=["int64"])
        rows = Rows.restore(saved.part("relevant"))
        right = np.all(sizes >= 0) and sizes.sum() == len(rows) and rows.n_features == d
        saved.check(bool(right), "relevant documents must be as many as there are")
        ends = np.cumsum(sizes)
        self._relevant = [rows[e - s : e] for s, e in zip(sizes, ends, strict=True)]
        for i in range(n):
            if saved.has(f"learner{i}"):
                part = unpacked(saved.array(f"learner{i}", None, dtypes=["uint8"]), learner=True)
                if not isinstance(part, POLA) or part.n_features_in_ != d:
                    raise InvalidInputError(f"learner{i} must be POLA on {d} features")
                self._learners[i] = part
        self._reweigh()


def _squares(rows: Rows, M: Any) -> Any:
    return sparse_rows.quadratics(rows.indptr, rows.indices, rows.data, M)
