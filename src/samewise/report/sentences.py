"""Numbers and comparisons in words."""

from __future__ import annotations

import math

import numpy as np

from samewise.protocols import Measured, gain
from samewise.scores import PairTest, SignTest, pair_test, s_test


def percent(fraction: float) -> str:
    """A fraction in percent, or a dash where there is none.

    Examples
    --------
    >>> percent(0.0974), percent(float("nan"))
    ('9.7 %', '–')
    """
    return "–" if math.isnan(fraction) else f"{100 * fraction:.1f} %"


def change(before: float, after: float) -> str:
    """How a number moved.

    Examples
    --------
    >>> change(0.21, 0.1), change(0.1, 0.1)
    ('falls from 21.0 % to 10.0 %', 'stays at 10.0 %')
    """
    if percent(before) == percent(after):
        return f"stays at {percent(before)}"
    return f"{'falls' if after < before else 'rises'} from {percent(before)} to {percent(after)}"


def moved(before: float, after: float) -> str:
    """Two numbers with an arrow between them.

    Examples
    --------
    >>> moved(0.2, 0.1)
    '20.0 % → 10.0 %'
    """
    return f"{percent(before)} → {percent(after)}"


def retrieval_test(before: Measured, after: Measured) -> SignTest:
    """The s-test of queries whose average precision rose against those where it fell."""
    rise = after.average_precision - before.average_precision
    return s_test(rise > 0, rise < 0)


def verification_test(before: Measured, after: Measured) -> PairTest | None:
    """The bootstrap test of two metrics that decided the same pairs; None where they did not."""
    old, new = before.decided_pairs, after.decided_pairs
    if old is None or new is None or not np.array_equal(old[:, :3], new[:, :3]):
        return None
    return pair_test(new[:, :2], new[:, 2], new[:, 3], old[:, 3])


def gains_in_words(before: Measured, after: Measured, n_neighbors: int) -> list[str]:
    """What `after` gains over `before`, in sentences."""
    test = gain(before, after)
    found = retrieval_test(before, after)
    sentences = [
        f"Classification, {after.name} against {before.name}: the {n_neighbors}-NN error "
        f"{change(*test.errors)}. Of {len(after.correct):,} test examples {test.n_better} are "
        f"right only with {after.name} and {test.n_worse} only with {before.name}: "
        f"{test.verdict}.",
        f"Retrieval, {after.name} against {before.name}: mean average precision "
        f"{change(before.mean_average_precision, after.mean_average_precision)}. It is better for "
        f"{found.n_better:,} queries and worse for {found.n_worse:,}: {found.verdict}.",
    ]
    errors = before.verification_error, after.verification_error
    if not any(map(math.isnan, errors)):
        verified = verification_test(before, after)
        chance = f": {verified.verdict}" if verified else ""
        sentences.append(
            f"Verification, {after.name} against {before.name}: the error of “are these two the "
            f"same?” {change(*errors)}{chance}."
        )
    return sentences
