"""Semi-hard negatives: for sampled anchors and positives, negatives from which more is learned."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
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
