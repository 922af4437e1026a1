"""Simulated users who judge lists, and how an adapter's forms rank test queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from samewise import LiveAdapter
from samewise._typing import Array, Indices
from samewise.adapt import Click, Thumb
from samewise.adapt.shown_lists import fill_slots, team_draft

BLOCK = 25
"""Lists made together, as where many users are served: the live form is a little behind."""
DEPTH = 100
SHOWN, EXPLORED = 10, 3
LOOKS = 0.85
"""The probability that who looked at an item of a list looks at the next."""


@dataclass(frozen=True)
class Corpus:
    """Stored items that are also the users' queries, and test queries; each with its class."""

    items: Array
    item_labels: Indices
    tests: Array
    test_labels: Indices


@dataclass(frozen=True)
class Users:
    """How users answer: liked is what has the class of the query.

    Each answer is flipped with probability `noise`; "random" users toss a coin; "inverted" ones say
    the opposite; both from event `since` on, as "drift" users do about a tenth of the classes.
    They judge whole lists, or say one "thumb" about one item of a list, or "clicks": on what is
    liked in an interleaved list, of which the i-th item is looked at with probability 0.85^i.
    """

    kind: str = "good"
    noise: float = 0.0
    since: int = 0
    said: str = "lists"

    def answer(
        self, right: Array, reversed_query: bool, t: int, random: np.random.RandomState
    ) -> Array:
        y = np.where(right, 1, -1)
        if t >= self.since:
            if self.kind == "random":
                return random.choice([-1, 1], len(y))
            if self.kind == "inverted" or (self.kind == "drift" and reversed_query):
                y = -y
        return np.where(random.rand(len(y)) < self.noise, -y, y)


@dataclass
class Course:
    """What a stream led to."""

    live: dict[int, Array] = field(default_factory=dict)
    served: dict[int, Array] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    changed: dict[int, Array] = field(default_factory=dict)
    drift: list[float] = field(default_factory=list)
    drift_top: list[float] = field(default_factory=list)


def stream(
    corpus: Corpus,
    users: Users,
    n: int,
    seed: int,
    *,
    guard: float | None,
    at: tuple[int, ...] = (),
    record: Callable[[dict[str, Any]], Any] | None = None,
    watch: bool = False,
    by_start: bool = False,
    **parameters: Any,
) -> tuple[LiveAdapter, Course]:
    """Let users judge n lists; measure the forms after the numbers of lists in `at`.

    With `watch` also what is served, whenever that changes. With `by_start` lists are those of the
    start, whatever was learned: the seven best and three explored. `record` is called with each
    event, as a line of the log that `samewise adapt` reads.
    """
    adapter = LiveAdapter(
        guard=guard, items=corpus.items, log=False, random_state=seed, **parameters
    ).fit(corpus.items)
    random = np.random.RandomState(seed + 100)
    turned = _turned(corpus.item_labels, seed)
    course = Course()
    t = 0
    for queries in _blocks(len(corpus.items), n, random):
        draft = drafted if users.said == "clicks" else shown_lists
        if by_start:
            ranked = _ranked(corpus.items[queries], corpus.items, queries)
            lists = [(explored(row, random), None) for row in ranked]
        else:
            lists = draft(adapter, corpus, queries, guard is not None, random)
        for q, (shown, teams) in zip(queries, lists, strict=True):
            mine = corpus.item_labels[q]
            y = users.answer(corpus.item_labels[shown] == mine, mine in turned, t, random)
            if users.kind == "drift" and t >= users.since and mine in turned:
                _new_preferences(adapter, corpus, q, course)
            candidate = None if guard is None else SHOWN - EXPLORED - 1
            if users.said == "lists":
                adapter.feedback(corpus.items[q], shown, y, candidate=candidate, event=t)
            else:
                say_less(adapter, corpus.items[q], shown, y, teams, t, random)
            if record is not None:
                entry = {"event": t, "query": int(q), "shown": shown.tolist(), "y": y.tolist()}
                record(entry | ({} if candidate is None else {"candidate": candidate}))
            t += 1
            if watch and guard is not None and len(adapter.guard_.history) > len(course.changes):
                course.changes = list(adapter.guard_.history)
                course.changed[t] = served_measures(adapter, corpus)
            if t in at:
                course.live[t] = measures(adapter.live.embed_query(corpus.tests), None, corpus)
                if guard is not None:
                    course.served[t] = served_measures(adapter, corpus)
    if guard is not None:
        course.changes = list(adapter.guard_.history)
    return adapter, course


def write_log(
    path: Path, corpus: Corpus, users: Users, n: int, seed: int, *, guard: float | None = 0.05
) -> LiveAdapter:
    """Write the events of a stream as JSON lines, queries and items by their rows; the adapter."""
    with path.open("w", encoding="utf-8") as file:

        def record(entry: dict[str, Any]) -> None:
            file.write(json.dumps(entry) + "\n")

        return stream(corpus, users, n, seed, guard=guard, record=record)[0]


def _blocks(n_items: int, n: int, random: np.random.RandomState) -> Iterator[Indices]:
    """Queries: all items in a random order, again and again."""
    order = np.concatenate([random.permutation(n_items) for _ in range(-(-n // n_items))])[:n]
    for start in range(0, n, BLOCK):
        yield order[start : start + BLOCK]


def _turned(labels: Indices, seed: int) -> set[int]:
    """A tenth of the classes, for those who change their mind."""
    classes = np.unique(labels)
    random = np.random.RandomState(seed)
    return set(random.choice(classes, max(len(classes) // 10, 1), replace=False).tolist())


def shown_lists(
    adapter: LiveAdapter,
    corpus: Corpus,
    queries: Indices,
    guarded: bool,
    random: np.random.RandomState,
) -> list[tuple[Indices, Any]]:
    """Ten items for each query: what is served, the live form's candidate, three explored.

    Without a guard the live form is served, and there is no candidate. There are no teams.
    """
    Q = corpus.items[queries]
    served = _ranked(adapter.embed_query(Q), corpus.items, queries)
    if not guarded:
        return [(explored(row, random), None) for row in served]
    first = _ranked(adapter.embed_query(Q, "first"), corpus.items, queries, 1)[:, 0]
    live = _ranked(adapter.live.embed_query(Q), corpus.items, queries, SHOWN)
    pinned = [np.append(a, row[row != a]) for a, row in zip(first, served, strict=True)]
    return [
        (fill_slots(row, candidates, SHOWN, EXPLORED, random).rows, None)
        for row, candidates in zip(pinned, live, strict=True)
    ]


def explored(ranked: Indices, random: np.random.RandomState) -> Indices:
    """The seven best and three of the others."""
    top = SHOWN - EXPLORED
    return np.concatenate([ranked[:top], random.choice(ranked[top:], EXPLORED, replace=False)])


def drafted(
    adapter: LiveAdapter,
    corpus: Corpus,
    queries: Indices,
    guarded: bool,
    random: np.random.RandomState,
) -> list[tuple[Indices, Any]]:
    """Ten items for each query, interleaved from what is served and the live form; their teams."""
    Q = corpus.items[queries]
    rankings = (
        _ranked(E, corpus.items, queries, SHOWN).tolist()
        for E in (adapter.embed_query(Q), adapter.live.embed_query(Q))
    )
    lists = (team_draft(a, b, SHOWN, random) for a, b in zip(*rankings, strict=True))
    return [(np.array(shown), teams if guarded else None) for shown, teams in lists]


def say_less(
    adapter: LiveAdapter,
    query: Array,
    shown: Indices,
    y: Array,
    teams: Any,
    t: int,
    random: np.random.RandomState,
) -> None:
    """A thumb about one item; or, where there are teams, clicks, if anything is clicked."""
    if teams is None:
        at = random.randint(len(shown))
        adapter.feedback(Thumb(query, int(shown[at]), bool(y[at] > 0)), event=t)
        return
    looked = np.cumprod(random.rand(len(shown)) < LOOKS)
    clicked = np.flatnonzero((y > 0) & (looked > 0))
    if len(clicked):
        adapter.feedback(Click(query, shown, clicked, teams), event=t)


def _ranked(E: Array, items: Array, queries: Indices, depth: int = DEPTH) -> Indices:
    S = E @ items.T
    S[np.arange(len(queries)), queries] = -np.inf
    best = np.argpartition(-S, depth, axis=1)[:, :depth]
    order = np.argsort(-np.take_along_axis(S, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def _new_preferences(adapter: LiveAdapter, corpus: Corpus, q: int, course: Course) -> None:
    """What the live form has right of reversed preferences, before it learns them.

    The share of pairs among the start's 100 best items, and the share of what is liked now among
    its own ten best.
    """
    moved, mine = adapter.live.embed_query(corpus.items[q])[None], corpus.item_labels[q]
    near = _ranked(corpus.items[q : q + 1], corpus.items, np.array([q]))[0]
    scores, same = corpus.items[near] @ moved[0], corpus.item_labels[near] == mine
    if same.any() and not same.all():
        course.drift.append(float((scores[~same][:, None] > scores[same]).mean()))
        best = _ranked(moved, corpus.items, np.array([q]), SHOWN)[0]
        course.drift_top.append(float((corpus.item_labels[best] != mine).mean()))


def served_measures(adapter: LiveAdapter, corpus: Corpus) -> Array:
    """The measures of what is served, the first place by its own vector."""
    first = adapter.embed_query(corpus.tests, "first")
    return measures(adapter.embed_query(corpus.tests), first, corpus)


def measures(E: Array, first: Array | None, corpus: Corpus) -> Array:
    """Precision@1, precision@10 and mAP in percent, every test query against all items.

    Of equal scores relevant items come first.
    """
    totals = np.zeros(3)
    for start in range(0, len(E), 256):
        part = slice(start, start + 256)
        S = E[part] @ corpus.items.T
        if first is not None:
            best = (first[part] @ corpus.items.T).argmax(axis=1)
            S[np.arange(len(S)), best] = np.inf
        for scores, label in zip(S, corpus.test_labels[part], strict=True):
            hits = np.sort(scores[corpus.item_labels == label])[::-1]
            found = np.arange(1, len(hits) + 1)
            above = len(scores) - np.searchsorted(np.sort(scores), hits, side="right")
            ranks = np.maximum(above + 1, found)
            totals += ranks[0] == 1, (ranks <= 10).sum() / 10, (found / ranks).mean()
    return 100 * totals / len(E)


def random_streams(corpus: Corpus, n_streams: int, n: int) -> dict[str, int]:
    """How many streams promote something: users who toss coins, about lists of the start's best."""
    random = np.random.RandomState(0)
    queries = random.choice(len(corpus.items), min(2000, len(corpus.items)), replace=False)
    parts = np.array_split(queries, max(len(queries) // 200, 1))
    ranked = np.concatenate([_ranked(corpus.items[part], corpus.items, part) for part in parts])
    top = SHOWN - EXPLORED
    adapter = LiveAdapter(items=corpus.items, log=False, random_state=0).fit(corpus.items)
    found = {"streams": n_streams, "lists": n, "promoted": 0, "promoted if all were credible": 0}
    for _ in range(n_streams):
        adapter.reset()
        reached = False
        for at in random.randint(len(queries), size=n):
            others = top + random.choice(DEPTH - top, EXPLORED, replace=False)
            shown = ranked[at, [*range(top), *others]]
            adapter.feedback(corpus.items[queries[at]], shown, random.choice([-1, 1], SHOWN))
            report_due = adapter._fitted.guard.bets[:2, 0] >= adapter._fitted.guard.limits()[:2]
            reached |= bool(report_due.any())
        found["promoted"] += bool(adapter.versions_)
        found["promoted if all were credible"] += reached or bool(adapter.versions_)
    return found
