"""What workers do for LMNN: tasks without side effects, on the rows of a part.

Rows have the numbers of `ClassLayout`. A part has rows of its own, whose terms it sums; rows of
other parts that these terms need, targets and impostors, are copied to it. Copies have no targets,
and so no terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.learners.batch.lmnn.impostors import Candidates, search, search_between
from samewise.learners.batch.lmnn.objective import (
    Hinge,
    HingeEvaluation,
    LMNNObjective,
    Watched,
    target_scatter,
)
from samewise.learners.batch.points_by_class import Classes, nearest_rows, nearest_targets
from samewise.scale.class_layout import ClassLayout
from samewise.scale.row_blocks import RowBlock
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers

ALONE = Workers(1, None)

Numbers = NDArray[np.int64]


class NumberedRows(NamedTuple):
    """Rows and their numbers, which ascend."""

    numbers: Numbers
    X: Array


class NearestRows(NamedTuple):
    """The nearest rows of each of a part's rows: squared distances and numbers, −1 for none."""

    squares: NDArray[np.float64]
    numbers: Numbers


class Targeted(NamedTuple):
    """A part's own rows and their targets.

    Attributes
    ----------
    rows : NumberedRows
        Its own and those of the targets.
    own : array of shape (n_own,)
        Where its own are.
    targets : array of shape (n, k)
        Where targets are; −1 for none, and for rows that are not its own.
    labels : array of shape (n,)
        Class numbers.
    """

    rows: NumberedRows
    own: NDArray[np.intp]
    targets: NDArray[np.int32]
    labels: NDArray[np.intp]


class Mapped(NamedTuple):
    """A part's own rows under a map, in float32, and how far they reach."""

    Z: NDArray[np.float32]
    reach: NDArray[np.float64]
    bounds: Indices


class Searched(NamedTuple):
    """A part whose candidate pairs are known."""

    rows: NumberedRows
    own: NDArray[np.intp]
    objective: LMNNObjective

    @property
    def n_pairs(self) -> int:
        """How many pairs have their first row here, so that all parts count each pair once."""
        return int(np.diff(self.objective.candidates.indptr)[self.own].sum())


class Impostors(NamedTuple):
    """Pairs of a part with rows of another, and these rows.

    Attributes
    ----------
    own : array of shape (n_pairs,)
        Which of the part's own rows.
    others : array of shape (n_pairs,)
        Which of the other rows.
    rows : NumberedRows
        The other rows, each once.
    """

    own: Indices
    others: Indices
    rows: NumberedRows


def sorted_rows(
    block: RowBlock, known: NDArray[Any], layout: ClassLayout, part: int
) -> NumberedRows:
    """A part's rows, by class."""
    assert block.y is not None
    order = np.argsort(np.searchsorted(known, block.y), kind="stable")
    return NumberedRows(layout.numbers(part), np.ascontiguousarray(block.X[order]))


def under_map(rows: NumberedRows, components: Matrix64) -> NumberedRows:
    """The rows, mapped."""
    return NumberedRows(rows.numbers, rows.X @ components.T.astype(rows.X.dtype))


def near(rows: NumberedRows, others: NumberedRows, k: int, layout: ClassLayout) -> NearestRows:
    """The k nearest of other rows of the same class, for each row of a part."""
    labels, kinds = layout.labels(rows.numbers), layout.labels(others.numbers)
    found = np.full((len(rows.X), k), -1, dtype=np.int64)
    if rows.numbers is others.numbers or np.array_equal(rows.numbers, others.numbers):
        found[:] = nearest_targets(rows.X, Classes(labels, len(layout.counts.T)), k, ALONE)
    else:
        for kind in np.intersect1d(labels, kinds):
            mine = slice(*np.searchsorted(labels, (kind, kind + 1)))
            first, end = np.searchsorted(kinds, (kind, kind + 1))
            most = min(k, int(end - first))
            found[mine, :most] = first + nearest_rows(
                rows.X[mine], others.X[first:end], most, ALONE
            )
    squares = np.full(found.shape, np.inf)
    for j in range(k):
        there = np.flatnonzero(found[:, j] >= 0)
        V = rows.X[there].astype(np.float64) - others.X[found[there, j]]
        squares[there, j] = np.einsum("ij,ij->i", V, V)
    return NearestRows(squares, np.where(found < 0, -1, others.numbers[found]))


def nearest_of_all(parts: list[NearestRows], k: int) -> Numbers:
    """The k nearest rows of all parts; of equal ones, those of the smaller numbers."""
    squares = np.column_stack([part.squares for part in parts])
    numbers = np.column_stack([part.numbers for part in parts])
    order = np.lexsort((numbers, squares), axis=1)[:, :k]
    return np.take_along_axis(numbers, order, axis=1)


def wanted(rows: NumberedRows, numbers: Numbers, layout: ClassLayout, part: int) -> NumberedRows:
    """Those of a part's rows that have one of the numbers."""
    chosen = np.unique(numbers)
    places = layout.places(chosen[chosen >= 0], part)
    return NumberedRows(rows.numbers[places], rows.X[places])


def targeted(
    rows: NumberedRows,
    targets: Numbers,
    copies: list[NumberedRows],
    layout: ClassLayout,
    mean: NDArray[np.float64],
    unit: float,
    dtype: type,
) -> Targeted:
    """A part with the rows of its targets, centered and divided by the largest value."""
    both = together([rows, *copies])
    own = np.searchsorted(both.numbers, rows.numbers)
    places = np.full((len(both.X), targets.shape[1]), -1, dtype=np.int32)
    places[own] = np.where(targets < 0, -1, np.searchsorted(both.numbers, targets))
    S: Array = ((both.X - mean) / unit).astype(dtype)
    return Targeted(NumberedRows(both.numbers, S), own, places, layout.labels(both.numbers))


def together(some: list[NumberedRows]) -> NumberedRows:
    """NumberedRows, each once, by their numbers."""
    numbers, first = np.unique(np.concatenate([rows.numbers for rows in some]), return_index=True)
    return NumberedRows(numbers, np.concatenate([rows.X for rows in some])[first])


def scatter(part: Targeted) -> tuple[Matrix64, int]:
    """Σ vvᵀ over the targets, and how many these are."""
    S = target_scatter(part.rows.X, part.targets, ALONE)
    return S, int(np.count_nonzero(part.targets >= 0))


def whitened(part: Targeted, whitener: Matrix64) -> Targeted:
    """The same part in other coordinates."""
    X = part.rows.X @ whitener.astype(part.rows.X.dtype)
    return part._replace(rows=NumberedRows(part.rows.numbers, X))


def covariance(part: Targeted) -> tuple[Matrix64]:
    """XᵀX of the part's own rows."""
    X = part.rows.X[part.own]
    return ((X.T @ X).astype(np.float64),)


def objective_of(
    rows: NumberedRows, targets: NDArray[np.int32], labels: Indices, mu: float, hinge: Hinge
) -> LMNNObjective:
    """The loss of the rows that have targets."""
    classes = Classes(labels, int(labels.max(initial=-1)) + 1)
    return LMNNObjective(rows.X, targets, classes, mu, hinge, ALONE)


def mapped(part: Targeted, L: Matrix64, slack: float, layout: ClassLayout) -> Mapped:
    """The part's own rows under L, and (1 + slack) times how far they reach."""
    objective = objective_of(part.rows, part.targets, part.labels, 0.0, Hinge.smooth(1.0))
    Z, furthest = objective.reaches(L)
    sizes = np.bincount(part.labels[part.own], minlength=layout.counts.shape[1])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return Mapped(Z[part.own].astype(np.float32), (1 + slack) * furthest[part.own], bounds)


def pairs_within(part: Mapped) -> Candidates:
    """The pairs of a part that can matter."""
    sizes = np.diff(part.bounds)
    classes = Classes(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    return search(part.Z, part.reach, classes, ALONE)


def pairs_between(a: Mapped, b: Mapped) -> tuple[Indices, Indices]:
    """The pairs of two parts that can matter."""
    return search_between(a.Z, a.reach, a.bounds, b.Z, b.reach, b.bounds)


def impostors(part: Targeted, pairs: tuple[Indices, ...], side: int) -> Impostors:
    """What the other part needs of this one, which is the first or the second of its pairs."""
    wanted = np.zeros(len(part.own), dtype=bool)
    wanted[pairs[side]] = True
    chosen = part.own[wanted]
    rows = NumberedRows(part.rows.numbers[chosen], part.rows.X[chosen])
    return Impostors(pairs[1 - side], (np.cumsum(wanted) - 1)[pairs[side]], rows)


def searched(
    part: Targeted,
    within: Candidates,
    others: list[Impostors],
    settings: tuple[float, Hinge, ClassLayout],
) -> Searched:
    """A part with its candidate pairs, and copies of the rows in them."""
    mu, hinge, layout = settings
    both = together([part.rows, *(more.rows for more in others)])
    at = np.searchsorted(both.numbers, part.rows.numbers)
    targets = np.full((len(both.X), part.targets.shape[1]), -1, dtype=np.int32)
    targets[at] = np.where(part.targets < 0, -1, at[part.targets])
    own = at[part.own]
    a = np.repeat(np.arange(len(own)), np.diff(within.indptr))
    places = [np.searchsorted(both.numbers, more.rows.numbers) for more in others]
    right = [place[more.others] for place, more in zip(places, others, strict=True)]
    objective = objective_of(both, targets, layout.labels(both.numbers), mu, hinge)
    objective.candidates = candidates(
        len(both.X),
        np.concatenate([own[a], *(own[more.own] for more in others)]),
        np.concatenate([own[within.columns], *right]),
    )
    return Searched(both, own, objective)


def candidates(n: int, a: Indices, b: Indices) -> Candidates:
    """Pairs of n rows, each once, that of the smaller number first."""
    once = np.ones(len(a), dtype=bool)
    pairs = sp.csr_array((once, (np.minimum(a, b), np.maximum(a, b))), shape=(n, n))
    return Candidates(pairs.indptr.astype(np.int64), pairs.indices.astype(np.int32))


def union(one: Searched, other: Searched) -> Searched:
    """A part with the pairs of both searches."""
    both = together([one.rows, other.rows])
    mine, known = one.objective, other.objective
    places = [np.searchsorted(both.numbers, part.rows.numbers) for part in (one, other)]
    targets = np.full((len(both.X), mine.targets.shape[1]), -1, dtype=np.int32)
    targets[places[0]] = np.where(mine.targets < 0, -1, places[0][mine.targets])
    labels = np.empty(len(both.X), dtype=np.intp)
    for part, at in zip((mine, known), places, strict=True):
        labels[at] = np.repeat(np.arange(len(part.classes.sizes)), part.classes.sizes)
    objective = objective_of(both, targets, labels, mine.mu, mine.hinge)
    left, right = (
        np.concatenate(ends)
        for ends in zip(
            *(
                _pairs_of(part.candidates, at)
                for part, at in zip((mine, known), places, strict=True)
            ),
            strict=True,
        )
    )
    objective.candidates = candidates(len(both.X), left, right)
    own = np.searchsorted(both.numbers, one.rows.numbers[one.own])
    return Searched(both, own, objective)


def _pairs_of(pairs: Candidates, places: Indices) -> tuple[Indices, Indices]:
    rows = np.repeat(np.arange(len(pairs.indptr) - 1), np.diff(pairs.indptr))
    return places[rows], places[pairs.columns]


def evaluated(
    part: Searched, L: Matrix64, hinge: Hinge, by_M: bool, look: Indices
) -> tuple[HingeEvaluation, int, Watched, float]:
    """The part's terms and their derivative, the pairs, and some anchors with their Σ φ′.

    Parameters
    ----------
    look : array
        The numbers of anchors to look at; those of other parts are passed over.
    """
    objective = part.objective
    objective.hinge = hinge
    value = objective.scatter(L) if by_M else objective.value_and_gradient(L)
    own = part.rows.numbers[part.own]
    anchors = part.own[np.flatnonzero(np.isin(own, look))]
    kind = np.searchsorted(objective.classes.bounds, anchors, side="right") - 1
    watched, slope = objective.watched(anchors, kind)
    return value, part.n_pairs, watched, slope


def slopes_of_all(
    part: Targeted, L: Matrix64, watched: list[Watched], hinge: Hinge
) -> tuple[float]:
    """Σ φ′(h) over the triplets of some anchors with an impostor of this part."""
    Z = part.rows.X[part.own] @ L.T.astype(part.rows.X.dtype)
    kinds, total = part.labels[part.own], 0.0
    for anchors in watched:
        if len(anchors.Z):
            h = anchors.hinges(Z, kinds)[2]
            total += float(hinge.slopes(h[h > 0]).sum())
    return (total,)


class Sampled(NamedTuple):
    """What a part has of the sample by which a start is chosen.

    Attributes
    ----------
    anchors : array of shape (n,)
        Numbers.
    X : array of shape (n, d)
    has : array of shape (n, k)
        Which targets there are.
    near : array of shape (n, k, d)
        The targets.
    others : NumberedRows
    """

    anchors: Numbers
    X: Array
    has: NDArray[np.bool_]
    near: Array
    others: NumberedRows


def sampled(part: Targeted, anchors: Numbers, others: Numbers) -> Sampled:
    """Those of the anchors and others that are the part's own."""
    rows, own = part.rows, part.rows.numbers[part.own]
    mine = part.own[np.flatnonzero(np.isin(own, anchors))]
    rest = part.own[np.flatnonzero(np.isin(own, others))]
    near = part.targets[mine]
    return Sampled(
        rows.numbers[mine],
        rows.X[mine],
        near >= 0,
        rows.X[near],
        NumberedRows(rows.numbers[rest], rows.X[rest]),
    )


def pull_scatter(part: Targeted) -> tuple[Matrix64]:
    """Σ vvᵀ over the targets."""
    return (scatter(part)[0],)
