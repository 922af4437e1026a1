"""What an adapter could win with given pairs, before anything is learned.

A ridge regression D of the relevant items r, less the mean item, on whitened queries says which way
relevant items lie, in closed form:

    q' = q + s φ(q) D,   D = (ΦᵀΦ + λ tr(ΦᵀΦ)/m I)⁻¹ Φᵀ (R − μ).

It is fitted on three quarters of the pairs, with λ and s chosen within these, and ranks items for
the queries of the last quarter; each quarter has its turn. The start, s = 0, is among the choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.adapt.event_reading import ItemStore, check_sizes
from samewise.adapt.item_units import ItemUnits, checked_items, single
from samewise.exceptions import InvalidInputError
from samewise.kernels.pairwise import row_slices
from samewise.scores import SignTest, s_test
from samewise.supervision.supervision_checks import parameter_array

FOLDS = 4
LEAST = 20
"""Pairs without which nothing can be said."""
RIDGES = (0.1, 1.0, 10.0)
SCALES = (1.0, 3.0)
CHOSEN_ON, JUDGED_ON = 250, 500
"""Pairs of a part by which λ and s are chosen, and by which the result is judged."""
MOST_ITEMS = 20_000
FULL = 0.98
"""Above this share of relevant items at the first place, little is left to be won."""


@dataclass(frozen=True)
class Headroom:
    """What a linear map learned from pairs wins over the start, by cross-validation.

    Attributes
    ----------
    start : dict of str to float
        Of the start: "precision@1", the share of queries whose relevant item comes first;
        "recall@10", that come among the first ten; "mrr", the mean of 1/rank; "auc", the mean share
        of other items that rank below the relevant one. Where a query has many relevant items of
        which the pairs name one, only the last of them says something.
    attainable : dict of str to float
        The same of the map, for queries it was not learned from.
    n_pairs : int
        By how many pairs both were judged.
    n_items : int
        Among how many items the relevant ones were ranked.
    test : SignTest
        Whether relevant items rank higher under the map more often than lower.
    """

    start: dict[str, float]
    attainable: dict[str, float]
    n_pairs: int
    n_items: int
    test: SignTest

    @property
    def sentence(self) -> str:
        """Both values, and whether an adapter will help, in words."""
        if self.start["precision@1"] >= FULL:
            word = "There is little left to be won"
        elif self.test.mark in ("≫", ">"):
            word = "An adapter is likely to help"
        else:
            word = "Do not expect an adapter to help with such pairs"
        both = {
            name: f"{100 * self.start[name]:.1f} % at the start and {100 * value:.1f} % with a map"
            for name, value in self.attainable.items()
        }
        return (
            f"{word}. Of {self.n_items:,} items, the relevant one comes first for "
            f"{both['precision@1']} learned from other pairs; among the first ten for "
            f"{both['recall@10']}. Its rank, by {self.n_pairs:,} pairs: {self.test.verdict}."
        )


def measured_headroom(
    queries: Any, relevant: Any, W: Array | None, units: ItemUnits, store: ItemStore
) -> Headroom:
    """What `LiveAdapter.headroom` returns; W is the matrix of the start."""
    Q = checked_items(queries, units.n_features, "queries").astype(np.float32)
    pool, rows = _pool(relevant, len(Q), store)
    check_sizes(Q, pool)
    if len(Q) < LEAST or len(np.unique(rows)) < 2:
        raise InvalidInputError(
            f"headroom needs at least {LEAST} pairs, with two relevant items or more. Got {len(Q)} "
            f"pairs with {len(np.unique(rows))}."
        )
    base = Q if W is None else Q @ W
    told = _Pairs(base, (Q - units.mu) @ units.L, rows, pool, pool[rows] - units.mu)
    # A query that comes twice is in one part, or it would be learned from where it is judged.
    numbers = _numbered(Q)
    if numbers.max() < FOLDS:
        raise InvalidInputError(
            f"headroom needs queries that differ, more than {FOLDS}. Got {numbers.max() + 1} "
            f"different ones among {len(Q)}."
        )
    part = numbers % FOLDS
    before, after = [], []
    for fold in range(FOLDS):
        judged = _some(np.flatnonzero(part == fold), JUDGED_ON)
        if len(judged):
            ridge, scale = _choice(told, part, fold)
            D = told.fit(part != fold, [ridge])[0]
            found = told.ranks(judged, [D], [0.0, scale])
            before.append(found[0])
            after.append(found[1])
    first, second = np.concatenate(before), np.concatenate(after)
    test = s_test(second < first, first < second)
    n = len(pool)
    return Headroom(_measures(first, n), _measures(second, n), len(first), n, test)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Queries under the start and whitened, and the rows, in a pool, of their relevant items."""

    base: Array
    whitened: Array
    rows: Indices
    pool: Array
    targets: Array

    def fit(self, which: NDArray[np.bool_], ridges: list[float]) -> list[Array]:
        """D for each λ."""
        F = self.whitened[which].astype(np.float64)
        values, V = np.linalg.eigh(F.T @ F)
        image = V.T @ (F.T @ self.targets[which])
        least = values.sum() / len(values)
        return [
            (V @ (image / (np.maximum(values, 0) + ridge * least)[:, None])).astype(np.float32)
            for ridge in ridges
        ]

    def ranks(self, which: Indices, maps: list[Array], scales: list[float]) -> NDArray[np.int64]:
        """The rank, from 0, of each relevant item under q + s φ(q) D: for each D, then each s."""
        found = np.empty((len(maps) * len(scales), len(which)), dtype=np.int64)
        for part in row_slices(len(which), 4 * len(self.pool), 2**25):
            rows = which[part]
            start = self.base[rows] @ self.pool.T
            for i, D in enumerate(maps):
                added = (self.whitened[rows] @ D) @ self.pool.T
                for j, scale in enumerate(scales):
                    S = start + np.float32(scale) * added
                    mine = np.take_along_axis(S, self.rows[rows][:, None], axis=1)
                    found[i * len(scales) + j, part] = (S > mine).sum(axis=1)
        return found


def _choice(told: _Pairs, part: Indices, fold: int) -> tuple[float, float]:
    """λ and s, by nDCG on one of the other parts after learning from the rest; the start too."""
    held = (fold + 1) % FOLDS
    judged = _some(np.flatnonzero(part == held), CHOSEN_ON)
    learned = (part != fold) & (part != held)
    if not len(judged) or not learned.any():
        return RIDGES[0], 0.0
    found = told.ranks(judged, told.fit(learned, list(RIDGES)), [0.0, *SCALES])
    best = int(np.argmax((1 / np.log2(2 + found)).mean(axis=1)))
    return RIDGES[best // (1 + len(SCALES))], (0.0, *SCALES)[best % (1 + len(SCALES))]


def _pool(relevant: Any, n: int, store: ItemStore) -> tuple[Array, Indices]:
    """The items that are ranked, and the row of each relevant one among them."""
    given = parameter_array(relevant, "relevant")
    if given.ndim not in (1, 2) or len(given) != n:
        raise InvalidInputError(
            f"relevant must have an id or a vector for each of the {n} queries. Got an array of "
            f"shape {given.shape}."
        )
    vectors: Array
    if given.ndim == 1:
        vectors = store.vectors(given.tolist())
    else:
        vectors = checked_items(given, store.n_features, "relevant").astype(np.float32)
    if store.items is not None and not callable(store.items):
        others = single(store.items[_some(np.arange(len(store.items)), MOST_ITEMS)])
        vectors = np.concatenate([vectors, others])
    numbers = _numbered(vectors)
    return vectors[np.unique(numbers, return_index=True)[1]], numbers[:n]


def _numbered(rows: Array) -> Indices:
    """A number for each row, from 0 in the order of their first occurrence; equal ones share it."""
    known: dict[bytes, int] = {}
    # −0 and 0 are equal, and have different bytes.
    return np.array([known.setdefault((row + 0.0).tobytes(), len(known)) for row in rows])


def _some(rows: Indices, most: int) -> Indices:
    """At most so many of them, evenly spaced."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def _measures(ranks: NDArray[np.int64], n_items: int) -> dict[str, float]:
    return {
        "precision@1": float((ranks < 1).mean()),
        "recall@10": float((ranks < 10).mean()),
        "mrr": float((1 / (1 + ranks)).mean()),
        "auc": float(1 - ranks.mean() / (n_items - 1)),
    }
