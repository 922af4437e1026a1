"""Multi-metric LMNN's loss and its gradient, over the pairs of points that can matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels import lmnn_multi_loops as kernel
from samewise.kernels.nearest_rows import ROWS, WIDTH
from samewise.kernels.pairwise import squared_distances
from samewise.learners.batch.lmnn.impostors import cheapest_depth, lowered_half_squares
from samewise.learners.batch.lmnn.objective import SAMPLE, SLACK, HingeEvaluation
from samewise.learners.batch.points_by_class import Classes
from samewise.solvers.workers import Workers

BLOCK = 1024
"""Rows that are gathered and multiplied at once."""

ROOM = 16
"""Pairs for each point that the first search has room for, before it has to be repeated."""

Maps = NDArray[np.float64]
"""L_g for each group: of shape (n_groups, r, d)."""


class GroupPairs(NamedTuple):
    """Pairs (a, b) of a group that b belongs to.

    `rows` are the points that take part, ascending; `firsts` and `seconds` are places in it.
    """

    rows: NDArray[np.int32]
    firsts: NDArray[np.int32]
    seconds: NDArray[np.int32]

    @classmethod
    def of(cls, firsts: Indices, seconds: Indices, n: int) -> GroupPairs:
        """From row numbers among all n points."""
        taking_part = np.zeros(n, dtype=bool)
        taking_part[firsts] = taking_part[seconds] = True
        rows = np.flatnonzero(taking_part).astype(np.int32)
        place = np.empty(n, dtype=np.int32)
        place[rows] = np.arange(len(rows))
        return cls(rows, place[firsts], place[seconds])

    def keys(self, n: int) -> NDArray[np.int64]:
        """One number for each pair."""
        return self.rows[self.firsts].astype(np.int64) * n + self.rows[self.seconds]


_NONE = GroupPairs(*(np.empty(0, dtype=np.int32) for _ in range(3)))


class MultiCandidates(NamedTuple):
    """The pairs that may matter, for each group."""

    n: int
    groups: list[GroupPairs]

    def __len__(self) -> int:
        return sum(len(pairs.firsts) for pairs in self.groups)

    def union(self, other: MultiCandidates) -> MultiCandidates:
        """The pairs of both."""
        n = self.n
        return MultiCandidates(
            n,
            [
                GroupPairs.of(*np.divmod(np.union1d(mine.keys(n), theirs.keys(n)), n), n)
                for mine, theirs in zip(self.groups, other.groups, strict=True)
            ],
        )


class Room:
    """Memory of one worker that is used again and again."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def take(self, name: str, shape: tuple[int, int], dtype: np.dtype[np.floating]) -> Array:
        """An array that is not initialized; the one taken before by that name is given up."""
        size = shape[0] * shape[1]
        if name not in self._held or len(self._held[name]) < size:
            self._held[name] = np.empty(size, dtype=dtype)
        return self._held[name][:size].reshape(shape)


class MultiObjective:
    """ε(L_1 … L_c) = (1−μ) Σ_{j⇝i} D̂_ij + μ Σ_{j⇝i} Σ_l [1 + D̂_ij − D̂_il]₊.

    D̂_ij = ‖L_g(x_i − x_j)‖² with g the group of j. Groups are worked on one after the other, a few
    of them at the same time, and only with the points that take part: memory does not grow with
    the number of groups, apart from the maps.

    Parameters
    ----------
    X : array of shape (n, d)
        Sorted by class and centered; its type is that of the work.
    targets : array of shape (n, k)
        Rows of X, −1 for none.
    groups : array of shape (n,)
        The group of each row.
    covariance : array of shape (d, d)
        XᵀX.
    """

    def __init__(
        self,
        X: Array,
        targets: NDArray[np.int32],
        classes: Classes,
        groups: Indices,
        n_groups: int,
        mu: float,
        covariance: NDArray[np.float64],
        workers: Workers,
    ) -> None:
        self.X, self.targets, self.classes = X, targets, classes
        self.mu, self.covariance, self.workers = mu, covariance, workers
        order = np.argsort(groups, kind="stable")
        cuts = np.cumsum(np.bincount(groups, minlength=n_groups))[:-1]
        self._members = np.split(order, cuts)
        self._targets, self._at = _target_pairs(targets, groups, n_groups)
        self._reach = np.full(targets.shape, -np.inf, dtype=X.dtype)
        self._rooms = [Room() for _ in range(workers.n)]
        self._weights = [np.empty(targets.shape) for _ in range(workers.n)]
        self._by_size = _shares(np.array([len(m) for m in self._members]), workers.n)
        self.slack, self._looks = SLACK, 0
        self.candidates = MultiCandidates(len(X), [])

    def search(self, L: Maps) -> None:
        """Find all pairs that matter at L, and those that nearly do."""
        self._pull(L)
        reach = ((1 + self.slack) * self._furthest).astype(np.float32)
        before = self.candidates.groups
        found = [_NONE] * len(L)

        def find(share: Indices, room: Room) -> None:
            for g in share:
                expected = len(before[g].firsts) if before else ROOM * len(self.X)
                found[g] = self._found(g, L[g], reach, expected, room)

        self.workers.map(find, self._by_size, self._rooms)
        self.candidates = MultiCandidates(len(self.X), found)
        # By what an evaluation costs: products for each row, a distance for each pair.
        cost = [len(pairs.rows) * L.shape[2] + 2 * len(pairs.firsts) for pairs in found]
        self._by_cost = _shares(np.array(cost), self.workers.n)

    def value_and_gradient(self, L: Maps) -> HingeEvaluation:
        """ε over the candidates, and its gradient by each L_g."""
        pulled = self._pull(L)
        self._L = L
        gradient = np.zeros_like(L)

        # By group, so that their order is the same for any number of workers; weights are whole
        # numbers, which add up to the same in any order.
        pushed, active = np.zeros(len(L)), np.zeros(len(L), dtype=int)

        def push(share: Indices, weights: NDArray[np.float64], room: Room) -> None:
            weights[:] = 0
            for g in share:
                pairs = self.candidates.groups[g]
                Z = self._mapped(pairs.rows, L[g], room)
                G = room.take("G", Z.shape, Z.dtype)
                G[:] = 0
                pushed[g], active[g] = kernel.push(
                    Z, pairs.rows, pairs.firsts, pairs.seconds,
                    self._reach, self._furthest, self.mu, G, weights,
                )  # fmt: skip
                for rows in _blocks(len(G)):
                    gradient[g] += 2.0 * (G[rows].T @ self.X[pairs.rows[rows]])

        self.workers.map(push, self._by_cost, self._weights, self._rooms)
        weights = np.sum(self._weights, axis=0)
        self._slopes = weights.sum(axis=1)
        self._each(lambda g, room: self._pull_gradient(g, L[g], weights, gradient[g]))
        total, positive = float(pushed.sum()), int(active.sum())
        loss = (1 - self.mu) * pulled + self.mu * total
        return HingeEvaluation(loss, gradient, total, float(positive), positive)

    def missing(self) -> float:
        """The part of the positive hinges at the last L that is not among the candidates.

        Seen on a sample: others every time, so that what is missing in a few places comes to light.
        """
        n, ends = len(self.X), self.classes.ends
        step = n // SAMPLE + 1
        self._looks += 1
        sample = np.arange(self._looks * 31 % step, n, step)

        def count(g: int, room: Room) -> int:
            members = self._members[g]
            Z = self._mapped(members, self._L[g], room)
            D = squared_distances(self.X[sample] @ self._L[g].T.astype(Z.dtype), Z)
            near = (D < self._furthest[sample, None]) & (ends[sample, None] != ends[members])
            rows, columns = np.nonzero(near)
            return int(np.count_nonzero(self._reach[sample[rows]] > D[rows, columns, None]))

        seen = sum(self._each(count))
        return 1 - float(self._slopes[sample].sum()) / seen if seen else 0.0

    def _each(self, work: Callable[[int, Room], int | float | None]) -> list[int | float]:
        """The results of work on every group that has members, 0 for one that has none."""
        results: list[int | float] = [0] * len(self._members)

        def do(share: Indices, room: Room) -> None:
            for g in share:
                if len(self._members[g]):
                    results[g] = work(g, room) or 0

        self.workers.map(do, self._by_size, self._rooms)
        return results

    def _mapped(self, rows: Indices, L: NDArray[np.float64], room: Room) -> Array:
        """X[rows] Lᵀ, in memory that the next call uses again."""
        Z = room.take("Z", (len(rows), len(L)), self.X.dtype)
        Lt = L.T.astype(self.X.dtype)
        for at in _blocks(len(rows)):
            np.dot(self.X[rows[at]], Lt, out=Z[at])
        return Z

    def _pull(self, L: Maps) -> float:
        """Σ D̂_ij over the targets; the reach of each point is noted."""
        reach = self._reach.reshape(-1)

        def measure(g: int, room: Room) -> float:
            rows, firsts, seconds = self._targets[g]
            Z = self._mapped(rows, L[g], room)
            return kernel.reaches(Z, firsts, seconds, self._at[g], reach)

        pulled = sum(self._each(measure))
        self._furthest = self._reach.max(axis=1).astype(np.float64)
        return pulled

    def _pull_gradient(
        self,
        g: int,
        L: NDArray[np.float64],
        weights: NDArray[np.float64],
        gradient: NDArray[np.float64],
    ) -> None:
        """Add 2 L_g Σ w_ij (x_i − x_j)(x_i − x_j)ᵀ over the targets j in the group."""
        rows, firsts, seconds = self._targets[g]
        V = self.X[rows]
        G = np.zeros_like(V)
        kernel.pull(V, firsts, seconds, self._at[g], weights.reshape(-1), 1 - self.mu, self.mu, G)
        gradient += 2.0 * (L @ (V.T @ G).astype(np.float64))

    def _found(
        self,
        g: int,
        L: NDArray[np.float64],
        reach: NDArray[np.float32],
        expected: int,
        room: Room,
    ) -> GroupPairs:
        """The pairs of a group with D̂_il < reach_i."""
        members = self._members[g]
        n = len(self.X)
        if not len(members):
            return _NONE
        # Turned so that the columns go by decreasing variance, and distances stay as they are.
        turn = np.linalg.eigh(L @ self.covariance @ L.T)[1][:, ::-1]
        Z = self._mapped(np.arange(n), turn.T @ L, room).astype(np.float32, copy=False)
        bounds = np.searchsorted(members, self.classes.bounds)
        lows, highs = (np.repeat(b, self.classes.sizes) for b in (bounds[:-1], bounds[1:]))
        group = kernel.GroupMembers(members, lows, highs)
        rows, columns = in_reach(Z, reach, group, expected, room)
        by_row = np.argsort(rows, kind="stable")
        return GroupPairs.of(rows[by_row], columns[by_row], n)


def in_reach(
    Z: NDArray[np.float32],
    reach: NDArray[np.float32],
    group: kernel.GroupMembers,
    expected: int,
    room: Room,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows a and members b of a group, not of the class of a, with ‖z_a − z_b‖² < reach_a.

    It is cheapest where the columns of Z go by decreasing variance. `expected` is a guess of the
    number of pairs.
    """
    E = _shortened(Z, _depth(Z, group, reach), room)
    half = lowered_half_squares(E)
    width = min(WIDTH, len(group.rows))
    size = expected + expected // 4 + BLOCK
    while True:
        rows, columns = np.empty((2, size), dtype=np.int32)
        found = kernel.impostors(E, half, Z, reach, group, ROWS, width, rows, columns)
        if found <= size:
            return rows[:found], columns[:found]
        size = found


def _target_pairs(
    targets: NDArray[np.int32], groups: Indices, n_groups: int
) -> tuple[list[GroupPairs], list[NDArray[np.int64]]]:
    """The pairs (i, j), j⇝i, of each group, and their places in `targets` read row by row."""
    n, k = targets.shape
    known = np.flatnonzero(targets >= 0)
    whose = groups[targets.reshape(-1)[known]]
    known = known[np.argsort(whose, kind="stable")]
    at = np.split(known, np.cumsum(np.bincount(whose, minlength=n_groups))[:-1])
    return [GroupPairs.of(part // k, targets.reshape(-1)[part], n) for part in at], at


def _shares(costs: Indices, n_workers: int) -> list[Indices]:
    """Groups in as many lists as there are workers, of about the same cost."""
    shares: list[list[int]] = [[] for _ in range(n_workers)]
    load = np.zeros(n_workers)
    for g in np.argsort(-costs, kind="stable"):
        least = int(load.argmin())
        shares[least].append(int(g))
        load[least] += costs[g] + 1
    return [np.array(share, dtype=int) for share in shares]


def _blocks(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def _shortened(Z: NDArray[np.float32], depth: int, room: Room) -> NDArray[np.float32]:
    """The first columns and, as one more, the length of the rest: ‖u − v‖ ≥ |‖u‖ − ‖v‖|."""
    if depth >= Z.shape[1]:
        return Z
    E = room.take("E", (len(Z), depth + 1), Z.dtype)
    E[:, :depth] = Z[:, :depth]
    E[:, depth] = np.sqrt(np.einsum("ij,ij->i", Z[:, depth:], Z[:, depth:]))
    return E


def _depth(Z: NDArray[np.float32], group: kernel.GroupMembers, reach: NDArray[np.float32]) -> int:
    """How many columns to try first, by the pairs of a sample that each number would leave."""
    members, lows, highs = group
    n = len(Z)
    some = np.arange(0, n, n // 512 + 1)
    places = np.arange(0, len(members), len(members) // 256 + 1)
    limit = np.broadcast_to(reach[some, None], (len(some), len(places))).copy()
    limit[(lows[some, None] <= places) & (places < highs[some, None])] = -np.inf
    return cheapest_depth(Z[some], Z[members[places]], limit, (0.7, 0.012, 60.0))
