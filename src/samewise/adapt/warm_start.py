"""A start from pairs of a query and an item that is relevant to it.

D begins at zero and takes a step for each block of pairs (q_i, p_i), i = 1 … 100,

    D += η Σ_i phi(q_i) (p_i − Σ_j w_ij p_j)ᵀ,   w_ij ∝ exp(8/g · (q_i + phi(q_i) D)·p_j),

where j runs over the relevant items of the block, filled up to 100 from the item store: what scores
highest under the current form counts most as a negative. Items that are as similar to p_i as the
median item to its nearest one are no negatives, for they may be relevant too. The result is the
mean of D that gives the newest the weight 4/(t + 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.adapt.event_reading import ItemStore, check_sizes, read_items
from samewise.adapt.guard import PLACES
from samewise.adapt.item_units import SAMPLE, ItemUnits, checked_items, single
from samewise.adapt.linear_part import NEWEST
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.scores import SignTest, s_test

BLOCK = 100
SHARPNESS = 8.0
STEP = 0.07
"""Pairs of a block; the softmax and the step η in units of g (and of the items' squared length)."""
STEPS, MOST_PASSES = 200, 20
"""Passes are so many that about 200 steps are taken, at least two and at most twenty."""
HELD_OUT, MOST_HELD_OUT = 0.2, 1000
"""The share of queries that is held out, one half to stop by and the other to test, and their
most."""
LEAST = 20
SHORTEST = 1e-6
"""The least mean squared length of relevant items, in units of g; steps are divided by it."""
MEASURES = ("nDCG", "MRR", "recall@10", "first")


@dataclass(frozen=True)
class WarmStart:
    """What `LiveAdapter.warm_start` found on queries that were held out.

    Attributes
    ----------
    n_queries, n_tested : int
        Queries that were given, and those of them that neither taught nor said when to stop.
    n_passes : int
        Passes over the pairs; 0 if none ranked relevant items better than the start.
    before, after : dict of str to float
        Under the start and under what was learned, of the rank r of the best relevant item: the
        means of 1/log₂(1 + r) ("nDCG", by which it is stopped) and 1/r ("MRR"), and how often it
        is among the first ten ("recall@10"), or the first.
    tests : dict of str to SignTest
        For "rest", in how many queries the relevant item ranks higher or lower than under the
        start; for "first", in how many it has the first place under one of them only.
    served : tuple of str
        The places for which what was learned is served: those where the test says "better", if
        nDCG is higher too.
    """

    n_queries: int
    n_tested: int
    n_passes: int
    before: dict[str, float]
    after: dict[str, float]
    tests: dict[str, SignTest]
    served: tuple[str, ...]

    def __str__(self) -> str:
        if not self.n_passes:
            return (
                f"The start is kept: on queries held out, nothing that was learned from the pairs "
                f"ranks relevant items better (nDCG {self.before['nDCG']:.3f})."
            )
        verdicts = ", ".join(f"{place}: {self.tests[place].verdict}" for place in PLACES)
        changes = ", ".join(
            f"{name} {self.before[name]:.3f} → {self.after[name]:.3f}" for name in MEASURES[:3]
        )
        return (
            f"On {self.n_tested:,} queries held out, {changes} after {self.n_passes} passes "
            f"({verdicts}); served: {' and '.join(self.served) or 'the start'}."
        )

    def state(self) -> State:
        """The numbers."""
        values = asdict(self) | {"served": list(self.served)}
        return State(values=values)

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The report of that state."""
        counts = [saved.count(name) for name in ("n_queries", "n_tested", "n_passes")]
        sides = []
        for name in ("before", "after"):
            part = saved.part(name)
            sides.append({measure: part.number(measure, least=0.0) for measure in MEASURES})
        tests = saved.part("tests")
        found = {place: _restored_test(tests.part(place)) for place in PLACES}
        served = saved.value("served")
        saved.check(served in _CHOICES, "served must be places")
        return cls(counts[0], counts[1], counts[2], sides[0], sides[1], found, tuple(served))


_CHOICES: tuple[list[str], ...] = ([], ["rest"], ["first"], list(PLACES))


def _restored_test(saved: Saved) -> SignTest:
    mark = saved.choice("mark", ("≫", ">", "=", "<", "≪"))
    p_value = saved.number("p_value", least=0.0)
    return SignTest(p_value, mark, saved.count("n_better"), saved.count("n_worse"))


@dataclass(frozen=True, eq=False)
class RelevantPairs:
    """Queries, and rows of relevant items with the number of their query."""

    queries: Array
    items: Array
    of: Indices

    def part(self, queries: Indices) -> RelevantPairs:
        """The pairs of some queries."""
        place = np.full(len(self.queries), -1)
        place[queries] = np.arange(len(queries))
        kept = place[self.of] >= 0
        return RelevantPairs(self.queries[queries], self.items[kept], place[self.of[kept]])


def read_pairs(queries: Any, relevant: Any, store: ItemStore) -> RelevantPairs:
    """Check queries and what is relevant to each: an id or a vector, or several."""
    Q = checked_items(queries, store.n_features, "queries").astype(np.float32)
    if len(Q) < LEAST:
        raise InvalidInputError(
            f"warm_start needs at least {LEAST} queries, since it holds some out. Got {len(Q)}."
        )
    try:
        given = np.asarray(relevant)
    except ValueError:
        # Lists of different lengths.
        given = np.empty(len(relevant), dtype=object)
    n = len(given) if given.ndim else -1
    if n != len(Q):
        got = "something else" if n < 0 else str(n)
        raise InvalidInputError(
            f"relevant must have an entry for each of the {len(Q)} queries. Got {got}."
        )
    if given.ndim == 2 and given.dtype.kind == "f":
        rows, of = checked_items(given, store.n_features, "relevant"), np.arange(n)
    elif given.ndim == 1 and given.dtype.kind in "iuU":
        rows, of = store.vectors(given.tolist()), np.arange(n)
    else:
        # One vector or id, or several.
        lists = [[e] if np.ndim(e) == 0 or _is_vector(e, store) else e for e in relevant]
        found = [read_items(entry, store)[0] for entry in lists]
        rows = np.concatenate(found)
        of = np.repeat(np.arange(n), [len(part) for part in found])
    rows = single(rows)
    check_sizes(Q, rows)
    return RelevantPairs(Q, rows, of)


def _is_vector(entry: Any, store: ItemStore) -> bool:
    return np.asarray(entry).dtype.kind == "f" and np.shape(entry) == (store.n_features,)


class WarmStarter:
    """Learns D from pairs, and asks queries that were held out whether it helps.

    Parameters
    ----------
    units : ItemUnits
    W : array of shape (d, d) or None
        The start.
    store : ItemStore
        Where items to rank relevant ones among are taken from, if it is an array.
    random : RandomState
    """

    def __init__(
        self, units: ItemUnits, W: Array | None, store: ItemStore, random: np.random.RandomState
    ) -> None:
        self._units, self._W, self._store, self._random = units, W, store, random

    def learn(self, pairs: RelevantPairs) -> tuple[Array, WarmStart]:
        """D, and what was found about it."""
        squares = float(np.einsum("ij,ij->", pairs.items, pairs.items, dtype=np.float64))
        if not squares / len(pairs.items) > SHORTEST * self._units.gap:
            raise InvalidInputError(
                "The relevant items are zero, or far shorter than the items that the adapter was "
                "fitted on; give vectors of the same model."
            )
        n = len(pairs.queries)
        order = self._random.permutation(n)
        held = min(int(HELD_OUT * n), MOST_HELD_OUT)
        pool = self._pool(pairs)
        stop, test = (
            _Ranks(pairs.part(part), pool) for part in np.array_split(np.sort(order[:held]), 2)
        )
        D, n_passes = self._until_no_better(pairs.part(np.sort(order[held:])), stop, pool)
        before, after = (test.of(self._mapped(test.pairs.queries, M)) for M in (None, D))
        tests = {
            "rest": s_test(after < before, before < after),
            "first": s_test(after == 1, before == 1),
        }
        sides = [_measures(ranks) for ranks in (before, after)]
        higher = sides[1]["nDCG"] > sides[0]["nDCG"]
        served = tuple(place for place in PLACES if tests[place].mark in "≫>" and higher)
        return D, WarmStart(n, len(before), n_passes, sides[0], sides[1], tests, served)

    def _until_no_better(
        self, pairs: RelevantPairs, stop: _Ranks, pool: Array
    ) -> tuple[Array, int]:
        """The best D by nDCG of the queries to stop by, and after how many passes it came."""
        best = _measures(stop.of(self._mapped(stop.pairs.queries, None)))["nDCG"]
        found, n_passes = np.zeros((self._units.L.shape[1], pairs.items.shape[1]), np.float32), 0
        for k, D in enumerate(self._passes(pairs, pool), 1):
            now = _measures(stop.of(self._mapped(stop.pairs.queries, D)))["nDCG"]
            if now > best:
                best, found, n_passes = now, D.copy(), k
            elif k > n_passes + 1:
                break
        return found, n_passes

    def _passes(self, pairs: RelevantPairs, pool: Array) -> Iterator[Array]:
        """The mean of D after each pass over the pairs."""
        units, queries, items = self._units, pairs.queries[pairs.of], pairs.items
        F, base = (queries - units.mu) @ units.L, self._mapped(queries, None)
        step = np.float32(STEP * units.gap * len(items) / np.einsum("ij,ij->", items, items))
        D = np.zeros((F.shape[1], items.shape[1]), dtype=np.float32)
        mean, t = D.copy(), 0
        n_blocks = -(-len(items) // BLOCK)
        for _ in range(min(max(round(STEPS / n_blocks), 2), MOST_PASSES)):
            order = self._random.permutation(len(items))
            for start in range(0, len(order), BLOCK):
                rows = order[start : start + BLOCK]
                against, of = self._negatives(items, pairs.of, rows, pool)
                others = pairs.of[rows][:, None] != of
                V = self._directions(base[rows] + F[rows] @ D, items[rows], against, others)
                D += step * (F[rows].T @ V)
                t += 1
                mean += np.float32(min(NEWEST / (t + 3), 1.0)) * (D - mean)
            yield mean

    def _directions(
        self, E: Array, items: Array, against: Array, others: NDArray[np.bool_]
    ) -> Array:
        """p_i − Σ w_ij p_j for each mapped query, over its own item and the negatives."""
        sharp = np.float32(SHARPNESS / self._units.gap)
        near = self._units.mean_similarity + self._units.gap
        own = np.einsum("ij,ij->i", E, items) * sharp
        S = E @ against.T * sharp
        S[~others | (items @ against.T >= near)] = -np.inf
        largest = np.maximum(S.max(axis=1), own)
        S = np.exp(S - largest[:, None])
        S /= (S.sum(axis=1) + np.exp(own - largest))[:, None]
        return S.sum(axis=1)[:, None] * items - S @ against

    def _negatives(
        self, items: Array, of: Indices, rows: Indices, pool: Array
    ) -> tuple[Array, Indices]:
        """Items that a block is set against, and the query each is relevant to, −1 for none."""
        missing = min(BLOCK - len(rows), len(pool))
        if missing <= 0:
            return items[rows], of[rows]
        more = pool[self._random.choice(len(pool), missing, replace=False)]
        return np.concatenate([items[rows], more]), np.append(of[rows], np.full(missing, -1))

    def _pool(self, pairs: RelevantPairs) -> Array:
        """Items that relevant ones are ranked among: the store's, or all that are relevant."""
        items = self._store.items
        rows: NDArray[Any] = pairs.items if items is None or callable(items) else items
        if len(rows) > SAMPLE:
            rows = rows[np.sort(self._random.choice(len(rows), SAMPLE, replace=False))]
        if rows is not pairs.items:
            rows = single(rows)
            check_sizes(rows)
        return rows

    def _mapped(self, Q: Array, D: Array | None) -> Array:
        base = Q if self._W is None else Q @ self._W
        return base if D is None else base + ((Q - self._units.mu) @ self._units.L) @ D


class _Ranks:
    """The rank of each query's best relevant item among the items of a pool.

    A query that is an item itself is not ranked among the answers to it.
    """

    def __init__(self, pairs: RelevantPairs, pool: Array) -> None:
        self.pairs, self._pool = pairs, pool
        self._longest = np.sqrt(np.einsum("ij,ij->i", pool, pool).max())
        numbers: dict[bytes, list[int]] = {}
        for i, query in enumerate(pairs.queries):
            numbers.setdefault(query.tobytes(), []).append(i)
        self._same = [(i, j) for j, row in enumerate(pool) for i in numbers.get(row.tobytes(), ())]

    def of(self, E: Array) -> NDArray[np.int64]:
        """Ranks from 1, for queries mapped to E."""
        scores = np.einsum("ij,ij->i", E[self.pairs.of], self.pairs.items)
        best = np.full(len(E), -np.inf, dtype=np.float32)
        np.maximum.at(best, self.pairs.of, scores)
        # Rounding must not put an item above itself.
        best += 1e-6 * self._longest * np.linalg.norm(E, axis=1)
        ranks = np.empty(len(E), dtype=np.int64)
        for start in range(0, len(E), 250):
            part = slice(start, start + 250)
            ranks[part] = 1 + (E[part] @ self._pool.T > best[part, None]).sum(axis=1)
        for i, j in self._same:
            ranks[i] -= bool(E[i] @ self._pool[j] > best[i])
        return np.maximum(ranks, 1)


def _measures(ranks: NDArray[np.int64]) -> dict[str, float]:
    values = (1 / np.log2(1 + ranks), 1 / ranks, ranks <= 10, ranks == 1)
    return {name: float(np.mean(value)) for name, value in zip(MEASURES, values, strict=True)}
