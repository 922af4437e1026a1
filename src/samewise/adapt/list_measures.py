"""How forms rank judged lists: AUC, whether the best item is liked, and nDCG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.adapt.query_form import QueryForm
from samewise.adapt.serving_adapter import ServingAdapter
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.pairwise import row_slices
from samewise.scores import ndcg

MEASURES = ("auc", "precision@1", "ndcg")

Floats = NDArray[np.float64]
Scorer = Callable[["JudgedLists", str], Array]
"""Scores of all shown items, one after the other, for a place: "rest" or "first"."""


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Lists with items of two kinds.

    Attributes
    ----------
    queries : array of shape (n, d)
    shown : array of shape (total, d)
        The items of all lists, one list after the other.
    each : array of shape (total,)
        The list of each item.
    grades : array of shape (n, k)
        Of each list's items, 0 for those not judged and where the list has ended.
    candidates : array of shape (n,)
        The place of the live form's candidate, −1 for none.
    """

    queries: Array
    shown: Array
    each: Indices
    grades: NDArray[np.int64]
    candidates: Indices

    @classmethod
    def of(cls, readings: Sequence[Any]) -> JudgedLists:
        """Lists that were read: their query, vectors, grades and candidate."""
        sizes = np.array([len(reading.grades) for reading in readings])
        each = np.repeat(np.arange(len(sizes)), sizes)
        grades = np.zeros((len(sizes), sizes.max()), dtype=np.int64)
        grades[each, _places(sizes)] = np.concatenate([reading.grades for reading in readings])
        return cls(
            np.stack([reading.query for reading in readings]),
            np.concatenate([reading.vectors for reading in readings]),
            each,
            grades,
            np.array([reading.candidate for reading in readings]),
        )

    def table(self, scores: Array) -> Floats:
        """Scores of shown items as an array of shape (n, k); −∞ where an item is not judged."""
        table = np.full(self.grades.shape, -np.inf)
        table[self.each, _places(np.bincount(self.each))] = scores
        table[self.grades == 0] = -np.inf
        return table


def _places(sizes: Indices) -> Indices:
    """The place of each item in its list."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def scorer(form: Any, name: str) -> Scorer:
    """How a form scores lists. What is served has a vector of its own for the first place."""
    metric = getattr(form, "metric_", form)
    if isinstance(metric, Form):
        return lambda lists, place: metric.pair_closeness(lists.queries[lists.each], lists.shown)
    if not callable(getattr(form, "embed_query", None)):
        raise InvalidInputError(
            f"{name} must be a form, a fitted learner, or an object with embed_query, such as "
            f"adapter.served. Got {form!r}."
        )
    placed = isinstance(form, QueryForm | ServingAdapter)

    def scores(lists: JudgedLists, place: str) -> Array:
        E = np.asarray(form.embed_query(lists.queries, *([place] if placed else [])))
        if E.shape != lists.queries.shape or not np.isfinite(E).all():
            raise InvalidInputError(
                f"embed_query of {name} must return a finite vector of {lists.queries.shape[1]} "
                f"numbers for each query. Got an array of shape {E.shape}."
            )
        return np.einsum("ij,ij->i", E[lists.each], lists.shown, dtype=np.float64)

    return scores


def list_measures(lists: JudgedLists, rest: Array, first: Array) -> dict[str, Floats]:
    """The measures of each list, by the scores of its items for the two places.

    The AUC is the share of pairs in the order of their grades, those of the candidate left out; it
    is NaN where there are no others. The first place is that of its own scores, in nDCG too.
    """
    rest, first = lists.table(rest), lists.table(first)
    grades = lists.grades
    judged = grades != 0
    low = np.where(judged, grades, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    high = np.where(judged, grades, np.iinfo(np.int64).min).max(axis=1, keepdims=True)
    best = first.argmax(axis=1)[:, None]
    liked = 2 * np.take_along_axis(grades, best, axis=1) > low + high
    pinned = rest.copy()
    np.put_along_axis(pinned, best, np.inf, axis=1)
    gains = np.where(judged, grades - low, 0)
    found = (_auc(rest, lists), liked[:, 0].astype(np.float64), ndcg(pinned, gains))
    return dict(zip(MEASURES, found, strict=True))


def _auc(scores: Floats, lists: JudgedLists) -> Floats:
    grades = lists.grades.copy()
    has = lists.candidates >= 0
    grades[has, lists.candidates[has]] = 0
    n, k = grades.shape
    found = np.empty(n)
    for rows in row_slices(n, 4 * k * k, 2**22):
        g, s = grades[rows], scores[rows]
        pairs = (g[:, :, None] > g[:, None, :]) & (g[:, :, None] != 0) & (g[:, None, :] != 0)
        above = (s[:, :, None] > s[:, None, :]) + 0.5 * (s[:, :, None] == s[:, None, :])
        count = pairs.sum(axis=(1, 2))
        right = (pairs * above).sum(axis=(1, 2))
        found[rows] = np.where(count > 0, right / np.maximum(count, 1), np.nan)
    return found
