"""Online learners on several streams at once, mixed now and then."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from samewise.engine.gaussian_merge import merged_diagonal, merged_factored
from samewise.engine.history import History
from samewise.exceptions import InvalidInputError
from samewise.learners.online.aroma import DiagonalAROMA, FactoredAROMA
from samewise.scale.cluster import connected, finished, quiet
from samewise.supervision import Triplets

FIRST = 256
"""Triplets that settle what depends on the data, where nothing was learned before."""

RECENT = 4096
"""Triplets by which the length of a step is chosen, of all streams."""

LEARNED = {
    "OASIS": "about 100 000 triplets",
    "PassiveAggressive": "more than 10 000 pairs",
    "POLA": "about 10 000 pairs",
}
"""What one core learns in a second of 384 features, by `python -m benchmarks scale`."""

A = TypeVar("A", DiagonalAROMA, FactoredAROMA)


def mix(learner: A, parts: Sequence[Any], *, n_merges: int = 32, client: Any = None) -> A:
    """Learn from several streams at once, and mix what was learned several times on the way.

    Each stream goes on from the same Gaussian with its next portion. The Gaussians that come of it
    are multiplied: precisions add, so that a direction in which only one stream has learned
    something is taken from that one. What all streams learned alike overshoots in the sum; the step
    from the old mean to the new one is therefore cut to where the hinge loss on the last triplets
    of all streams is least.

    Parameters
    ----------
    learner : DiagonalAROMA or FactoredAROMA
        Goes on from its present state if it has one. It is not changed.
    parts : sequence of Triplets, or of futures of them
        One stream each. With a client, futures may stand for streams that workers have loaded.
    n_merges : int, default=32
        Portions that each stream is cut into; after each, the streams are mixed. Streams do not
        see what others learn within a portion, so that long ones cost precision.
    client : distributed.Client, default=None
        The cluster to learn on, a task for each stream and portion. By default one stream after
        the other is learned here, with the same result.

    Returns
    -------
    DiagonalAROMA or FactoredAROMA
        One that has learned from all streams. Its counters count all triplets; `history_` has no
        points from the mixed rounds.

    Notes
    -----
    This is near what one stream learns, not the same. For one stream it is the same: the learner's
    own state. Where nothing was learned before, the first 256 triplets of the first stream settle
    the margin and the start.

    OASIS, PassiveAggressive and POLA do not know how sure they are, and are refused: the mean of
    their matrices learns more slowly the more streams there are.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from samewise import FactoredAROMA, Triplets
    >>> from samewise.scale import mix
    >>> X, y = load_digits(return_X_y=True)
    >>> triplets = Triplets.from_labels(X[:1000] / 16, y[:1000], n_triplets=4000, random_state=0)
    >>> parts = [triplets[start : start + 1000] for start in range(0, 4000, 1000)]
    >>> mixed = mix(FactoredAROMA(), parts)
    >>> mixed.n_seen_
    4000
    >>> test = Triplets.from_labels(X[1000:] / 16, y[1000:], n_triplets=5000, random_state=1)
    >>> mixed.score(test) > 0.9
    True
    """
    _check(learner, parts, n_merges)
    if client is None:
        streams = list(parts)
    else:
        client = connected(client)
        streams = [
            client.submit(_itself, part, pure=False) if isinstance(part, Triplets) else part
            for part in parts
        ]
    mixed, skipped = deepcopy(learner), 0
    if not mixed.__sklearn_is_fitted__():
        first = parts[0] if client is None else client.submit(_first, streams[0]).result()
        skipped = min(FIRST, len(first))
        mixed.partial_fit(first[:skipped])
    # Streams are not to settle different margins.
    mixed._gauge = None
    for portion in range(n_merges):
        place = (portion, n_merges)
        begins = [skipped if number == 0 else 0 for number in range(len(streams))]
        share = -(-RECENT // len(streams))
        if client is None:
            ends = [
                _learned(stream, mixed, place, begin, share)
                for stream, begin in zip(streams, begins, strict=True)
            ]
        else:
            with quiet():
                futures = [
                    client.submit(_learned, stream, mixed, place, begin, share, pure=False)
                    for stream, begin in zip(streams, begins, strict=True)
                ]
            ends = finished(client, futures)
        mixed = _mixed(mixed, [end for end in ends if end is not None])
    return mixed


class StreamEnd(NamedTuple):
    """Where a stream has come to: its Gaussian, its counters, and its last triplets."""

    mover: Any
    history: History
    n_skipped: int
    recent: Triplets


def _check(learner: Any, parts: Sequence[Any], n_merges: int) -> None:
    name = type(learner).__name__
    if not isinstance(learner, DiagonalAROMA | FactoredAROMA):
        raise InvalidInputError(
            "mix takes a DiagonalAROMA or a FactoredAROMA, which know how sure they are. Got a "
            f"{name}: the mean of several would learn more slowly the more streams there are, and "
            f"one core learns {LEARNED.get(name, 'thousands of examples')} a second, of 384 "
            "features; give them to partial_fit, one stream after the other."
        )
    if learner.average != "last":
        raise InvalidInputError(
            f"mix takes a {name} with average='last': hypotheses of several streams have no common "
            f"order. Got {learner.average!r}."
        )
    if getattr(learner, "update", "margin") != "margin":
        raise InvalidInputError(
            "mix takes a FactoredAROMA with update='margin': after update='mistake' W is tied to "
            f"the covariances of its own stream. Got {learner.update!r}."
        )
    if not isinstance(n_merges, Integral) or n_merges < 1:
        raise InvalidInputError(f"n_merges must be an integer of at least 1. Got {n_merges!r}.")
    if not len(parts):
        raise InvalidInputError("mix needs one stream or more. Got none.")


def _itself(part: Triplets) -> Triplets:
    return part


def _first(part: Triplets) -> Triplets:
    return part[:FIRST]


def _learned(
    part: Triplets, learner: Any, place: tuple[int, int], begin: int, n_recent: int
) -> StreamEnd | None:
    """A stream after its next portion; None if that is empty."""
    portion, n_portions = place
    n = len(part) - begin
    cuts = [begin + n * at // n_portions for at in (portion, portion + 1)]
    if cuts[0] == cuts[1]:
        return None
    own = deepcopy(learner)
    own.partial_fit(part[cuts[0] : cuts[1]])
    recent = part[max(cuts[0], cuts[1] - n_recent) : cuts[1]]
    return StreamEnd(own._online.mover, own._online.history, own._n_skipped, recent)


def _mixed(learner: A, ends: list[StreamEnd]) -> A:
    """The learner after a portion of all streams."""
    if not ends:
        return learner
    online, before = learner._online, learner._n_skipped
    merge: Any = merged_diagonal if isinstance(learner, DiagonalAROMA) else merged_factored
    start: Any = online.mover
    if len(ends) == 1:
        online.mover, online.history = ends[0].mover, ends[0].history
    else:
        merged = merge(start, [end.mover for end in ends])
        W0, W = start.store.array, merged.store.array
        t = _length(learner, W0, W - W0, [end.recent for end in ends])
        W[...] = W0 + W.dtype.type(t) * (W - W0)
        online.mover = merged
        online.history = online.history.joined([end.history for end in ends])
    learner._n_skipped = before + sum(end.n_skipped - before for end in ends)
    learner._made = {}
    return learner


def _length(learner: Any, W0: Any, D: Any, recent: list[Triplets]) -> float:
    """The t in [0, 1] with the least hinge loss at W₀ + tD on some triplets."""
    margins, steps, weights = [], [], []
    for triplets in recent:
        directions = learner._directions(triplets)
        rows = directions.dense(W0.dtype)
        margins.append(np.einsum("ij,ij->i", rows.left @ W0, rows.right))
        steps.append(np.einsum("ij,ij->i", rows.left @ D, rows.right))
        weights.append(directions.weight)
    return least_hinge(
        learner.margin_ - np.concatenate(margins).astype(np.float64),
        np.concatenate(steps).astype(np.float64),
        np.concatenate(weights),
    )


def least_hinge(
    lacking: NDArray[np.float64], steps: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """The t in [0, 1] with the least Σ w max(0, lacking − t·step), the largest of equal ones.

    The sum is convex and piecewise linear: its slope rises where a term begins or ends.

    Examples
    --------
    >>> least_hinge(np.array([1.0, 0.0]), np.array([2.0, -1.0]), np.array([1.0, 1.5]))
    0.5
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        at = lacking / steps
    at = np.where(steps == 0, np.inf, at)
    on = (lacking > 0) | ((lacking == 0) & (steps < 0))
    slope = -float((weights * steps)[on].sum())
    # A term changes within (0, 1): one with a positive step ends, one with a negative step begins.
    inside = np.flatnonzero((at > 0) & (at < 1))
    order = inside[np.argsort(at[inside], kind="stable")]
    slopes = slope + np.cumsum(weights[order] * np.abs(steps[order]))
    if slope > 0:
        return 0.0
    past = np.flatnonzero(slopes > 0)
    return float(at[order[past[0]]]) if len(past) else 1.0
