"""Weights of points in LMNN: a point of weight w counts as w points in the same place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError
from samewise.kernels.lmnn_loops import Costs
from samewise.supervision.supervision_checks import checked_weights

Targets = NDArray[np.int32]
Weights = NDArray[np.float64]

ROUNDING = 1e-12
"""What is left of the wanted weight when sums of weights are rounded, relative to it."""


def positive_weights(
    sample_weight: ArrayLike, n: int, validation_fraction: float | None
) -> tuple[Weights, NDArray[np.bool_]]:
    """The weights above 0, and which these are."""
    weight = checked_weights(sample_weight, n, "examples")
    assert weight is not None
    if validation_fraction is not None:
        raise InvalidInputError(
            "Examples that validation_fraction holds out have no weights. Got sample_weight too; "
            "use only one of the two."
        )
    kept = weight > 0
    if not kept.any():
        raise InvalidInputError("sample_weight must not be zero for every example. Got zeros only.")
    return weight[kept], kept


def renumbered(targets: Indices, kept: NDArray[np.bool_]) -> Indices:
    """Targets as row numbers among the rows that are kept; −1 for the others."""
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return np.where(targets < 0, -1, place[targets])[kept]


def given_costs(targets: Targets, weight: Weights) -> Costs:
    """The costs where targets are given: each counts once, for each copy of its point."""
    return Costs(np.where(targets >= 0, weight[:, None], 0.0), weight)


def weighted_targets(
    find: Callable[[int], Targets], weight: Weights, k: int, anchors: Targets | None
) -> tuple[Targets, Costs]:
    """The nearest targets whose weights add up to k, and how often each counts.

    The nearest target of a point of weight w > 1 is the point itself, w − 1 times: its copies. The
    last target counts by the part of its weight that is still wanted.

    Parameters
    ----------
    find : callable
        Gives so many of the nearest targets, nearest first; −1 for none.
    weight : array of shape (n,)
        Above 0, of the sorted rows.
    k : int
        The sum of weights that is wanted.
    anchors : array or None
        The rows that may have targets; None if all may.
    """
    own = np.arange(len(weight), dtype=np.int32)
    copies = np.clip(weight - 1, 0, k)
    if anchors is not None:
        copies[np.setdiff1d(own, anchors)] = 0
    places = k
    while True:
        others = find(places)
        there = np.where(others >= 0, weight[others], 0.0)
        wanted = k - copies[:, None] - np.cumsum(there, axis=1) + there
        wanted[wanted < ROUNDING * k] = 0
        if np.all((others[:, -1] < 0) | (wanted[:, -1] <= there[:, -1])):
            break
        places *= 2
    count = np.column_stack([copies, np.minimum(wanted, there)])
    targets = np.where(count > 0, np.column_stack([own, others]), -1).astype(np.int32)
    # Those that count come first.
    order = np.argsort(targets < 0, axis=1, kind="stable")
    width = max(int((targets >= 0).sum(axis=1).max()), 1)
    order = order[:, :width]
    targets, count = (np.take_along_axis(x, order, axis=1) for x in (targets, count))
    return targets, Costs(count * weight[:, None], weight)
