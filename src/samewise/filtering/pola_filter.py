"""The filter by a learned distance to the nearest relevant document."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise.engine.directions import Directions
from samewise.engine.online import Online, few_threads
from samewise.engine.rank_one_mover import RankOneMover
from samewise.engine.stores import Symmetric
from samewise.exceptions import TooLargeError
from samewise.files.state import Saved, State
from samewise.filtering.balanced_threshold import (
    BalancedThreshold,
    restore_thresholds,
    thresholds_state,
)
from samewise.filtering.filter_parameters import COUNT, parameter
from samewise.filtering.sparse_store import Rows, stacked
from samewise.filtering.supervised_filters import SupervisedFilter
from samewise.kernels import sparse_rows
from samewise.kernels.steps import Step
from samewise.learners.online.pair_learner import LEAST_B

_MOST_FEATURES = 16_384


@dataclass(eq=False, repr=False)
class PolaFilter(SupervisedFilter):
    """Relevant is what lies near a relevant document, under a pseudo-metric learned on the way.

    Each topic has its own (M, b), learned by POLA. A document x is relevant iff

        min over the relevant documents r seen so far of (x − r)ᵀM(x − r) < b − θ,

    and feedback makes a pair of x and that nearest r, similar if x is relevant and else not. The
    topic's own vector is the first relevant document.

    POLA's own threshold is b, with θ = 0. Its steps treat a relevant and an irrelevant document
    alike, and where few are relevant it becomes too strict. By default θ is the threshold of the
    least balanced error, the mean of the false-positive and the false-negative rate, on the margins
    b − distance of the last `recent` judgments, each computed before it was learned from. It is
    chosen anew every 32 judgments of a topic, once five are relevant.

    Parameters
    ----------
    relaxation : float, default=0.0
        γ of POLA: a step is shorter by the factor ‖G‖²/(‖G‖² + γ). Larger is more cautious.
    thresholds : {"auto", "learned"}, default="auto"
        Whether θ follows the judged margins, or is 0.
    max_documents : int or None, default=None
        The largest number of relevant documents that a topic holds; with one more, the oldest is
        forgotten. By default there is no limit.
    use_topic : bool, default=True
        Whether the topic's vector counts as a relevant document. Without it, nothing is relevant
        until feedback says so.
    vectorizer : TextVectors, fitted vectorizer of scikit-learn, or None, default=None
        Makes vectors of texts. Of TextVectors a copy is used. M has the square of the number of
        features: use few hundred, as with `TextVectors(n_features=512)`.
    recent : int, default=10000
        How many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
        The ids of the topics.
    n_seen_ : int
        Documents decided.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, A. Y. Ng: Online and batch learning of pseudo-metrics. ICML 2004,
    §7.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import PolaFilter
    >>> filter = PolaFilter().fit({"north": [0.0, 1.0]})
    >>> for name, vector, relevant in [("a", [0.1, 1.0], True), ("b", [1.0, 0.0], False)] * 3:
    ...     _ = filter.observe(np.array(vector), f"{name}{filter.n_seen_}")
    ...     filter.feedback(f"{name}{filter.n_seen_ - 1}", "north", relevant)
    >>> [bool(filter.observe(np.array(v))) for v in ([0.2, 1.0], [1.0, 0.1])]
    [True, False]
    """

    relaxation: float = parameter(0.0, Interval(Real, 0, None, closed="left"))
    _: KW_ONLY
    thresholds: str = parameter("auto", StrOptions({"auto", "learned"}))
    max_documents: int | None = parameter(None, None, COUNT)
    use_topic: bool = parameter(True, "boolean")
    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)

    def _check_fit(self, raw: Rows) -> None:
        if raw.n_features > _MOST_FEATURES:
            raise TooLargeError(
                f"PolaFilter keeps a matrix of {raw.n_features} × {raw.n_features} numbers for each"
                f" topic; use at most {_MOST_FEATURES} features, as with "
                "TextVectors(n_features=512)."
            )

    def _begin(self) -> None:
        d = self._topics.n_features
        self._relevant = [
            self._topics.row(i) if self.use_topic else Rows.empty(d)
            for i in range(len(self.topics_))
        ]
        # None until a first step: M is zero, and would take its memory nevertheless.
        self._engines: list[Online | None] = [None for _ in self.topics_]
        self._thetas = [BalancedThreshold(self.recent) for _ in self.topics_]
        self._reweigh()

    @classmethod
    def _older_parameters(cls, given: Saved) -> dict[str, Any]:
        return {} if given.has("thresholds") else {"thresholds": "learned"}

    def _engine(self) -> Online:
        """POLA before its first step."""
        M = Symmetric.zeros(self._topics.n_features, np.float64)
        step = Step(relax=self.relaxation)
        return Online(RankOneMover(M, LEAST_B, step, psd="each", least_b=LEAST_B))

    def _reweigh(self) -> None:
        self._units = [self._vectors.weigh(raw) for raw in self._relevant]
        # rᵀMr of the relevant documents of each topic, None where M or they have changed.
        self._squares: list[Any] = [None for _ in self.topics_]

    def _nearest(self, i: int, x: Rows) -> tuple[int, float]:
        """The place of the nearest relevant document of topic i, and how far below b it is."""
        engine = self._engines[i]
        if engine is None:
            return 0, LEAST_B
        store: Any = engine.mover.store
        rows = self._units[i].parts
        if self._squares[i] is None:
            self._squares[i] = sparse_rows.quadratics(rows, store.lower)
        place, distance = sparse_rows.nearest(rows, self._squares[i], x.parts, store.lower)
        return place, engine.mover.b - distance

    def _margins(self, raw: Rows, unit: Rows) -> list[float]:
        return [
            self._nearest(i, unit)[1] - self._thetas[i].value if len(self._units[i]) else -np.inf
            for i in range(len(self.topics_))
        ]

    def _learn(self, i: int, id: str, raw: Rows, unit: Rows, relevant: bool) -> None:
        if len(self._units[i]):
            self._compare(i, unit, 1.0 if relevant else -1.0)
        if relevant:
            self._relevant[i] = self._relevant[i].joined(raw)
            self._units[i] = self._units[i].joined(unit)
            if self.max_documents is not None and len(self._relevant[i]) > self.max_documents:
                self._relevant[i], self._units[i] = self._relevant[i][1:], self._units[i][1:]
            self._squares[i] = None

    def _compare(self, i: int, x: Rows, y: float) -> None:
        """POLA's step for the pair of x and the nearest relevant document."""
        place, margin = self._nearest(i, x)
        if self.thresholds == "auto":
            self._thetas[i].add(margin, y > 0)
        if y * margin >= 1.0:
            return
        engine = self._engines[i] = self._engines[i] or self._engine()
        V = x.dense() - self._units[i][place : place + 1].dense()
        sign, one = np.array([y]), np.ones(1)
        with few_threads(V.shape[1]), engine.whole():
            engine.learn(Directions(V, V, -sign, sign, one, one))
        self._squares[i] = None

    def _state(self) -> State:
        sizes = np.array([len(rows) for rows in self._relevant], dtype=np.int64)
        state = State({"sizes": sizes})
        if self.thresholds == "auto":
            state.add("thetas", thresholds_state(self._thetas))
        state.add("relevant", stacked(self._relevant, self._topics.n_features).state())
        for i, engine in enumerate(self._engines):
            if engine is not None:
                state.add(f"engine{i}", engine.state())
        return state

    def _restore(self, saved: Saved) -> None:
        n, d = len(self.topics_), self._topics.n_features
        sizes = saved.array("sizes", n, dtypes=["int64"])
        rows = Rows.restore(saved.part("relevant"))
        right = np.all(sizes >= 0) and sizes.sum() == len(rows) and rows.n_features == d
        saved.check(bool(right), "relevant documents must be as many as there are")
        ends = np.cumsum(sizes)
        self._relevant = [rows[e - s : e] for s, e in zip(sizes, ends, strict=True)]
        self._engines = [None for _ in range(n)]
        for i in range(n):
            if saved.has(f"engine{i}"):
                engine = Online.restore(saved.part(f"engine{i}"), RankOneMover)
                mover: Any = engine.mover
                right = mover.store.shape == (d, d) and mover.psd == "each"
                saved.check(right, "matrices must be PSD, with the features of the topics")
                self._engines[i] = engine
        self._thetas = [BalancedThreshold(self.recent) for _ in range(n)]
        if self.thresholds == "auto":
            restore_thresholds(saved.part("thetas"), self._thetas)
        self._reweigh()
