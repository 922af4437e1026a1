"""LMNN of rows in parts."""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.kernels.lmnn_loops import Costs
from samewise.learners.batch.lmnn import target_checks as checks
from samewise.learners.batch.lmnn.estimator import FIELDS, LMNN
from samewise.learners.batch.lmnn.minimize import LMNNSolution
from samewise.learners.batch.lmnn.objective import (
    SLACK,
    Hinge,
    HingeEvaluation,
    Watched,
    looked_at,
)
from samewise.learners.batch.lmnn.problem import LMNNBasis
from samewise.learners.batch.lmnn.start import StartSample, start_rows
from samewise.learners.class_checks import numbered, warn_of_small_classes
from samewise.learners.constraints import check_at_most
from samewise.learners.learner import Learner
from samewise.scale import lmnn_parts as tasks
from samewise.scale.class_layout import ClassLayout
from samewise.scale.cluster import Parts
from samewise.scale.dask_learner import DaskLearner
from samewise.scale.moments import label_moments, merged
from samewise.scale.row_blocks import RowBlocks
from samewise.solvers.evaluation import Matrix64

WHOLE = "parts are searched as a whole"


class DaskLMNN(DaskLearner[LMNN]):
    """`LMNN` of data in parts: the loss is a sum over points, and each part has some of them.

    A part holds its own rows, and copies of rows of other parts that its terms need: targets, and
    points that are in reach ("ghosts", see `ghost_fraction_`). The solver is that of `LMNN`, with a
    loss and a gradient that differ by rounding only. A search compares the mapped rows of every two
    parts, once, in float32.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `LMNN`; max_anchors, targets and validation_fraction must be None.

    Attributes
    ----------
    ghost_fraction_ : float
        How many copies of rows a part had in the last search, on average, over the number of all
        rows. Parts whose rows are near each other need fewer, see `partition`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise.scale import DaskLMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(75, 4)), da.from_array(y, chunks=75)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     lmnn = DaskLMNN(client).fit(X, y).to_local()
    >>> lmnn.converged_
    True
    """

    _plain: ClassVar[type[Learner]] = LMNN
    _refused: ClassVar[dict[str, tuple[Any, str]]] = {
        "max_anchors": (None, "to learn from fewer points, give fewer rows"),
        "targets": (None, "rows of parts have no numbers to name them by"),
        "validation_fraction": (None, "no rows are held out"),
    }
    ghost_fraction_: float

    def _learn(self, learner: LMNN, blocks: RowBlocks) -> None:
        held = blocks.held()
        moments = held.then(label_moments).values()
        known = merged(moments)
        n, d, dtype = known.shape
        learner.n_features_in_ = d
        if n <= d:
            raise InvalidInputError(
                f"DaskLMNN is for more rows than features. Got {n} rows of {d} features; LMNN "
                "learns from them on one machine."
            )
        learner.classes_, _ = numbered(np.repeat(known.keys, np.minimum(known.counts, 2)), "LMNN")
        checks.rank(learner.n_components, learner.solver)
        check_at_most("n_components", learner.n_components, d, "the number of features")
        start = learner._given_start(learner.n_components)
        labels = np.repeat(
            np.arange(len(known.counts)), np.minimum(known.counts, learner.n_neighbors + 1)
        )
        warn_of_small_classes(labels, learner.n_neighbors, 3)
        counts = np.zeros((len(held), len(known.keys)), dtype=np.int64)
        for part, given in enumerate(moments):
            counts[part, np.searchsorted(known.keys, given.keys)] = given.counts
        mean = known.mean
        unit = float(max((known.high - mean).max(), (mean - known.low).max())) or 1.0
        problems = PartProblems(
            held, known.keys, ClassLayout(counts), (mean, unit), learner, learner._dtype(n * d)
        )
        with learner._log(*FIELDS) as log:
            learner._learn(problems, start, log, dtype)
        self.ghost_fraction_ = problems.ghosts / (len(held) * n)


class PartProblems:
    """The problems of rows in parts.

    Parameters
    ----------
    held : Parts of RowBlock
    known : array
        The labels.
    layout : ClassLayout
    scale : tuple
        The mean of all rows, and the largest value when it is subtracted.
    learner : LMNN
        Its parameters count.
    dtype : float32 or float64
        Type of the work.
    """

    factor = 1.0

    def __init__(
        self,
        held: Parts,
        known: NDArray[Any],
        layout: ClassLayout,
        scale: tuple[NDArray[np.float64], float],
        learner: LMNN,
        dtype: type,
    ) -> None:
        submit = held.client.submit
        self._rows = Parts(
            held.client,
            [
                submit(tasks.sorted_rows, block, known, layout, part, pure=False)
                for part, block in enumerate(held.futures)
            ],
        )
        self._layout, self._scale, self._dtype = layout, scale, dtype
        self._k = min(learner.n_neighbors, layout.n)
        self._settings = learner.push_weight, learner._hinge
        self._objective: PartObjective | None = None

    def __call__(self, under: Matrix64 | None) -> PartProblem:
        """The problem with the nearest targets under a map."""
        rows, submit, layout = self._rows, self._rows.client.submit, self._layout
        seen = rows if under is None else rows.then(tasks.under_map, under)
        parts = []
        for mine, own in zip(seen.futures, rows.futures, strict=True):
            near = [
                submit(tasks.near, mine, other, self._k, layout, pure=False)
                for other in seen.futures
            ]
            targets = submit(tasks.nearest_of_all, near, self._k, pure=False)
            copies = [
                submit(tasks.wanted, other, targets, layout, part, pure=False)
                for part, other in enumerate(rows.futures)
                if other is not own
            ]
            parts.append(
                submit(
                    tasks.targeted,
                    own,
                    targets,
                    copies,
                    layout,
                    *self._scale,
                    self._dtype,
                    pure=False,
                )
            )
        problem = PartProblem(Parts(rows.client, parts), layout, self._scale[1], *self._settings)
        self._objective = problem.objective
        return problem

    def estimate(
        self, problem: Any, found: LMNNSolution, under: Matrix64 | None
    ) -> tuple[float, float]:
        """The loss, which is over all triplets, and no error."""
        return found.value.loss, 0.0

    @property
    def ghosts(self) -> int:
        """Copies of rows in the last search."""
        assert self._objective is not None
        return self._objective.ghosts()


class PartProblem(LMNNBasis):
    """The objective of parts, in coordinates in which targets have unit scatter."""

    def __init__(
        self, parts: Parts, layout: ClassLayout, unit: float, mu: float, hinge: Hinge
    ) -> None:
        scatter, n_targets = parts.total(tasks.scatter)
        super().__init__(scatter / (n_targets or 1.0), unit)
        white = parts.then(tasks.whitened, self.whitener)
        self.objective: PartObjective = PartObjective(white, layout, mu, hinge)


class PartPairs:
    """The candidate pairs of all parts: which each of them evaluates.

    Parameters
    ----------
    parts : Parts of Searched
    """

    def __init__(self, parts: Parts) -> None:
        self.parts, self.n = parts, 0

    def __len__(self) -> int:
        return self.n

    def union(self, other: PartPairs) -> PartPairs:
        """The pairs of both."""
        submit, pairs = (
            self.parts.client.submit,
            zip(self.parts.futures, other.parts.futures, strict=True),
        )
        found = PartPairs(
            Parts(
                self.parts.client,
                [submit(tasks.union, one, two, pure=False) for one, two in pairs],
            )
        )
        found.n = max(self.n, other.n)
        return found


class PartObjective:
    """ε as a sum over parts, with the candidates of each; see `LMNNObjective`."""

    costs: Costs | None = None

    def __init__(self, parts: Parts, layout: ClassLayout, mu: float, hinge: Hinge) -> None:
        self._parts, self._layout = parts, layout
        self.mu, self.hinge = mu, hinge
        (self.covariance,) = parts.total(tasks.covariance)
        sizes = layout.counts.sum(axis=0)
        self._anchors = np.flatnonzero(np.repeat(sizes > 1, sizes))
        self.slack, self._looks = SLACK, 0
        self.candidates: PartPairs
        self._watched: list[Watched] = []

    def search(self, L: Matrix64) -> None:
        """Find all pairs that matter at L, and those that nearly do."""
        turn = np.linalg.eigh(L @ self.covariance @ L.T)[1][:, ::-1]
        parts, submit = self._parts, self._parts.client.submit
        mapped = parts.then(tasks.mapped, turn.T @ L, self.slack, self._layout)
        within = mapped.then(tasks.pairs_within)
        others: list[list[Any]] = [[] for _ in parts.futures]
        for a, b in combinations(range(len(parts)), 2):
            pairs = submit(tasks.pairs_between, mapped.futures[a], mapped.futures[b], pure=False)
            for here, there in ((a, b), (b, a)):
                side = int(there == b)
                others[here].append(
                    submit(tasks.impostors, parts.futures[there], pairs, side, pure=False)
                )
        settings = self.mu, self.hinge, self._layout
        known = zip(parts.futures, within.futures, others, strict=True)
        self.candidates = PartPairs(
            Parts(
                parts.client,
                [submit(tasks.searched, *given, settings, pure=False) for given in known],
            )
        )

    def value_and_gradient(self, L: Matrix64) -> HingeEvaluation:
        """ε over the candidates, and ∂ε/∂L."""
        return self._evaluated(L, by_M=False)

    def scatter(self, L: Matrix64) -> HingeEvaluation:
        """ε over the candidates, and ∂ε/∂M."""
        return self._evaluated(L, by_M=True)

    def _evaluated(self, L: Matrix64, by_M: bool) -> HingeEvaluation:
        # What `missing` will look at next.
        look = self._anchors[looked_at(self._looks + 1, len(self._anchors))]
        parts = self.candidates.parts.then(tasks.evaluated, L, self.hinge, by_M, look)
        values, n_pairs, watched, slopes = zip(*parts.values(), strict=True)
        self.candidates.n = sum(n_pairs)
        self._watched, self._known, self._last = list(watched), sum(slopes), L
        return HingeEvaluation(
            *(
                sum(getattr(value, name) for value in values)
                for name in ("loss", "gradient", "pushed", "slope", "active")
            )
        )

    def missing(self) -> float:
        """The part of Σ φ′(h) at the last L that is not among the candidates, on a sample."""
        self._looks += 1
        (slope,) = self._parts.total(tasks.slopes_of_all, self._last, self._watched, self.hinge)
        return 1 - self._known / slope if slope > 0 else 0.0

    def pull_scatter(self) -> Matrix64:
        """(1−μ) Σ (x_i − x_j)(x_i − x_j)ᵀ over the targets j of i."""
        (S,) = self._parts.total(tasks.pull_scatter)
        return (1 - self.mu) * S

    def start_sample(self) -> StartSample:
        """Some anchors and other points, by which a start is chosen."""
        anchors, others = start_rows(self._anchors, self._layout.n)
        parts = self._parts.then(tasks.sampled, anchors, others).values()
        near = np.concatenate([part.near for part in parts])
        numbers = np.concatenate([part.anchors for part in parts])
        order = np.argsort(numbers)
        rows = tasks.together([part.others for part in parts])
        has = np.concatenate([part.has for part in parts])[order]
        labels, kinds = self._layout.labels(anchors), self._layout.labels(others)
        X = np.concatenate([part.X for part in parts])[order]
        return StartSample(
            X,
            has,
            near[order].reshape(-1, X.shape[1]),
            rows.X,
            labels[:, None] == kinds,
            None,
            int(others[1]) if len(others) > 1 else 1,
        )

    def ghosts(self) -> int:
        """Copies of rows that parts have for the candidates and targets."""
        (n,) = self.candidates.parts.total(_n_ghosts)
        return n


def _n_ghosts(part: tasks.Searched) -> tuple[int]:
    return (len(part.rows.numbers) - len(part.own),)
