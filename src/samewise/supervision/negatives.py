"""Semi-hard negatives: for sampled anchors and positives, negatives from which more is learned."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Form
from samewise.kernels.pairwise import all_dots
from samewise.supervision.sampling import distinct

LOT, POOL = 128, 256
"""So many triplets share so many candidates. One product of matrices compares them all, and the
work per triplet does not depend on the number of examples."""


def semi_hard_part(negatives: Any) -> float:
    """The part of the negatives that is semi-hard: 0 for "random", 1 for "semi-hard"."""
    if isinstance(negatives, str) and negatives in ("random", "semi-hard"):
        return float(negatives == "semi-hard")
    number = isinstance(negatives, Real) and not isinstance(negatives, bool)
    if number and 0 <= negatives <= 1:
        return float(negatives)
    raise InvalidInputError(
        "negatives must be 'random', 'semi-hard' or a number from 0 to 1, the part of them that is "
        f"semi-hard. Got {negatives!r}."
    )


def judged_part(judged: Any) -> float:
    """The part of the negatives to take among judged items, from 0 to 1."""
    number = isinstance(judged, Real) and not isinstance(judged, bool)
    if number and 0 <= judged <= 1:
        return float(judged)
    raise InvalidInputError(
        "judged must be a number from 0 to 1, the part of the negatives that is taken among items "
        f"that were judged for the query. Got {judged!r}."
    )


def check_form_of_items(form: Any, X: Matrix, items: Matrix) -> None:
    """Refuse what cannot compare rows of X with items."""
    n, m = X.shape[1], items.shape[1]
    if n == m:
        check_form(form, X)
        return
    if form is None:
        raise InvalidInputError(
            f"Queries have {n} features and items {m}, so there is no dot product to tell which "
            "negatives are close. Give a form that compares them, such as the metric_ of a learner."
        )
    try:
        form.closeness(X[:0], items[:0])
    except (InvalidInputError, AttributeError) as error:
        raise InvalidInputError(
            f"form must compare queries of {n} features with items of {m}. Got {form!r}."
        ) from error


def check_form(form: Any, X: Matrix) -> None:
    """Refuse what cannot compare rows of X with rows of X."""
    if form is None:
        return
    if not isinstance(form, Form):
        raise InvalidInputError(
            "form must be a form, such as the metric_ of a fitted learner, or None for the dot "
            f"product. Got {type(form).__name__}."
        )
    try:
        form.closeness(X[:0], X[:0])
    except InvalidInputError as error:
        raise InvalidInputError(
            f"form must compare examples of {X.shape[1]} features with each other. Got {form!r}."
        ) from error


def harden(
    X: Matrix,
    codes: NDArray[np.intp],
    order: Indices | None,
    drawn: tuple[Indices, Indices, Indices],
    part: float,
    form: Form | None,
    rng: np.random.RandomState,
) -> Indices:
    """The negatives of the sampled triplets, a random part of them made semi-hard."""
    anchor, positive, negative = drawn
    rows = np.arange(len(codes)) if order is None else order
    rows = rows[codes[rows] >= 0]
    n_hard = round(part * len(negative))
    hard = np.sort(rng.permutation(len(negative))[:n_hard])
    negative = negative.copy()
    for start in range(0, n_hard, LOT):
        lot = hard[start : start + LOT]
        pool = rows[distinct(rng, len(rows), min(POOL, len(rows)))]
        C = _closeness(X, anchor[lot], np.concatenate([positive[lot], pool]), form)
        other = codes[pool] != codes[anchor[lot], None]
        place = _semi_hard(C[:, len(lot) :], C.diagonal(), other)
        # Where a class is nearly everything, a pool can hold nothing else.
        negative[lot] = np.where(other.any(axis=1), pool[place], negative[lot])
    return negative


def harden_graded(
    X: Matrix,
    items: Matrix,
    grades: sp.csr_array,
    drawn: tuple[Indices, Indices, Indices],
    rows: Indices,
    form: Form | None,
    rng: np.random.RandomState,
) -> Indices:
    """The negatives of the sampled triplets, those of the given rows made semi-hard.

    Without labels, an item that nobody judged may well be as good as the positive. One that is at
    least as close to the positive as the query is counts as its near-duplicate and is no candidate.
    """
    anchor, positive, negative = drawn
    negative = negative.copy()
    for start in range(0, len(rows), LOT):
        lot = rows[start : start + LOT]
        a, p = anchor[lot], positive[lot]
        pool = distinct(rng, items.shape[0], min(POOL, items.shape[0])).astype(np.intp)
        C = _compared(X[a], items[np.concatenate([p, pool])], form)
        reached = C.diagonal()[:, None]
        C = C[:, len(lot) :]
        below = (C < reached) & (grades[a][:, pool].toarray() < grades[a, p].reshape(-1, 1))
        if X.shape[1] == items.shape[1]:
            below &= _compared(items[p], items[pool], form) < reached
        if items is X:
            below &= pool != a[:, None]
        closest = pool[np.argmax(np.where(below, C, -np.inf), axis=1)]
        negative[lot] = np.where(below.any(axis=1), closest, negative[lot])
    return negative


def _compared(Q: Matrix, P: Matrix, form: Form | None) -> Array:
    return all_dots(Q, P) if form is None else form.closeness(Q, P)


def _semi_hard(C: Array, positive: Array, other: NDArray[np.bool_]) -> Indices:
    """The closest other below the positive; if all are as close as it or closer, the least close.

    Columns of C are candidates, `positive` is the closeness of each anchor's positive.
    """
    below = other & (C < positive[:, None])
    closest = np.argmax(np.where(below, C, -np.inf), axis=1)
    farthest = np.argmin(np.where(other, C, np.inf), axis=1)
    return np.where(below.any(axis=1), closest, farthest)


def _closeness(X: Matrix, queries: Indices, items: Indices, form: Form | None) -> Array:
    if form is None:
        return all_dots(X[queries], X[items])
    try:
        return form.closeness(X[queries], X[items])
    except DegenerateInputError:
        # A row that cannot be compared with itself is named by its number in X.
        form.pair_closeness(X, X)
        raise
