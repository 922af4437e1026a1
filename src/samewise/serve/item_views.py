"""What people see of items: titles, two lists side by side, and a map in two dimensions."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from samewise._typing import Array, Indices
from samewise.serve.collection import Collection
from samewise.serve.searched_collection import NotReadyError
from samewise.serve.searching import Question

DEPTH = 100
"""Places among which it is known by how many an item has moved."""
LONGEST_TITLE = 300
_AT_ONCE = 64
"""Items that are mapped in one turn of reading."""


def title_of(id: str, payload: Mapping[str, Any], field: str) -> str:
    """A short text for an item: its title, its text, or its name."""
    for name in ("title", field, "name"):
        found = payload.get(name)
        if isinstance(found, str) and found.strip():
            return found[:LONGEST_TITLE]
    return id


def titles(collection: Collection, rows: Indices) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, title and payload of rows; those that are no item's any more are left out."""
    field = collection.settings.text_field
    found = collection.stores.items.of_rows(rows.tolist())
    return [
        (id, title_of(id, payload, field), payload)
        for id, payload in (found[row] for row in rows.tolist() if row in found)
    ]


def alive_rows(collection: Collection) -> Indices:
    """The rows of all items; the collection is started, if it can be."""
    try:
        with collection.adapter():
            return np.flatnonzero(collection.stores.snapshot.alive)
    except NotReadyError:
        return np.empty(0, dtype=np.int64)


def picked(collection: Collection, n: int) -> list[dict[str, str]]:
    """Some items by chance, to be asked for."""
    rows = alive_rows(collection)
    random = np.random.RandomState(secrets.randbits(32))
    chosen = random.choice(rows, min(n, len(rows)), replace=False)
    return [{"id": id, "title": title} for id, title, _ in titles(collection, chosen)]


def compared(
    collection: Collection, question: Question, query: Array, text: str | None, item: str | None
) -> dict[str, Any]:
    """An answer beside what the start would have answered, and where each item was.

    The item that was the query is left out of both lists.
    """
    answer = collection.searching.answer(question, query, text)
    searching, vectors = collection.searching, collection.stores.vectors
    ranks = {
        which: searching.ranked(query, which, DEPTH, question.user)
        for which in ("start", question.which)
    }
    start = titles(collection, ranks["start"])
    places = {which: _places(titles(collection, rows), item) for which, rows in ranks.items()}
    start_query, _, _ = searching.mapped(query, "start")
    found = collection.stores.items.rows_of([entry["id"] for entry in answer["results"]])
    field, now = collection.settings.text_field, []
    for entry in answer["results"]:
        if entry["id"] == item or entry["id"] not in found:
            continue
        vector = vectors([found[entry["id"]]])[0].astype(np.float64)
        before = float(start_query.astype(np.float64) @ vector)
        title = title_of(entry["id"], entry["payload"], field)
        where = places["start"].get(entry["id"])
        now.append({**entry, "title": title, "other_place": where, "other_score": before})
    shown = [one for one in start if one[0] != item][: len(now)]
    old = [
        {
            "id": id,
            "title": title,
            "payload": payload,
            "other_place": places[question.which].get(id),
        }
        for id, title, payload in shown
    ]
    return {**answer, "results": now, "start": old, "query": query.tolist(), "depth": DEPTH}


def _places(found: list[tuple[str, str, dict[str, Any]]], left_out: str | None) -> dict[str, int]:
    return {id: place for place, id in enumerate(id for id, _, _ in found if id != left_out)}


class ItemMaps:
    """Maps of the collections of a service; one that nothing has changed since is kept."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Collection, tuple[Any, dict[str, Any]]] = WeakKeyDictionary()
        self._turn = threading.Lock()

    def layout(self, collection: Collection, which: str, n: int) -> dict[str, Any]:
        """Where a sample of items lies, as queries under the start and under another form.

        The two leading directions of the mapped vectors, turned so that they lie as near as can be
        to those of the start.
        """
        # One at a time: it is some work, and may be asked for by many.
        with self._turn:
            rows = alive_rows(collection)
            if len(rows) < 3:
                return {"seq": collection.learning.seq, "ids": [], "start": [], "now": []}
            key = (which, n, collection.learning.seq, collection.stores.snapshot.maps.n_rows)
            kept = self._kept.get(collection)
            if kept is None or kept[0] != key:
                chosen = rows[np.unique(np.linspace(0, len(rows) - 1, n).astype(np.int64))]
                kept = key, self._made(collection, which, chosen)
                self._kept[collection] = kept
            return kept[1]

    def _made(self, collection: Collection, which: str, rows: Indices) -> dict[str, Any]:
        seq = collection.learning.seq
        vectors = collection.stores.vectors(rows)
        start, now = (_plane(_mapped(collection, vectors, form)) for form in ("start", which))
        found = collection.stores.items.of_rows(rows.tolist())
        there = np.array([row in found for row in rows.tolist()])
        labels = titles(collection, rows)
        return {
            "seq": seq,
            "which": which,
            "ids": [id for id, _, _ in labels],
            "titles": [title[:80] for _, title, _ in labels],
            "groups": _groups([payload for _, _, payload in labels]),
            "start": start[there].round(4).tolist(),
            "now": _turned(now, start)[there].round(4).tolist(),
        }


def _mapped(collection: Collection, vectors: Array, which: str) -> Array:
    parts = []
    for first in range(0, len(vectors), _AT_ONCE):
        with collection.adapter() as adapter:
            parts.append(getattr(adapter, which).embed_query(vectors[first : first + _AT_ONCE]))
    return np.concatenate(parts)


def _plane(X: Array) -> NDArray[np.float64]:
    """The two leading coordinates, of unit mean square length."""
    centered = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    if centered.shape[1] < 2:
        centered = np.column_stack([centered, np.zeros(len(X))])
    U, s, _ = randomized_svd(centered, 2, random_state=0)
    plane: NDArray[np.float64] = U * s
    return plane / max(float(np.sqrt((plane**2).sum(axis=1).mean())), 1e-12)


def _turned(plane: NDArray[np.float64], onto: NDArray[np.float64]) -> NDArray[np.float64]:
    """The plane, turned or mirrored to where it is nearest to another."""
    U, _, Vt = np.linalg.svd(plane.T @ onto)
    turned: NDArray[np.float64] = plane @ (U @ Vt)
    return turned


def _groups(payloads: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Fields of payloads with few values, by which dots may be colored."""
    names = sorted({name for payload in payloads for name in payload})[:32]
    found: dict[str, list[str]] = {}
    for name in names:
        values = [payload.get(name) for payload in payloads]
        if all(isinstance(value, str | int | bool) and len(str(value)) <= 60 for value in values):
            texts = [str(value) for value in values]
            if 2 <= len(set(texts)) <= min(100, len(texts) // 2):
                found[name] = texts
    return found
