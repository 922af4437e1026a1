"""Labels and grades into row numbers. Here, and in `negatives`, enters all randomness there is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.forms import Mahalanobis
from samewise.kernels.neighbors import top_k
from samewise.kernels.sparse_structure import sound_rows
from samewise.supervision.supervision_checks import (
    check_one_kind,
    checked_weights,
    parameter_array,
)

PER_EXAMPLE, AT_MOST = 20, 100_000
"""Pairs or triplets sampled by default: for each example, and in all. Enough to learn from, without
an hour of learning where there are many examples of many features."""


class Nearness(Protocol):
    """What near means: a form, or what else compares all rows with all rows in blocks."""

    def blocks(self, X: Matrix, Y: Matrix) -> Iterator[tuple[slice, Array]]:
        """Rows of X, and their closeness to all rows of Y."""


def coded(
    X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None, merge: bool
) -> tuple[NDArray[np.intp], NDArray[np.float64] | None, Indices | None]:
    """Class numbers, weights, and the order to sample along; `merge` takes duplicates as one.

    The numbers are 0, 1, …, and −1 for examples of weight 0, which are never sampled.
    """
    y = np.asarray(column_or_1d(parameter_array(y, "y"), warn=True))
    check_one_kind(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise InvalidInputError(f"Unknown label type: {kind}. Give discrete class labels as y.")
    if len(y) != X.shape[0]:
        raise InvalidInputError(
            f"y must have one label for each of the {X.shape[0]} rows of X. Got {len(y)} labels."
        )
    weights = checked_weights(sample_weight, len(y), "examples")
    codes = np.unique(y, return_inverse=True)[1]
    if weights is not None:
        if not weights.any():
            raise InvalidInputError(
                "sample_weight must leave some examples in. Got a weight of zero for all of them."
            )
        codes = np.where(weights > 0, codes, -1)
    present = np.bincount(codes[codes >= 0])
    if np.count_nonzero(present) < 2:
        raise InvalidInputError(
            "Learning what is similar needs examples of at least two classes. Got one class"
            f" ({len(y)} examples; n_samples = {len(y)})."
        )
    return merge_duplicates(X, codes, weights) if merge else (codes, weights, None)


def merge_duplicates(
    X: Matrix, codes: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.intp], NDArray[np.float64] | None, Indices]:
    """Identical examples of one class become one, with their joint weight.

    Returns codes (−1 for the others), weights, and the rows in an order that depends on their
    values only: sampled along it, pairs are the same however the examples were ordered or repeated.
    """
    keys = row_keys(X)
    order = np.lexsort((codes, keys))
    before, after = order[:-1], order[1:]
    alike = np.flatnonzero((keys[before] == keys[after]) & (codes[before] == codes[after]))
    again = np.zeros(len(order), dtype=bool)
    again[alike + 1] = _equal_rows(X, before[alike], after[alike])
    if again.any():
        group = np.cumsum(~again) - 1
        mass = np.ones(len(order)) if weights is None else weights[order]
        weights = np.zeros(len(order))
        weights[order[~again]] = np.bincount(group, mass)
        codes = codes.copy()
        codes[order[again]] = -1
    return codes, weights, order


def row_keys(X: Matrix) -> NDArray[np.uint64]:
    """A number for each row: Σ_k c_k bits(x_k) modulo 2⁶⁴, equal for equal rows, dense or CSR."""
    factors = np.random.RandomState(0).randint(1, 2**63, X.shape[1], dtype=np.uint64)
    if sp.issparse(X):
        terms = _bits(X.data) * factors[X.indices]
        totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return totals[X.indptr[1:]] - totals[X.indptr[:-1]]
    rows = max(1, 2**22 // max(X.shape[1], 1))
    keys = [_bits(X[i : i + rows]) @ factors for i in range(0, X.shape[0], rows)]
    return np.concatenate([np.empty(0, np.uint64), *keys])


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    # Adding zero turns −0.0 into 0.0, whose bits are all zero, as those of what CSR leaves out.
    return (values.astype(np.float64) + 0.0).view(np.uint64)


def _equal_rows(X: Matrix, a: Indices, b: Indices) -> NDArray[np.bool_]:
    if sp.issparse(X):
        return np.asarray(abs(X[a] - X[b]).sum(axis=1)).ravel() == 0
    return np.all(X[a] == X[b], axis=1)


def pair_weights(
    weights: NDArray[np.float64] | None, *members: Indices
) -> NDArray[np.float64] | None:
    """Product of the members' weights, scaled to mean 1."""
    if weights is None:
        return None
    product = np.prod([weights[rows] for rows in members], axis=0)
    return product / product.mean() if product.size else product


class _Classes:
    """The members of each class, one after the other, each class in the given order of rows.

    A class must have two members; `what` is made of them, for the message.
    """

    def __init__(self, codes: NDArray[np.intp], order: Indices | None, what: str) -> None:
        order = np.arange(len(codes)) if order is None else order
        order = order[codes[order] >= 0]
        self.members = order[np.argsort(codes[order], kind="stable")]
        sizes = np.bincount(codes[codes >= 0])
        self.size = sizes[sizes > 0].astype(np.int64)
        self.start = np.cumsum(self.size) - self.size
        if self.size.max() < 2:
            raise InvalidInputError(
                f"{what} need a class with at least two examples. Got {len(self.size)} classes of "
                f"one example each; n_samples={len(self.members)}."
            )

    @property
    def n_similar(self) -> int:
        return int((self.size * (self.size - 1) // 2).sum())

    @property
    def n_dissimilar(self) -> int:
        n = int(self.size.sum())
        return n * (n - 1) // 2 - self.n_similar

    def similar(self, code: NDArray[np.int64]) -> tuple[Indices, Indices]:
        """The similar pairs of the given numbers in [0, n_similar)."""
        ends = np.cumsum(self.size * (self.size - 1) // 2)
        group = np.searchsorted(ends, code, side="right")
        first, second = _triangle(code - (ends - self.size * (self.size - 1) // 2)[group])
        return self.members[self.start[group] + second], self.members[self.start[group] + first]

    def dissimilar(self, code: NDArray[np.int64]) -> tuple[Indices, Indices]:
        """The dissimilar pairs of the given numbers in [0, n_dissimilar)."""
        # Members of class g against everything in later classes: size[g] · after[g] of them.
        after = self.size.sum() - self.start - self.size
        ends = np.cumsum(self.size * after)
        group = np.searchsorted(ends, code, side="right")
        row, column = np.divmod(code - (ends - self.size * after)[group], after[group])
        beyond = self.start[group] + self.size[group]
        return self.members[self.start[group] + row], self.members[beyond + column]


def _triangle(code: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number t to (i, j), j < i, in the order (1,0), (2,0), (2,1), (3,0), …"""
    i = ((1 + np.sqrt(1 + 8 * code.astype(np.float64))) / 2).astype(np.int64)
    # For large numbers the square root may be rounded up to the next i, but never below its own:
    # at the first code of each i it is an odd integer, and the errors are less than half a digit.
    i -= i * (i - 1) // 2 > code
    return i, code - i * (i - 1) // 2


def draw_pairs(
    X: Matrix,
    codes: NDArray[np.intp],
    order: Indices | None,
    n_pairs: int | None,
    strategy: str,
    n_neighbors: int,
    form: Nearness | None,
    random_state: Any,
) -> tuple[Indices, Indices]:
    """Row numbers of distinct pairs, in random order ("nearest": in the order of the examples)."""
    rng = check_random_state(random_state)
    _check_count(n_pairs, "n_pairs")
    if isinstance(strategy, str) and strategy == "nearest":
        left, right = nearest_pairs(X, codes, n_neighbors, form)
        chosen = some_of(left, order, n_pairs, rng)
        return left[chosen], right[chosen]
    if not isinstance(strategy, str) or strategy not in ("balanced", "random"):
        raise InvalidInputError(
            "The strategy must be 'balanced', 'random' or 'nearest'. Got " + repr(strategy) + "."
        )
    classes = _Classes(codes, order, "Similar pairs")
    asked = n_pairs is not None
    n_pairs = _default_count(len(classes.members)) if n_pairs is None else n_pairs
    counts = _split(rng, strategy, n_pairs, classes.n_similar, classes.n_dissimilar)
    if asked and sum(counts) < n_pairs:
        warnings.warn(
            f"{n_pairs} pairs were asked for, but only {sum(counts)} could be sampled without "
            "repeating one; ask for fewer, or make several passes over them (n_passes).",
            SamewiseWarning,
            stacklevel=3,
        )
    return _mixed_pairs(rng, classes, *counts)


def _mixed_pairs(
    rng: np.random.RandomState, classes: _Classes, n_similar: int, n_dissimilar: int
) -> tuple[Indices, Indices]:
    """So many pairs of both kinds, in random order."""
    similar = classes.similar(distinct(rng, classes.n_similar, n_similar))
    dissimilar = classes.dissimilar(distinct(rng, classes.n_dissimilar, n_dissimilar))
    left, right = np.concatenate([similar, dissimilar], axis=1)
    # A sampled pair has no first and second member: which one stands left is a coin toss.
    swap = rng.randint(0, 2, len(left)).astype(bool)
    left[swap], right[swap] = right[swap], left[swap]
    order = rng.permutation(len(left))
    return left[order], right[order]


def distinct(rng: np.random.RandomState, total: int, count: int) -> NDArray[np.int64]:
    """`count` different numbers in [0, total), every such set equally likely."""
    if 4 * count >= total:
        return rng.permutation(total)[:count]
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        more = rng.randint(0, total, count + count // 4 + 8 - len(drawn), dtype=np.int64)
        drawn = np.unique(np.concatenate([drawn, more]))
    return rng.permutation(drawn)[:count]


def _split(
    rng: np.random.RandomState, strategy: str, n_pairs: int, good: int, bad: int
) -> tuple[int, int]:
    """How many of the pairs are similar and dissimilar, where there are `good` and `bad` ones."""
    if strategy == "balanced":
        similar = min((n_pairs + 1) // 2, good)
        dissimilar = min(n_pairs - similar, bad)
        return min(n_pairs - dissimilar, good), dissimilar
    n_pairs = min(n_pairs, good + bad)
    if good + bad < 10**9:
        similar = int(rng.hypergeometric(good, bad, n_pairs))
    else:
        # NumPy's own generator stops here. With so many pairs, sampling with and without
        # replacement makes no difference.
        similar = int(min(rng.binomial(n_pairs, good / (good + bad)), good))
    return similar, n_pairs - similar


def nearest_pairs(
    X: Matrix, codes: NDArray[np.intp], n_neighbors: int, form: Nearness | None
) -> tuple[Indices, Indices]:
    """For each example its nearest of the same class and its nearest of the others.

    A class with `n_neighbors` or fewer members gives the pairs it has.
    """
    _check_count(n_neighbors, "n_neighbors", needed=True)
    near: Nearness = Mahalanobis.identity(X.shape[1]) if form is None else form
    found = []
    for rows, closeness in near.blocks(X, X):
        here = np.arange(X.shape[0])[rows]
        same = codes[here, None] == codes[None, :]
        for wanted in (same, ~same):
            usable = wanted & (codes[here, None] >= 0) & (codes[None, :] >= 0)
            usable[np.arange(len(here)), here] = False
            masked = np.where(usable, closeness, -np.inf)
            neighbors = top_k(masked, min(n_neighbors, X.shape[0]))
            real = np.take_along_axis(usable, neighbors, axis=1)
            found.append((np.broadcast_to(here[:, None], real.shape)[real], neighbors[real]))
    left, right = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.argsort(left, kind="stable")
    return left[order], right[order]


def some_of(
    first: Indices, order: Indices | None, count: int | None, rng: np.random.RandomState
) -> Indices:
    """Which of some pairs or triplets to take, at most `count`, along the order of their first."""
    chosen = np.arange(len(first))
    if order is not None:
        chosen = np.argsort(np.argsort(order)[first], kind="stable")
    _check_count(count, "The number of pairs or triplets")
    if count is not None and count < len(first):
        chosen = chosen[np.sort(rng.choice(len(first), count, replace=False))]
    return chosen


def nearest_triplets(
    X: Matrix, codes: NDArray[np.intp], n_hits: int, n_misses: int | None, form: Nearness | None
) -> tuple[Indices, Indices, Indices]:
    """Each example with each of its nearest hits and each of its nearest misses.

    Without `n_misses` the k-th hit goes with the k-th miss. An example gives what it has.
    """
    _check_count(n_hits, "n_neighbors", needed=True)
    _check_count(n_misses, "n_impostors")
    left, right = nearest_pairs(X, codes, max(n_hits, n_misses or 0), form)
    hit = codes[left] == codes[right]
    # The pairs of an example follow each other: its hits, nearest first, then its misses.
    new = (left[1:] != left[:-1]) | (hit[1:] != hit[:-1])
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(left), 1), dtype=bool), new]))
    rank = np.arange(len(left)) - np.repeat(starts, np.diff(starts, append=len(left)))
    n_misses_used = n_hits if n_misses is None else n_misses
    table = np.full((2, X.shape[0], max(n_hits, n_misses_used)), -1)
    for kind, wanted, most in ((0, hit, n_hits), (1, ~hit, n_misses_used)):
        kept = wanted & (rank < most)
        table[kind, left[kept], rank[kept]] = right[kept]
    hits, misses = table[0, :, :n_hits], table[1, :, :n_misses_used]
    if n_misses is not None:
        hits, misses = np.repeat(hits, n_misses, axis=1), np.tile(misses, n_hits)
    real = (hits >= 0) & (misses >= 0)
    if not real.any():
        raise InvalidInputError(
            "Nearest triplets need a class with at least two examples. Got classes of one example "
            f"each; n_samples={X.shape[0]}."
        )
    anchor = np.broadcast_to(np.arange(X.shape[0])[:, None], real.shape)
    return anchor[real], hits[real], misses[real]


def draw_quadruplets(
    codes: NDArray[np.intp], order: Indices | None, count: int | None, rng: np.random.RandomState
) -> tuple[Indices, Indices, Indices, Indices]:
    """Random similar pairs beside random dissimilar ones, all of them distinct."""
    _check_count(count, "n_quadruplets")
    classes = _Classes(codes, order, "Quadruplets")
    count = _default_count(len(classes.members)) if count is None else count
    count = min(count, classes.n_similar, classes.n_dissimilar)
    near = classes.similar(distinct(rng, classes.n_similar, count))
    return *near, *classes.dissimilar(distinct(rng, classes.n_dissimilar, count))


def draw_triplets(
    codes: NDArray[np.intp],
    order: Indices | None,
    n_triplets: int | None,
    random_state: Any,
) -> tuple[Indices, Indices, Indices]:
    """Anchor uniform, positive uniform in its class, negative uniform outside it."""
    rng = check_random_state(random_state)
    _check_count(n_triplets, "n_triplets")
    classes = _Classes(codes, order, "Triplets")
    n = len(classes.members)
    place = np.flatnonzero(np.repeat(classes.size, classes.size) > 1)
    n_triplets = _default_count(n) if n_triplets is None else n_triplets
    anchor = place[rng.randint(0, len(place), n_triplets)]
    group = np.repeat(np.arange(len(classes.size)), classes.size)[anchor]
    start, size = classes.start[group], classes.size[group]
    # Uniform over the class without the anchor, and over everything without the class.
    positive = start + rng.randint(0, np.maximum(size - 1, 1))
    positive += positive >= anchor
    negative = rng.randint(0, n - size)
    negative += np.where(negative >= start, size, 0)
    return classes.members[anchor], classes.members[positive], classes.members[negative]


def checked_grades(grades: Any, n_rows: int, n_columns: int) -> sp.coo_array:
    """Relevance grades as a sparse matrix of the expected shape."""
    if not sp.issparse(grades):
        grades = np.atleast_2d(parameter_array(grades, "grades", np.float64))
    judged = sp.coo_array(sound_rows(grades, "grades"))
    if judged.shape != (n_rows, n_columns):
        raise InvalidInputError(
            f"grades must have shape ({n_rows}, {n_columns}), a row for each query and a column "
            f"for each item. Got {judged.shape}."
        )
    if not np.all(np.isfinite(judged.data)):
        raise InvalidInputError("grades must be finite. Got NaN or infinity.")
    return judged


def draw_graded(
    grades: sp.csr_array, n_triplets: int | None, part: float, rng: np.random.RandomState
) -> tuple[tuple[Indices, Indices, Indices], NDArray[np.bool_]]:
    """Query and positive uniform over the positive grades, negative uniform below that grade.

    Where some of the items below were judged, that part of the negatives is uniform over those;
    returned are also which.
    """
    _check_count(n_triplets, "n_triplets")
    n_queries = grades.shape[0]
    n_triplets = _default_count(n_queries) if n_triplets is None else n_triplets
    n_good = np.array([len(_graded(grades, query)[1]) for query in range(n_queries)])
    if not n_good.any():
        raise InvalidInputError(
            "grades must hold, for some query, an item of a positive grade above another item's. "
            "Got none."
        )
    drawn = rng.multinomial(n_triplets, n_good / n_good.sum())
    anchor = np.repeat(np.arange(n_queries), drawn)
    positive, negative = np.empty((2, n_triplets), dtype=np.intp)
    was_judged = np.zeros(n_triplets, dtype=bool)
    for query in np.flatnonzero(drawn):
        mine = slice(*np.searchsorted(anchor, [query, query + 1]))
        ranked, good, n_lower = _graded(grades, int(query))
        pick = rng.randint(0, len(good), drawn[query])
        positive[mine], negative[mine] = good[pick], ranked[rng.randint(0, n_lower[pick])]
        judged = ranked[np.isin(ranked, grades.indices[slice(*grades.indptr[query : query + 2])])]
        # Judged items of a lower grade than each positive's: they come first among the judged.
        place = np.empty(grades.shape[1], dtype=np.intp)
        place[ranked] = np.arange(len(ranked))
        n_judged = np.searchsorted(place[judged], n_lower)[pick]
        if part > 0 and n_judged.any():
            taken = (n_judged > 0) & (rng.random_sample(len(pick)) < part)
            other = judged[rng.randint(0, np.maximum(n_judged, 1))]
            negative[mine] = np.where(taken, other, negative[mine])
            was_judged[mine] = taken
    order = rng.permutation(n_triplets)
    return (anchor[order], positive[order], negative[order]), was_judged[order]


def _graded(grades: sp.csr_array, query: int) -> tuple[Indices, Indices, Indices]:
    """Items by rising grade, those that can be a positive, and how many have a lower grade each."""
    row = grades[[query]].toarray().ravel()
    ranked = np.argsort(row, kind="stable")
    n_lower = np.searchsorted(row[ranked], row, side="left")
    good = np.flatnonzero((row > 0) & (n_lower > 0))
    return ranked, good, n_lower[good]


def _default_count(n: int) -> int:
    return min(PER_EXAMPLE * n, AT_MOST)


def _check_count(count: int | None, name: str, needed: bool = False) -> None:
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if (needed or count is not None) and (not whole or cast(int, count) < 1):
        raise InvalidInputError(f"{name} must be an integer of at least 1. Got {count!r}.")
